"""The referee behind its channel, in a trusted process of its own: requests in, inputs, facts and findings out.

Requests, by `op`:

- `open`         {path, source, class_name, seed?, known?} → {facts} and the constructor's arguments as a bundle
- `weights`      {names: {name: [shape]} | null}      → {mode: "names", header} and a bundle of the state;
  or {mode: "seed", seed, finding}, where a finding means that the kernel has no room for a weight
- `renew`        {few}                                 → {header} and a bundle of other weights, for the calls to come
- `plan`         {budget_s}                           → {trials: [{label, distribution, workload, seed, strided}], reference, learnt}
- `draw`         {trial}                              → {header, turned} and the inputs as a bundle, or a block of them (turned.py)
- `check`        {trial, header, after_header?, part?}, fds → {finding}: null, or status, reason, mismatch
- `at_sizes`     {trial | null} or {sizes}            → {facts} of that trial's sizes, at which timed inputs are drawn from now on
- `flags`        {}                                   → {flags}: what the task cannot tell
- `draw_timed`   {calls, seed}                        → {header} and a bundle with a list of input sets, all fresh
- `check_repeated` {calls, header, probe_header, after_header?}, fds → {finding} for a block of calls on the same inputs
- `check_timed`  {call, header, probe_header, whole, after_header?}, fds → {finding} for one call of the last timed draw

Every reply has `ok`; when false, `error` is {type, message} and, for a task at fault, `task_error` is the sentence for the user.
"""

from __future__ import annotations

import dataclasses

from kernelwright.core.errors import ConfigError, TaskError
from kernelwright.core.task import Task
from kernelwright.core.task.load import require_outputs
from kernelwright.judge.reference.referee import Referee
from kernelwright.judge.reference.sizes import described
from kernelwright.workers import bundle
from kernelwright.workers.channel import Channel, ChannelClosed, ChannelGarbage, Message, close_all

MAPPED_BYTES = 32 << 20
"""A trial's inputs from which the referee looks into the file that travels instead of keeping its own."""


def serve(channel: Channel) -> None:
    """Entry of the referee's process: answer requests until the parent is gone."""
    service = _Service()
    while True:
        try:
            message, fds = channel.receive(None)
        except ChannelClosed:
            return
        packed: list[int] = []
        try:
            reply, packed = service.answer(message, fds)
        except (TaskError, ConfigError) as error:
            reply = {"ok": False, "task_error": str(error), "error": {"type": "TaskError", "message": str(error)}}
        except ChannelGarbage as error:
            reply = {"ok": True, "finding": {"status": "cheating", "reason": f"a forged answer: {error}", "mismatch": None}}
        except Exception as error:
            reply = {"ok": False, "error": {"type": type(error).__name__, "message": str(error)[:500]}}
        try:
            channel.send(reply, packed)
        except ChannelClosed:
            return
        finally:
            close_all(packed)
            close_all(fds)


