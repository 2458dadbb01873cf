"""The referee: the trusted process that knows the task. Requests come in over a channel, inputs, expected facts and findings
go out.

`Referee` is the plain object (tests use it without a process); `serve` puts it behind a channel. Requests, by `op`:

- `open`         {path, source, class_name, seed?}    → {facts} and the constructor's arguments as a bundle
- `weights`      {names: {name: [shape]} | null}      → {mode: "names", header} and a bundle of the state;
  or {mode: "seed", seed, finding}, where a finding means that the kernel has no room for a weight
- `renew`        {few}                                 → {header} and a bundle of other weights, for the calls to come
- `plan`         {budget_s}                           → {trials: [{label, distribution, workload, seed, strided}], reference}
- `draw`         {trial}                              → {header, turned} and the inputs as a bundle, or a block of them (turned.py)
- `check`        {trial, header, after_header?, part?}, fds → {finding}: null, or status, reason, mismatch
- `at_sizes`     {trial | null}                       → {facts} of that trial's sizes, at which timed inputs are drawn from now on
- `flags`        {}                                   → {flags}: what the task cannot tell
- `draw_timed`   {calls, seed}                        → {header} and a bundle with a list of input sets, all fresh
- `check_repeated` {calls, header, probe_header, after_header?}, fds → {finding} for a block of calls on the same inputs
- `check_timed`  {call, header, probe_header, whole, after_header?}, fds → {finding} for one call of the last timed draw

Every reply has `ok`; when false, `error` is {type, message} and, for a task at fault, `task_error` is the sentence for the
user. `expect.py` owns right and wrong, `plan.py` the choice of trials, `nulls.py` the flags, `facts.py` the
first run.
"""

from __future__ import annotations

import dataclasses
import random
import secrets
import time
from collections import OrderedDict
from typing import Any

import torch

from kernelwright.core.errors import ConfigError, TaskError
from kernelwright.core.task import Task, tree
from kernelwright.core.task.dynamic_probe import dynamic_of
from kernelwright.core.task.footprint import available_bytes
from kernelwright.core.task.load import load_task, require_outputs
from kernelwright.judge.honesty import null_kernels
from kernelwright.judge.reference import numerics
from kernelwright.judge.reference.adversary import UNEVEN
from kernelwright.judge.reference.expect import Expectation, Finding
from kernelwright.judge.reference.facts import first_run
from kernelwright.judge.reference.heap import LARGE_BYTES, map_large_blocks
from kernelwright.judge.reference.inputs import CONSTANT, is_whole
from kernelwright.judge.reference.plausible import plausible
from kernelwright.judge.reference.reference import MEMORY, Reference
from kernelwright.judge.reference.rows import BlockExpectation, RowsExpectation
from kernelwright.judge.reference.sizes import EARLY, SizeTrials, described, size_facts
from kernelwright.judge.reference.trials import Planner, Trial
from kernelwright.judge.reference.weights import constants, randomised, touched
from kernelwright.judge.timing import stopwatch
from kernelwright.judge.timing.fresh_data import FreshData
from kernelwright.judge.timing.turned import Turned
from kernelwright.workers import bundle
from kernelwright.workers.channel import Channel, ChannelClosed, ChannelGarbage, Message, close_all

REMEMBERED_BYTES = 1 << 30
"""Inputs and answers of trials that are kept; more are drawn and computed again when asked for."""
MAPPED_BYTES = 32 << 20
"""A trial's inputs from which the referee looks into the file that travels instead of keeping its own."""

UNLIKE = 24
"""Outputs of repeated calls that differ from the first and are looked at."""
GLANCE_SECONDS = 0.25
"""For a glance at the other calls of a block whose outputs are all at hand."""
ORDINARY = ("own", "normal")
SAMPLES_KEPT = 3
"""Of the first trials of a large task; most tasks are told from null candidates by one or two of them."""


