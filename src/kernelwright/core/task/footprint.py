"""Counts the bytes a task would need, before a byte is allocated: a callable in, the peak of live tensor memory out.

The callable runs on fake tensors, which have shapes and lifetimes but no memory; a dispatch mode adds up the storages that are
alive. So a task of 100 GB is refused with a sentence, where running it would get the process killed.
"""

from __future__ import annotations

import contextlib
import logging
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


@dataclass(frozen=True)
class Footprint:
    """Bytes of live tensors at the worst moment, and what remains when the callable has returned."""

    peak: int
    kept: int

    @property
    def judged(self) -> int:
        """What judging takes: the reference's and the candidate's processes run the task, inputs and outputs are on their way between
        them, and some are held to be asked for again. Measured for a ReLU of 0.25 GB: seven times its input and output."""
        return 3 * self.peak + 4 * self.kept

    @property
    def widened(self) -> int:
        """What it takes when the whole is run in fp64 beside all that."""
        return self.judged + 2 * self.peak


class _LiveBytes(TorchDispatchMode):  # type: ignore[misc]
    """Follows every storage from its allocation to its collection."""

    def __init__(self) -> None:
        super().__init__()
        self.live = 0
        self.peak = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self._count(leaf)
        return result

    def _count(self, tensor: Any) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self._known:
            return
        self._known.add(key)
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._free, key, size)

    def _free(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.live -= size


GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


class OneStep(TorchFunctionMode):  # type: ignore[misc]
    """Recurrent layers on fake tensors take one step instead of hundreds: shapes and memory follow from it. Torch unrolls a GRU
    into a dozen operators for each step, layer and direction, which are 20 s of dispatch for a GRU of 6 layers and 512 steps."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        gates = GATES.get(getattr(func, "__name__", ""), 0)
        if not gates or kwargs or len(args) != 9 or not isinstance(args[8], bool) or args[0].dim() != 3:
            return func(*args, **(kwargs or {}))
        x, time = args[0], 1 if args[8] else 0
        if x.shape[time] < 2:
            return func(*args)
        first, *states = func(x.narrow(time, 0, 1), *args[1:])
        shape = list(first.shape)
        shape[time] = x.shape[time]
        working = x.new_empty([gates + 2, *shape])  # gates of every step at once, and states on their way
        del working
        return (first.new_empty(shape), *states)


def measure(run: Callable[[], Any]) -> Footprint:
    """The footprint of `run`. When it cannot finish on fake tensors (it reads values, or raises), what it held until then."""
    counter = _LiveBytes()
    kept = 0
    with (
        quietly("torch._subclasses.fake_tensor"),
        torch.no_grad(),
        FakeTensorMode(allow_non_fake_inputs=True),
        counter,
        OneStep(),
    ):
        try:
            result = run()
            kept = counter.live
            del result
        except Exception:
            return Footprint(counter.peak, kept)
    return Footprint(counter.peak, kept)


@contextlib.contextmanager
def quietly(name: str) -> Iterator[None]:
    """torch logs a traceback for every operator that refuses its shapes; the real run tells the user in one sentence."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


def available_bytes() -> int:
    """Memory that can still be used, by the machine's and by the control group's reckoning (its page cache counts as free)."""
    meminfo = Path("/proc/meminfo").read_text().split()
    available = int(meminfo[meminfo.index("MemAvailable:") + 1]) * 1024
    for folder, limit, used in (
        ("/sys/fs/cgroup", "memory.max", "memory.current"),
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        try:
            room = int(Path(folder, limit).read_text()) - int(Path(folder, used).read_text())
            stat = dict(line.split() for line in Path(folder, "memory.stat").read_text().splitlines())
        except (OSError, ValueError):
            continue
        cache = int(stat.get("total_inactive_file", stat.get("inactive_file", 0))) + int(stat.get("active_file", 0))
        available = min(available, room + cache)
    return max(available, 0)