class _Service:
    """The requests of the module's docstring, one method each."""

    def __init__(self) -> None:
        self.referee: Referee | None = None

    def answer(self, message: Message, fds: list[int]) -> tuple[Message, list[int]]:
        """The reply and the descriptors that go with it, which the caller closes after sending."""
        op = str(message.get("op"))
        if op == "open":
            return self.open(message)
        if self.referee is None:
            raise ValueError("no task has been opened")
        handler = {
            "weights": self.weights,
            "renew": self.renew,
            "plan": self.plan,
            "at_sizes": self.at_sizes,
            "draw": self.draw,
            "check": self.check,
            "flags": self.flags,
            "draw_timed": self.draw_timed,
            "check_timed": self.check_timed,
            "check_repeated": self.check_repeated,
        }.get(op)
        if handler is None:
            raise ValueError(f"unknown request {op!r}")
        return handler(self.referee, message, fds)

    def open(self, message: Message) -> tuple[Message, list[int]]:
        task = Task.from_source(
            message["source"],
            path=message["path"],
            class_name=message.get("class_name") or "Model",
            dynamic=message.get("dynamic", ""),
        )
        self.referee = Referee(task, message.get("seed"), message.get("known") or None)
        arguments = [list(self.referee.loaded.init_args), self.referee.loaded.init_kwargs]
        try:
            packed = bundle.pack(arguments)
        except TypeError as error:
            raise TaskError(task.path, f"get_init_inputs gives a value that cannot be passed on: {error}") from error
        return {"ok": True, "facts": self.referee.facts, "header": packed.header}, [packed.fd]

    def weights(self, referee: Referee, message: Message, fds: list[int]) -> tuple[Message, list[int]]:
        mode, state = referee.weights(message.get("names"))
        if state is None:
            return {"ok": True, "mode": mode, "seed": referee.seed, "finding": referee.unheard(message.get("names"))}, []
        packed = bundle.pack(state)
        return {"ok": True, "mode": mode, "header": packed.header}, [packed.fd]

    def renew(self, referee: Referee, message: Message, fds: list[int]) -> tuple[Message, list[int]]:
        packed = bundle.pack(referee.renew(message.get("few") is True))
        return {"ok": True, "header": packed.header}, [packed.fd]

    def plan(self, referee: Referee, message: Message, fds: list[int]) -> tuple[Message, list[int]]:
        trials = referee.plan(float(message.get("budget_s") or 5.0))
        sizes = referee.sizes
        listed = [
            {**dataclasses.asdict(trial), "label": trial.label, "grows": sizes.grows(trial) if sizes else 1.0}
            for trial in trials
        ]
        told = {
            "trials": listed,
            "reference": referee.truth,
            "timed_trials": referee.timed_trials(),
            "learnt": referee.learnt(),
        }
        return {"ok": True, **told, "varying": described(referee.reference.dynamic, referee.sizes)}, []

    def at_sizes(self, referee: Referee, message: Message, fds: list[int]) -> tuple[Message, list[int]]:
        return {"ok": True, "facts": referee.at_sizes(message.get("sizes") or message.get("trial"))}, []

    def draw(self, referee: Referee, message: Message, fds: list[int]) -> tuple[Message, list[int]]:
        trial = int(message["trial"])
        inputs, turned = referee.draw(trial)
        packed = bundle.pack(inputs)
        if packed.header["size"] >= MAPPED_BYTES:
            referee.keep(trial, bundle.unpack(packed.header, packed.fd))
        return {"ok": True, "header": packed.header, "turned": turned.as_message() if turned else None}, [packed.fd]

    def check(self, referee: Referee, message: Message, fds: list[int]) -> tuple[Message, list[int]]:
        outputs = bundle.unpack(message["header"], fds[0])
        after = bundle.unpack(message["after_header"], fds[1]) if message.get("after_header") else None
        part = (int(message["part"][0]), int(message["part"][1])) if message.get("part") else None
        return {"ok": True, "finding": referee.check(int(message["trial"]), outputs, after, part)}, []

    def flags(self, referee: Referee, message: Message, fds: list[int]) -> tuple[Message, list[int]]:
        return {"ok": True, "flags": referee.flags()}, []

    def draw_timed(self, referee: Referee, message: Message, fds: list[int]) -> tuple[Message, list[int]]:
        referee.draw_timed(int(message["calls"]), int(message["seed"]))
        packed = referee.timed_bundle()
        return {"ok": True, "header": packed.header}, [packed.fd]

    def check_repeated(self, referee: Referee, message: Message, fds: list[int]) -> tuple[Message, list[int]]:
        outputs, probe = bundle.unpack(message["header"], fds[0]), bundle.unpack(message["probe_header"], fds[1])
        after = bundle.unpack(message["after_header"], fds[2]) if message.get("after_header") else None
        return {"ok": True, "finding": referee.check_repeated(int(message["calls"]), outputs, probe, after)}, []

    def check_timed(self, referee: Referee, message: Message, fds: list[int]) -> tuple[Message, list[int]]:
        outputs = bundle.unpack(message["header"], fds[0])
        probe = bundle.unpack(message["probe_header"], fds[1])
        call = int(message["call"])
        if message.get("whole"):
            if type(outputs) is not list or len(outputs) <= call:
                reason = "a timed block handed over fewer outputs than it made calls"
                return {"ok": True, "finding": {"status": "cheating", "reason": reason, "mismatch": None}}, []
            calls, outputs = outputs, outputs[call]
        after = bundle.unpack(message["after_header"], fds[2]) if message.get("after_header") else None
        finding = referee.check_timed(call, outputs, probe, after)
        if finding is None and message.get("whole"):
            finding = referee.glance(calls, call)
        return {"ok": True, "finding": finding}, []


def warm() -> None:
    """Import and run once what every referee needs, in the server: later workers inherit it by forking."""
    source = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return torch.softmax(x @ x, -1)\n"
    source += "def get_inputs():\n    return [torch.randn(8, 8)]\n"
    referee = Referee(Task.from_source(source, path="warm.py"), 0)
    referee.plan(0.1)
    require_outputs(referee.task, referee.reference.model(*referee.draw(0)[0]))