class Referee:
    """One task under judgement. `seed` decides construction, which the candidate repeats and therefore knows; `secret` everything
    else: weights, the plan, every draw. It has nothing to do with `seed`, unless that is given (in tests)."""

    def __init__(self, task: Task, seed: int | None = None) -> None:
        self.task = task
        self.seed = secrets.randbits(48) if seed is None else seed
        self.secret = secrets.randbits(60) if seed is None else random.Random(seed).getrandbits(60)
        self.loaded = load_task(task)
        needed = self.loaded.require_memory()
        if needed.peak >= LARGE_BYTES:
            map_large_blocks()
        self.reference = Reference(self.loaded, self.loaded.construct(self.seed))
        self.reference.dynamic = dynamic_of(self.loaded, task.dynamic)
        self.trials: list[Trial] = []
        self.sizes: SizeTrials | None = None
        self.budget = 5.0
        self._timed: list[list[Any]] = []
        self._timed_seed = 0
        self._timed_trial: Trial | None = None
        self._timed_bundle: bundle.Packed | None = None
        self._own = self._fresh = FreshData(lambda one: self.loaded.draw(one)[0])
        self._memory: OrderedDict[Trial, Expectation] = OrderedDict()
        self._samples: dict[Trial, Expectation | None] = {}
        started = time.perf_counter()
        drawn = self.loaded.draw(self.seed)
        seconds = time.perf_counter() - started
        self.facts, self._nan_share, self.rows = first_run(self.reference, self.seed, drawn)
        self.reach = self.facts["longest_reduction"]
        if self.rows:
            self._own.learn(drawn[0], seconds)
        elif needed.widened > available_bytes():
            self.reference.refusal = MEMORY

    def expect(self, trial: Trial) -> Expectation:
        """The expectation of a trial, remembered while memory allows."""
        if trial in self._memory:
            self._memory.move_to_end(trial)
            return self._memory[trial]
        self._make_room()
        reach = numerics.effective_reach(self.reach, constant=trial.distribution in CONSTANT)
        inputs = self._drawn(trial)
        if trial.sizes:
            reach = numerics.effective_reach(self.reference.measured(inputs)[1].reach)
        if trial.distribution in UNEVEN:  # one index gets what many share
            most = max((tensor.numel() for tensor in tree.tensors(inputs) if is_whole(tensor)), default=1)
            reach = numerics.effective_reach(max(self.reach, most))
        made = self._made(inputs, reach, trial)
        made.strictest.ordinary = trial.distribution in ORDINARY and not trial.special
        self._memory[trial] = made
        if len(self._samples) < SAMPLES_KEPT:
            self._samples[trial] = made.strictest if made.strictest is not made else None
        return made

    def _drawn(self, trial: Trial) -> list[Any]:
        """A trial's inputs; of a task with rows, one block of them."""
        block = self.rows and not trial.sizes and trial.workload == 0
        return trial.draw(self.reference, self._own.block(self.rows, trial.seed) if self.rows and block else None)

    def _strictest(self, trial: Trial) -> Expectation:
        """What a null candidate has to pass: of a large trial, the sample that outlived it."""
        return self._samples.get(trial) or self.expect(trial).strictest

    def _make_room(self) -> None:
        """Forget the oldest trials until one more of their size fits; done before it is made, since a large one counts."""
        held = [item.nbytes for item in self._memory.values()]
        while held and sum(held) + max(held) > REMEMBERED_BYTES:
            held.pop(0)
            self._memory.popitem(last=False)

    def weights(self, names: dict[str, list[int]] | None) -> tuple[str, dict[str, Any] | None]:
        """Send state by name where the candidate's state has all names and shapes of the reference; otherwise both sides are
        constructed under one seed. The reference is set accordingly."""
        own = self.reference.model.state_dict()
        fits = names is not None and all(list(names.get(name, [-1])) == list(value.shape) for name, value in own.items())
        self._memory.clear()
        self._samples.clear()
        if not fits or not own:
            self.reference.set_weights(self.loaded.construct(self.seed).state_dict())
            return "seed", None
        # Another seed than the candidate was constructed under: what it copied from its weights in __init__ is stale now.
        state = randomised(self.loaded.construct(self.secret ^ 1), self.secret ^ 2)
        self.reference.set_weights(state)
        return "names", state

    def renew(self, few: bool = False) -> dict[str, Any]:
        """Other weights, after calls have been made with the first ones: what a kernel has packed or folded by then is stale. Only a
        `few` elements of what there is now, or all."""
        self._memory.clear()
        self._samples.clear()
        if few:
            state = touched(self.reference.model.state_dict(), self.secret ^ 7)
        else:
            state = randomised(self.loaded.construct(self.secret ^ 5), self.secret ^ 6)
        self.reference.set_weights(state)
        return state

    def unheard(self, names: dict[str, list[int]] | None) -> Finding | None:
        """Under the seed convention constant weights (an affine 1 and 0) cannot be varied. A kernel that has no tensor of
        such a weight's shape cannot be using it: that is a finding."""
        room = [list(shape) for shape in (names or {}).values()]
        for name in constants(self.reference.model):
            shape = list(self.reference.model.state_dict()[name].shape)
            if shape not in room:
                reason = f"the kernel ignores {name}: it has no parameter or buffer of shape {shape} that could hold it"
                return {"status": "wrong_values", "reason": reason, "mismatch": None}
            room.remove(shape)
        return None

    def plan(self, budget_s: float) -> list[Trial]:
        """Choose the trials for about this many seconds of the referee's work."""
        self.budget = budget_s
        self.trials = Planner(self.reference, self.facts["shapes"], self._drawn, self.expect, self.secret).plan(budget_s)
        if self.reference.dynamic is not None:
            self.sizes = SizeTrials(self.reference, self.reference.dynamic, self.facts, self.expect, self.secret ^ 9)
            sized = self.sizes.plan(budget_s)
            self.trials = [*self.trials[:2], *sized[:EARLY], *self.trials[2:], *sized[EARLY:]]
        return self.trials

    def timed_trials(self) -> list[int]:
        """The trials at whose sizes a kernel is timed, beside the task's own."""
        chosen = self.sizes.timed(self.trials) if self.sizes is not None else []
        return [self.trials.index(trial) for trial in chosen]

    def at_sizes(self, number: int | None) -> dict[str, Any]:
        """Draw timed inputs at a trial's sizes from now on, or at the task's own again; what the clock has to know of a call there."""
        trial = None if number is None else self.trials[number]
        self._timed, self._timed_trial = [], trial
        if trial is None:
            self._fresh = self._own
            return self.facts
        self._fresh = FreshData(lambda one: dataclasses.replace(trial, seed=one, distribution="own").draw(self.reference))
        return size_facts(self.reference, self.facts, trial.draw(self.reference))

    def draw(self, trial: int) -> tuple[list[Any], Turned | None]:
        """The inputs of a planned trial, or a block and how to make them of it. Its answer is computed with them, and waits: to draw a
        gigabyte again takes seconds."""
        expected = self.expect(self.trials[trial])
        return expected.inputs, expected.turned if isinstance(expected, BlockExpectation) else None

    def keep(self, trial: int, inputs: list[Any]) -> None:
        """The trial's inputs lie here too, where they travel: no second copy is needed."""
        self.expect(self.trials[trial]).inputs = inputs

    def check(
        self, trial: int, outputs: Any, inputs_after: list[Any] | None, part: tuple[int, int] | None = None
    ) -> Finding | None:
        """What is wrong with a candidate's answer to a planned trial, or None. `part`: the rows of which there are inputs."""
        return self.expect(self.trials[trial]).check(outputs, inputs_after, part)

    def flags(self) -> list[str]:
        """What the planned trials cannot tell apart. Dear tasks are asked by their sample: half precision on a CPU is slow."""
        self._timed = []
        chosen = [trial for trial in self.trials if not trial.special and not trial.sizes] or [Trial(self.secret)]
        return null_kernels.flags(self.reference, (self._strictest(trial) for trial in chosen)) + self._own_flags()

    def draw_timed(self, calls: int, seed: int) -> list[list[Any]]:
        """Input sets for one timed block: the task's own distribution, independent for every block and call."""
        self._make_room()
        self._timed = []
        self._timed_seed = seed
        if self._timed_bundle is not None:
            self._timed_bundle.close()
        self._timed_bundle = self._fresh.packed(calls, seed)
        self._timed = bundle.unpack(self._timed_bundle.header, self._timed_bundle.fd)
        return self._timed

    def timed_bundle(self) -> bundle.Packed:
        """The input sets of the last draw as they travel. The descriptor becomes the caller's."""
        assert self._timed_bundle is not None
        packed, self._timed_bundle = self._timed_bundle, None
        return packed

    def check_timed(
        self, call: int, outputs: Any, probe: dict[str, Any], inputs_after: list[Any] | None = None
    ) -> Finding | None:
        """Hold the outputs of a timed call against the reference, what was read right after the call against now, and what the call
        left of its inputs against what they were."""
        if stopwatch.still_working(probe):
            return {"status": "cheating", "reason": "outputs still changed after the call had returned", "mismatch": None}
        return self._of_timed(call).check(outputs, inputs_after)

    def glance(self, calls: list[Any], but: int) -> Finding | None:
        """Look at the other calls of a timed block, in no order that could be foreseen, as long as there is time. What is not
        plausible is checked in full."""
        started, rest = time.process_time(), [call for call in range(len(calls)) if call != but]
        random.SystemRandom().shuffle(rest)
        for call in rest:
            if time.process_time() - started > GLANCE_SECONDS:
                break
            if not plausible(calls[call], self.reference.native(self._timed[call])):
                finding = self._of_timed(call).check_outputs(calls[call])
                if finding:
                    return finding
        return None

    def _of_timed(self, call: int) -> Expectation:
        made = self._of_all(self._timed[call], "the inputs of a timed call", self._timed_seed + call)
        made.strictest.ordinary = True
        return made

    def check_repeated(
        self, calls: int, outputs: Any, probe: dict[str, Any], inputs_after: list[Any] | None = None
    ) -> Finding | None:
        """Hold the outputs of many calls on the same inputs against the reference: the first, and all that differ from it by a bit;
        and what the last of them left of the inputs."""
        if type(outputs) is not list or len(outputs) != calls:
            return {"status": "cheating", "reason": "a block handed over fewer outputs than it made calls", "mismatch": None}
        if stopwatch.still_working(probe):
            return {"status": "cheating", "reason": "outputs still changed after the call had returned", "mismatch": None}
        made = self._of_all(self._timed[0], "repeated calls", self._timed_seed)
        first, unlike = bundle.tensors(outputs[0]), 0
        for place, output in enumerate(outputs):
            others = bundle.tensors(output)
            if place and len(others) == len(first) and all(map(_same_bits, first, others)):
                continue
            finding = made.check_outputs(output)
            if finding:
                return {**finding, "reason": f"call {place + 1} of {calls} on the same inputs: {finding['reason']}"}
            unlike += 1
            if unlike > UNLIKE:
                break
        return made.check_inputs(inputs_after) if inputs_after is not None else None

    def _made(self, inputs: list[Any], reach: int, trial: Trial) -> Expectation:
        if self.rows and not trial.sizes and trial.workload == 0:
            return BlockExpectation(
                self.reference, inputs, reach, label=trial.label, rows=self.rows, seed=self.secret ^ trial.seed
            )
        return Expectation(self.reference, inputs, reach, label=trial.label)

    def _of_all(self, inputs: list[Any], label: str, seed: int) -> Expectation:
        """For data that are independent throughout."""
        reach = numerics.effective_reach(self.reach)
        if self.rows and self._timed_trial is None:
            return RowsExpectation(self.reference, inputs, reach, label=label, rows=self.rows, seed=self.secret ^ seed)
        return Expectation(self.reference, inputs, reach, label=label)

    @property
    def truth(self) -> str:
        """What candidates are measured against, in words."""
        if self.reference.refusal:
            return "native"
        return (
            f"fp64 for {self.rows.block} samples of the batch, which stand for all {self.rows.batch}" if self.rows else "fp64"
        )

    def _own_flags(self) -> list[str]:
        found = []
        if self._nan_share > 0:
            found.append(f"the reference returns NaN in {100 * self._nan_share:.3g} % of its output on its own inputs")
        if self.reference.refusal:
            found.append(
                f"the reference cannot be run in fp64 ({self.reference.refusal}), so torch's own result is the measure"
            )
        return found


