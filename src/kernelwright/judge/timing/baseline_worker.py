"""A trusted contender's process: runs the reference itself, eager, under torch.compile or as a plug-in does, so that a
kernel has a baseline to race.

In (requests, one at a time): `open` {path, source, class_name, mode, init_seed, threads, device}; `compile`, which calls
it twice on inputs of its own drawing and so compiles it; then the stopwatch's `time_*` messages. Out: replies with `ok`.
The calling path is that of a candidate: one `no_grad` around one call, the same stopwatch, the same thread count, the same
allocator.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from kernelwright.core.task import Task
from kernelwright.core.task.load import load_task
from kernelwright.judge.reference.heap import give_back
from kernelwright.judge.timing.device_stopwatch import DeviceStopwatch
from kernelwright.judge.timing.stopwatch import Stopwatch
from kernelwright.workers.channel import Channel, ChannelClosed, Message, close_all

_no_grad = torch.no_grad


class Baseline:
    """The reference, constructed and callable like a kernel."""

    def __init__(self) -> None:
        self.model: Any = None
        self.loaded: Any = None
        self.stopwatch = Stopwatch(self.call)

    def call(self, inputs: Sequence[Any]) -> Any:
        """The same line as a candidate's call, with gradients off: neither side pays for more Python than the other."""
        return self.model(*inputs)

    def answer(self, message: Message, fds: list[int]) -> tuple[Message, list[int]]:
        """The reply to one request, and descriptors that the caller closes after sending."""
        op = str(message["op"])
        if op.startswith("time_"):
            return self.stopwatch.handle(message, fds)
        if op == "open":
            self.open(message)
            return {"ok": True}, []
        if op == "compile":
            started = time.monotonic()
            inputs = self.loaded.draw(1)[0]
            if isinstance(self.stopwatch, DeviceStopwatch):
                inputs = self.stopwatch.place(inputs)
            with _no_grad():
                for _ in range(2):
                    self.call(inputs)
            del inputs
            give_back()
            return {"ok": True, "seconds": time.monotonic() - started}, []
        raise ValueError(f"unknown request {op!r}")

    def open(self, message: Message) -> None:
        """Construct the reference as the referee does; under "compile" the graph is compiled at the first call."""
        torch.set_num_threads(int(message["threads"]))
        task = Task.from_source(
            message["source"], path=message["path"], class_name=message["class_name"], dynamic=message.get("dynamic", "")
        )
        self.loaded = load_task(task)
        self.model = self.loaded.construct(int(message["init_seed"]))
        if message.get("device"):
            self.stopwatch = DeviceStopwatch(self.call, str(message["device"]))
            self.model.to(self.stopwatch.device)
        mode = str(message["mode"])
        if mode != "eager":
            _prepare_compiler(Path.cwd())
            self.model = MODES[mode](self.model) if mode in MODES else _plugged_in(mode)(self.model)
        self.stopwatch.start()


MODES: dict[str, Callable[[Any], Any]] = {
    "compile": lambda model: torch.compile(model),
    "max-autotune": lambda model: torch.compile(model, mode="max-autotune"),
}
PLUG_INS = "kernelwright.contenders"
"""Entry points of this group name a function: the reference module in, something callable like it out."""


def _plugged_in(name: str) -> Callable[[Any], Any]:
    """Another package's contender of this name."""
    found = [point for point in metadata.entry_points(group=PLUG_INS) if point.name == name]
    if not found:
        known = [*MODES, *(point.name for point in metadata.entry_points(group=PLUG_INS))]
        raise ValueError(f"there is no contender {name!r}; known are eager, {', '.join(known)}")
    prepare: Callable[[Any], Any] = found[0].load()
    return prepare


def _prepare_compiler(folder: Path) -> None:
    """Compiled graphs stay in the worker's folder for the next run; no pool of compiler processes is started for one graph."""
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(folder / "inductor"))
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    os.environ.setdefault("TORCHINDUCTOR_FX_GRAPH_CACHE", "1")


def serve(channel: Channel) -> None:
    """Entry of the process: answer until the parent is gone."""
    baseline = Baseline()
    while True:
        try:
            message, fds = channel.receive(None)
        except ChannelClosed:
            return
        sent: list[int] = []
        try:
            reply, sent = baseline.answer(message, fds)
        except Exception as error:
            reply = {"ok": False, "error": f"{type(error).__name__}: {str(error)[:500]}"}
        try:
            channel.send(reply, sent)
        except ChannelClosed:
            return
        finally:
            close_all([*fds, *sent])
