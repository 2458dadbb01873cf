"""The referee: who knows the task. A task in; trials with their inputs, expected facts and findings out.

A plain object, which tests use without a process; `service.py` puts it behind a channel. `expect.py` owns right and wrong, `trials.py` the
choice of trials, `rows.py` large tasks, `null_kernels.py` the flags, `facts.py` the first run.
"""

from __future__ import annotations

import dataclasses
import random
import secrets
import time
from collections import OrderedDict
from typing import Any

import torch

from kernelwright.core.errors import TaskError
from kernelwright.core.task import Task, tree
from kernelwright.core.task.dynamic_probe import dynamic_of
from kernelwright.core.task.footprint import Footprint, available_bytes
from kernelwright.core.task.load import load_task
from kernelwright.judge.honesty import null_kernels
from kernelwright.judge.reference import numerics
from kernelwright.judge.reference.adversary import UNEVEN
from kernelwright.judge.reference.expect import Expectation, Finding
from kernelwright.judge.reference.facts import eager_seconds, first_run
from kernelwright.judge.reference.heap import LARGE_BYTES, map_large_blocks
from kernelwright.judge.reference.inputs import ONE_WAY, is_whole
from kernelwright.judge.reference.plausible import plausible
from kernelwright.judge.reference.reference import MEMORY, Reference
from kernelwright.judge.reference.rows import DEAR_SECONDS, BlockExpectation, Rows, RowsExpectation
from kernelwright.judge.reference.sizes import EARLY, SizeTrials, size_facts
from kernelwright.judge.reference.trials import Planner, Trial
from kernelwright.judge.reference.weights import constants, randomised, touched
from kernelwright.judge.timing import stopwatch
from kernelwright.judge.timing.fresh_data import FreshData
from kernelwright.judge.timing.turned import Turned
from kernelwright.workers import bundle

REMEMBERED_BYTES = 1 << 30
"""Inputs and answers of trials that are kept; more are drawn and computed again when asked for."""
UNLIKE = 24
"""Outputs of repeated calls that differ from the first and are looked at."""
GLANCE_SECONDS = 0.25
"""For a glance at the other calls of a block whose outputs are all at hand."""
ORDINARY = ("own", "normal")
SAMPLES_KEPT = 3
"""Of the first trials of a large task; most tasks are told from null candidates by one or two of them."""


class Referee:
    """One task under judgement. `seed` decides construction, which the candidate repeats and therefore knows; `secret` everything
    else: weights, the plan, every draw. It has nothing to do with `seed`, unless that is given (in tests). `known` is what another
    referee of this task has told (`learnt`)."""

    def __init__(self, task: Task, seed: int | None = None, known: dict[str, Any] | None = None) -> None:
        self.task = task
        self.seed = secrets.randbits(48) if seed is None else seed
        self.secret = secrets.randbits(60) if seed is None else random.Random(seed).getrandbits(60)
        self.loaded = load_task(task)
        self.known = known or {}
        needed = self.loaded.require_memory(known=Footprint(*self.known["footprint"]) if self.known else None)
        self._footprint = needed
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
        self.rows: Rows | None = None
        self._planner: Planner | None = None
        self._find_out()
        self.reach = self.facts["longest_reduction"]
        if not self.rows and needed.widened > available_bytes():
            self.reference.refusal = MEMORY

    def _find_out(self) -> None:
        """The first run, or what is known of it."""
        if self.known:
            self.facts = {**self.known["facts"], "seed": self.seed}
            self._nan_share, told = float(self.known["nan_share"]), self.known["rows"]
            self.rows = Rows(told["batch"], tuple(told["carried"]), told["block"], told["piece"]) if told else None
            if self.known["law"]:
                self._own.recall(self.known["law"])
            if self.facts["eager_seconds"] < DEAR_SECONDS and not self.rows:  # cheap to have anew: a kept one is another hour's
                self.facts["eager_seconds"] = eager_seconds(self.reference, self.loaded.draw(self.seed)[0])
            return
        started = time.perf_counter()
        drawn = self.loaded.draw(self.seed)
        seconds = time.perf_counter() - started
        self.facts, self._nan_share, self.rows = first_run(self.reference, self.seed, drawn)
        if self.rows:
            self._own.learn(drawn[0], seconds)

    def learnt(self) -> dict[str, Any]:
        """What the next referee of this task need not find out again; nothing in it depends on a secret."""
        return {
            "facts": {name: value for name, value in self.facts.items() if name != "seed"},
            "nan_share": self._nan_share,
            "rows": dataclasses.asdict(self.rows) if self.rows else None,
            "law": self._own.told(),
            "footprint": [self._footprint.peak, self._footprint.kept],
            "plan": self._planner.learnt() if self._planner else {},
        }

    def expect(self, trial: Trial) -> Expectation:
        """The expectation of a trial, remembered while memory allows."""
        if trial in self._memory:
            self._memory.move_to_end(trial)
            return self._memory[trial]
        self._make_room()
        reach = numerics.effective_reach(self.reach, constant=trial.distribution in ONE_WAY)
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
        known = self.known.get("plan") or {}
        self._planner = Planner(self.reference, self.facts["shapes"], self._drawn, self.expect, self.secret, known)
        self.trials = self._planner.plan(budget_s)
        if self.reference.dynamic is not None:
            self.sizes = SizeTrials(self.reference, self.reference.dynamic, self.facts, self.expect, self.secret ^ 9)
            sized = self.sizes.plan(budget_s)
            self.trials = [*self.trials[:2], *sized[:EARLY], *self.trials[2:], *sized[EARLY:]]
        return self.trials

    def timed_trials(self) -> list[int]:
        """The trials at whose sizes a kernel is timed, beside the task's own."""
        chosen = self.sizes.timed(self.trials) if self.sizes is not None else []
        return [self.trials.index(trial) for trial in chosen]

    def at_sizes(self, which: int | dict[str, int] | None) -> dict[str, Any]:
        """Draw timed inputs at a trial's sizes from now on, at sizes by name, or at the task's own again; what the clock has to know of a
        call there."""
        trial = self._sized(which) if isinstance(which, dict) else None if which is None else self.trials[which]
        self._timed, self._timed_trial = [], trial
        if trial is None:
            self._fresh = self._own
            return self.facts
        self._fresh = FreshData(lambda one: dataclasses.replace(trial, seed=one, distribution="own").draw(self.reference))
        return size_facts(self.reference, self.facts, trial.draw(self.reference))

    def _sized(self, sizes: dict[str, int]) -> Trial:
        if self.reference.dynamic is None:
            raise TaskError(self.loaded.task.path, "its sizes are fixed, so nothing can be timed at others")
        place = self.reference.dynamic.said(sizes)
        return Trial(self.secret % (1 << 48), sizes=tuple(sizes.items()), place=place)

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
        started, rest = time.process_time(), [call for call in range(min(len(calls), len(self._timed))) if call != but]
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
