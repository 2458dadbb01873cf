"""Which trials a task gets: the reference and a time budget in, a list of trials out.

Always the task's own distribution under several seeds (at least three), every shape it offers, then other distributions and one
non-contiguous layout, as many as the budget allows (at least two distributions in all where the task has a float input; structures
of whole numbers, where it has those, in turn with them). At last one with infinities and NaN among its values, which is advice. A
distribution is used only where the reference stays finite and nearly as well conditioned as on its own inputs; if it is not
defined below zero, positive values are tried, then one input alone.
"""

from __future__ import annotations

import dataclasses
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from kernelwright.core.errors import TaskError
from kernelwright.core.task import tree
from kernelwright.judge.reference import inputs as drawing
from kernelwright.judge.reference.adversary import WHOLE
from kernelwright.judge.reference.expect import Expectation
from kernelwright.judge.reference.reference import Reference
from kernelwright.judge.reference.resize import Fit, resized

SEEDS = 3
MOST_SEEDS = 4
FIRST = 5
"""Distributions that always come first."""
ILL = 4096.0
"""Units of rounding that torch itself may be off, on the average, for a distribution to count as well conditioned."""


@dataclass(frozen=True)
class Trial:
    """One set of inputs, by recipe: the same trial always draws the same values."""

    seed: int
    workload: int = 0
    distribution: str = "own"
    positive: bool = False
    only: int | None = None
    strided: bool = False
    touched: bool = False
    """The same inputs as the untouched trial of this seed, but for a few dozen elements: for kernels that recognise inputs."""

    special: bool = False
    """With a few infinities and NaN. What a kernel makes of them is worth a warning, not a verdict."""

    sizes: tuple[tuple[str, int], ...] = ()
    """Other values of the sizes that vary (sizes.py); `fit` says how whole numbers go along."""

    fit: Fit = "follow"
    place: str = ""
    """These sizes in words: `x[0] = 7, x[1] = 64`."""

    @property
    def label(self) -> str:
        """The trial in words."""
        words = "the task's own inputs" if self.distribution == "own" else f"{self.distribution} inputs"
        if self.positive:
            words = f"positive {words}"
        words += ", a few elements changed" if self.touched else ""
        words += ", a few infinities and NaN among them" if self.special else ""
        words += f" at {self.place}" if self.place else ""
        return words + (f", shape {self.workload}" if self.workload else "") + (", not contiguous" if self.strided else "")

    def draw(self, reference: Reference, drawn: list[Any] | None = None) -> list[Any]:
        """The inputs, made of the task's own draw under this seed, or of some rows of it. The generators of torch, numpy and random
        are seeded anew."""
        if drawn is None:
            drawn = reference.loaded.draw(self.seed)[self.workload]
        if self.sizes and reference.dynamic is not None:
            drawn = resized(drawn, reference.dynamic, dict(self.sizes), self.seed + 5, self.fit)
        if self.distribution != "own":
            other = drawing.redistribute(drawn, self.distribution, self.seed + 1, positive=self.positive, only=self.only)
            drawn = other if other is not None else drawn
        if self.special:
            drawn = drawing.special(drawn, self.seed + 4)
        if self.touched:
            drawn = drawing.touched(drawn, self.seed + 3)
        if self.strided:
            drawn = drawing.strided(drawn, self.seed + 2) or drawn
        return drawn


@dataclass(frozen=True)
class Own:
    """What the task's own inputs are like, without the inputs: a large task's are not kept while other trials are tried."""

    real: tuple[int, ...]
    """The float inputs by position among the tensors, the largest last."""
    odd: tuple[float, float]
    error: float
    whole: bool

    @classmethod
    def of(cls, expectation: Expectation) -> Own:
        tensors = tree.tensors(expectation.inputs)
        real = [index for index, tensor in enumerate(tensors) if drawing.kind(tensor) in ("real", "probability")]
        real.sort(key=lambda index: int(tensors[index].numel()))
        return cls(tuple(real), expectation.odd_shares(), expectation.relative_error(), any(map(drawing.is_whole, tensors)))