def _same_bits(one: Any, other: Any) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return bool(
        torch.equal(one, other)
        or (torch.equal(one.isnan(), other.isnan()) and torch.equal(one.nan_to_num(), other.nan_to_num()))
    )


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
        self.referee = Referee(task, message.get("seed"))
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
        listed = [{**dataclasses.asdict(trial), "label": trial.label} for trial in trials]
        told = {"trials": listed, "reference": referee.truth, "timed_trials": referee.timed_trials()}
        return {"ok": True, **told, "varying": described(referee.reference.dynamic, referee.sizes)}, []

    def at_sizes(self, referee: Referee, message: Message, fds: list[int]) -> tuple[Message, list[int]]:
        return {"ok": True, "facts": referee.at_sizes(message.get("trial"))}, []

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
            finding = referee.glance(calls[: len(referee._timed)], call)
        return {"ok": True, "finding": finding}, []


def warm() -> None:
    """Import and run once what every referee needs, in the server: later workers inherit it by forking."""
    source = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return torch.softmax(x @ x, -1)\n"
    source += "def get_inputs():\n    return [torch.randn(8, 8)]\n"
    referee = Referee(Task.from_source(source, path="warm.py"), 0)
    referee.plan(0.1)
    require_outputs(referee.task, referee.reference.model(*referee.draw(0)[0]))