class Planner:
    """Chooses trials. `draw` gives a trial's inputs, `expect` its expectation (and may remember it), `seed` is the secret behind all
    seeds."""

    def __init__(
        self,
        reference: Reference,
        workloads: int,
        draw: Callable[[Trial], list[Any]],
        expect: Callable[[Trial], Expectation],
        seed: int,
        known: dict[str, Any] | None = None,
    ) -> None:
        self.reference = reference
        self.workloads = workloads
        self.draw, self.expect = draw, expect
        self._known = known or {}
        self._recipes: dict[str, Any] = dict(self._known.get("recipes") or {})
        self._base: Own | None = None
        self._cost = 0.0
        self._defined = self._strided = False
        self.dice = random.Random(seed)

    def plan(self, budget: float) -> list[Trial]:
        """The trials, in the order in which they should be run: those that tell most come first. The budget is in seconds of
        processor time, so that a busy machine does not make the judge milder."""
        started = time.process_time()
        own = [Trial(self._seed(), workload) for workload in range(self.workloads)]
        own += [Trial(self._seed()) for _ in range(SEEDS - 1)]
        base, cost = self._first(own[0])
        others: list[Trial] = []
        for name in self._order(base):
            spent = time.process_time() - started + 2.0 * cost * (len(own) + len(others))
            if len(others) >= (2 if base.whole and base.real else 1) and spent > budget:
                break
            trial = self._legal(name, base)
            if trial is not None:
                others.append(trial)
        elsewhere = Trial(self._seed(), strided=True)
        if self._strides_fit(elsewhere):
            others.insert(min(2, len(others)), elsewhere)
        if time.process_time() - started + 2.0 * cost * (len(own) + len(others)) < budget:
            own += [Trial(self._seed()) for _ in range(MOST_SEEDS - SEEDS)]
        touched = dataclasses.replace(own[0], touched=True)
        planned = [own[0], touched, *others[:1], *own[1:], *others[1:]]
        last = Trial(self._seed(), special=True)
        self._defined = base.real != () and self._is_defined(last, base)
        return [*planned, last] if self._defined else planned

    def learnt(self) -> dict[str, Any]:
        """Which distributions the reference is sound on, and how the task's own inputs are; true of any seed."""
        base = None if self._base is None else dataclasses.asdict(self._base)
        return {"base": base, "cost": self._cost, "recipes": self._recipes, "defined": self._defined, "strided": self._strided}

    def _first(self, trial: Trial) -> tuple[Own, float]:
        """What the task's own inputs are like, and processor seconds of an expectation."""
        known = self._known.get("base")
        if known:
            self._base = Own(tuple(known["real"]), (known["odd"][0], known["odd"][1]), known["error"], known["whole"])
            self._cost = float(self._known["cost"])
        else:
            first = time.process_time()
            self._base = Own.of(self.expect(trial))
            self._cost = time.process_time() - first
        return self._base, self._cost

    def _is_defined(self, trial: Trial, base: Own) -> bool:
        """Whether the reference still says something once infinities and NaN are among the inputs."""
        if "defined" in self._known:
            return bool(self._known["defined"])
        try:
            nan, infinite = self.expect(trial).odd_shares()
        except TaskError:
            return False
        return base.odd[0] < nan + infinite < 0.9

    def _order(self, base: Own) -> list[str]:
        """The most telling ones first, the rest in an order nobody can foresee; whole numbers in turn with the others."""
        names = list(drawing.DISTRIBUTIONS) if base.real else []
        rest = names[FIRST:]
        self.dice.shuffle(rest)
        names, whole = names[:FIRST] + rest, list(WHOLE) if base.whole else []
        self.dice.shuffle(whole)
        return [name for pair in zip_longest(names, whole) for name in pair if name is not None]

    def _legal(self, name: str, base: Own) -> Trial | None:
        """A trial of this distribution on which the reference is sound, or None."""
        seed = self._seed()
        if name in self._recipes:
            recipe = self._recipes[name]
            again = None if recipe is None else Trial(seed, distribution=name, positive=recipe[0], only=recipe[1])
            # What was sound under other seeds need not be under this one; the trial needs this run anyway.
            return again if again is not None and self._sound(again, base) else None
        found = self._tried(name, seed, base)
        self._recipes[name] = None if found is None else [found.positive, found.only]
        return found

    def _tried(self, name: str, seed: int, base: Own) -> Trial | None:
        tries = [Trial(seed, distribution=name)]
        if name in WHOLE:
            drawn = self.draw(Trial(seed))
            return tries[0] if drawing.redistribute(drawn, name, seed + 1) and self._sound(tries[0], base) else None
        if name in drawing.POSITIVE:
            tries.append(Trial(seed, distribution=name, positive=True))
        if len(base.real) > 1:
            tries.append(Trial(seed, distribution=name, only=base.real[-1]))
        return next((trial for trial in tries if self._sound(trial, base)), None)

    def _sound(self, trial: Trial, base: Own) -> bool:
        try:
            expectation = self.expect(trial)
        except TaskError:
            return False
        (nan, infinite), (own_nan, own_infinite) = expectation.odd_shares(), base.odd
        if nan > own_nan or infinite > 1.5 * own_infinite:
            return False
        return expectation.relative_error() <= max(ILL, 16 * base.error)

    def _strides_fit(self, trial: Trial) -> bool:
        """Whether the reference takes non-contiguous inputs at all (`view` does not)."""
        if "strided" in self._known:
            self._strided = bool(self._known["strided"])
            return self._strided
        try:
            inputs = self.draw(trial)
            self.reference.native(inputs)
        except TaskError:
            return False
        self._strided = any(not tensor.is_contiguous() for tensor in tree.tensors(inputs))
        return self._strided

    def _seed(self) -> int:
        return self.dice.getrandbits(48)
