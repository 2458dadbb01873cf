"""Which sizes nobody listed a kernel is tried at: a reference with a `Dynamic` in, trials out, and what was left out and why.

For each size that varies: the ends of its range, 1 (0 where the range has it), primes, multiples of common tiles and one more and one
less, and in the end one far beyond what is listed: as large as the reference answers within its share of time and memory, the others
small. In combinations and under distributions that nobody can foresee. A size at which the reference itself raises is left out and said.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kernelwright.core.errors import TaskError
from kernelwright.core.task import tree
from kernelwright.core.task.dynamic import Dynamic, SizeSymbol
from kernelwright.judge.reference.expect import Expectation
from kernelwright.judge.reference.reference import Reference
from kernelwright.judge.reference.resize import FITS, Fit, resized
from kernelwright.judge.reference.trials import ILL, Own, Trial

TILES = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
PRIMES = (
    2,
    3,
    5,
    7,
    11,
    13,
    17,
    19,
    23,
    29,
    31,
    37,
    53,
    61,
    67,
    97,
    101,
    127,
    131,
    193,
    251,
    257,
    383,
    509,
    521,
    769,
    1021,
    1031,
)
FAR_PRIMES = (1, 3, 7, 11, 17, 29)
COMBINATIONS = 7
MOST_BYTES = 64 << 20
"""Of inputs and outputs at a size, as far as the task's own are not more."""
FAR_SECONDS = 0.25
"""What a call of the reference at a far size may take, as far as its own does not take more."""
FARTHEST = 1 << 17
"""A size from which on nothing is larger, for sizes that are listed at up to 2048: room for a counter of 16 bits and for buffers on a
stack, and no sums so long that a plain loop's roundings are the kernel's fault."""
TIMED = 3
MOST_LEFT_OUT = 8
EARLY = 3
"""Trials at other sizes that come right after the first ones, for languages that are too slow for all."""
SIZED = -1
"""The workload of inputs that no workload of the task has."""


@dataclass
class SizeTrials:
    """Chooses the trials at other sizes. `expect` gives a trial's expectation, `seed` is the secret behind all of it."""

    reference: Reference
    dynamic: Dynamic
    facts: Mapping[str, Any]
    expect: Callable[[Trial], Expectation]
    seed: int
    left_out: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        self.example = self.reference.loaded.draw(self.seed % (1 << 32))[0]
        self.own_bytes = int(self.facts["input_bytes"]) + int(self.facts["output_bytes"])
        self.own_volume = self._volume(self.dynamic.examples)

    def plan(self, budget: float) -> list[Trial]:
        """The trials, those that tell most first. The budget is in seconds of processor time."""
        started = time.process_time()
        base = Own.of(self.expect(Trial(self.seed % (1 << 48))))
        found: list[Trial] = []
        for number, sizes in enumerate(self._combinations()):
            if number >= 3 and time.process_time() - started > 0.7 * budget:
                break
            trial = self._legal(sizes, base)
            if trial is not None and all(dict(other.sizes) != sizes for other in found):
                found.append(trial)
        for symbol in self.dynamic.symbols:
            far = self._farthest(symbol)
            if far and all(dict(other.sizes) != far for other in found):
                found += [trial for trial in [self._legal(far, None)] if trial is not None]
        found += [trial for trial in [self._legal(self._largest(), None)] if trial is not None]
        return found

    def timed(self, trials: list[Trial]) -> list[Trial]:
        """A few of the trials whose sizes are worth the clock: one in the middle, one small, one large."""
        by_volume = sorted((t for t in trials if t.sizes), key=lambda trial: self._volume(dict(trial.sizes)))
        some = [t for t in by_volume if min(dict(t.sizes).values(), default=0) > 0]
        if len(some) <= TIMED:
            return some
        return [some[len(some) // 4], some[len(some) // 2], some[-1]]

    def grows(self, trial: Trial) -> float:
        """How many times the blocks of the task's own sizes a kernel may have at a trial's, at most."""
        own, total = self.dynamic.examples, 1.0
        for name, size in trial.sizes:
            total *= max(1.0, size / max(own[name], 1))
        return total

    # -- which sizes ---------------------------------------------------------------------------------------------------------

    def _combinations(self) -> Iterator[dict[str, int]]:
        """The least of all, then what the dice give; all symbols change in most of them, one alone in some."""
        symbols = self.dynamic.symbols
        yield self._fitting({symbol.name: symbol.low for symbol in symbols})
        ends = {s.name: s.high for s in symbols if s.high is not None}
        for number in range(COMBINATIONS):
            sizes = {symbol.name: self._size(symbol, number) for symbol in symbols}
            if number == 2 and len(symbols) > 1:
                alone = self.dice.choice(symbols).name
                sizes = {**self.dynamic.examples, alone: sizes[alone]}
            yield self._fitting(sizes)
        for name, end in ends.items():
            yield self._fitting({**{s.name: self._size(s, 1) for s in symbols}, name: end})
        if any(s.low == 0 for s in symbols):
            yield {s.name: self._admitted(s, max(1, s.low)) if s.low else self.dice.choice((0, 1)) for s in symbols}

    def _size(self, symbol: SizeSymbol, number: int) -> int:
        """One size of a symbol: tile edges, primes, 1, beyond the listed one."""
        tile = self.dice.choice(TILES) * self.dice.choice((1, 1, 2, 3))
        choices = [
            tile + self.dice.choice((-1, 1)),
            self.dice.choice(PRIMES),
            2 * symbol.example + self.dice.choice(FAR_PRIMES),
            tile,
            symbol.example + self.dice.choice((-1, 1)),
            1,
            self.dice.choice(PRIMES),
        ]
        if symbol.high is not None:
            choices.append(symbol.high - self.dice.choice((0, 1)))
        return self._admitted(symbol, choices[(number + self.dice.randrange(len(choices))) % len(choices)])

    def _admitted(self, symbol: SizeSymbol, size: int) -> int:
        """The nearest size within the range."""
        high = symbol.high if symbol.high is not None else max(size, symbol.example)
        step = symbol.divisor
        size = max(symbol.low, min(size, high)) // step * step
        return size if size >= symbol.low else -(-symbol.low // step) * step

    def _fitting(self, sizes: dict[str, int]) -> dict[str, int]:
        """The largest are halved until inputs and outputs have a size that every machine has."""
        sizes = dict(sizes)
        most = max(MOST_BYTES / 4, 1.5 * self.own_bytes)
        while self.own_bytes * self._volume(sizes) / max(self.own_volume, 1) > most:
            name = max(sizes, key=lambda each: sizes[each] / max(1, self.dynamic.symbol(each).low))
            symbol = self.dynamic.symbol(name)
            smaller = self._admitted(symbol, sizes[name] // 2 + self.dice.choice((0, 1)))
            if smaller >= sizes[name]:
                break
            sizes[name] = smaller
        return sizes

    def _volume(self, sizes: Mapping[str, int]) -> float:
        """Elements of the largest input at these sizes."""
        shapes = self.dynamic.shapes([tensor.shape for tensor in tree.tensors(self.example)], sizes)
        return float(max((_product(shape) for shape in shapes), default=1))

    def _farthest(self, symbol: SizeSymbol) -> dict[str, int]:
        """One size as large as time and memory allow, the others small; {} where it can be no larger than it is."""
        rest = {s.name: self._admitted(s, self.dice.choice((1, 2, 3))) for s in self.dynamic.symbols if s.name != symbol.name}
        most = max(MOST_BYTES, 2 * self.own_bytes)
        seconds = max(FAR_SECONDS, 2 * float(self.facts["eager_seconds"]))
        reached, size = 0, max(symbol.example, 64)
        while size < FARTHEST * max(1, symbol.example / 2048) and (symbol.high is None or size < symbol.high):
            size *= 4
            at = self._admitted(symbol, size - self.dice.randrange(1, max(2, size // 3)))
            if self._seconds({**rest, symbol.name: at}, most) > seconds:
                break
            reached = at
            if symbol.high is not None and at >= symbol.high // 2:
                break
        return {**rest, symbol.name: reached} if reached > symbol.example else {}

    def _largest(self) -> dict[str, int]:
        """All sizes large together: no call that fits into memory and time has many more elements."""
        most, seconds = max(MOST_BYTES, 2 * self.own_bytes), max(FAR_SECONDS, 2 * float(self.facts["eager_seconds"]))
        reached, growing = self.dynamic.examples, list(self.dynamic.symbols)
        while growing:
            symbol = self.dice.choice(growing)
            size = self._admitted(symbol, 2 * reached[symbol.name] + self.dice.choice(FAR_PRIMES))
            larger = {**reached, symbol.name: size}
            if size <= reached[symbol.name] or size > FARTHEST or self._seconds(larger, most) > seconds:
                growing.remove(symbol)
            else:
                reached = larger
        return reached

    def _seconds(self, sizes: dict[str, int], most: float) -> float:
        """What a call of the reference takes there; infinite where it raises or would hold too much."""
        if self.own_bytes * self._volume(sizes) / max(self.own_volume, 1) > most:
            return float("inf")
        try:
            inputs = resized(self.example, self.dynamic, sizes, self.seed, "least")
            started = time.perf_counter()
            outputs = self.reference.native(inputs)
        except (TaskError, RuntimeError, MemoryError):
            return float("inf")
        held = sum(tensor.numel() * tensor.element_size() for tensor in tree.tensors(inputs))
        held += sum(tensor.numel() * tensor.element_size() for _, tensor in outputs)
        return time.perf_counter() - started if held <= most else float("inf")

    # -- which of them the reference takes -----------------------------------------------------------------------------------

    def _legal(self, sizes: dict[str, int], base: Own | None) -> Trial | None:
        """A trial at these sizes that the reference answers, under a distribution of its own where that is sound."""
        seed = self.dice.getrandbits(48)
        fit = self._fit(sizes, seed)
        if fit is None:
            return None
        plain = Trial(seed, sizes=tuple(sizes.items()), fit=fit, place=self.dynamic.said(sizes))
        names = ["normal", "negative", "ties", "large"] if base is not None and base.real else []
        if names and self.dice.random() < 0.6:
            other = replace(plain, distribution=self.dice.choice(names))
            if self._sound(other, base):
                return other
        if self._sound(plain, base):
            return plain
        self._leave_out(sizes, "the reference has no answer there that could be checked")
        return None

    def _fit(self, sizes: dict[str, int], seed: int) -> Fit | None:
        """How whole numbers go along, so that the reference takes them."""
        reason = ""
        for fit in FITS:
            try:
                self.reference.native(Trial(seed, sizes=tuple(sizes.items()), fit=fit).draw(self.reference))
            except (TaskError, RuntimeError) as error:
                cause = error.__cause__ or error
                reason = reason or f"{type(cause).__name__}: {(str(cause).strip().splitlines() or [''])[0][:160]}"
                continue
            return fit
        self._leave_out(sizes, f"the reference raised {reason}")
        return None

    def _leave_out(self, sizes: dict[str, int], why: str) -> None:
        if len(self.left_out) < MOST_LEFT_OUT:
            self.left_out.append(f"{self.dynamic.said(sizes)}: {why}")

    def _sound(self, trial: Trial, base: Own | None) -> bool:
        try:
            expectation = self.expect(trial)
        except (TaskError, RuntimeError):
            return False
        nan, infinite = expectation.odd_shares()
        own = base.odd if base is not None else (0.0, 0.0)
        empty = any(size == 0 for _, size in trial.sizes)
        if (nan > max(own[0], 0.02) or infinite > max(1.5 * own[1], 0.02)) and not empty:
            return False
        return empty or expectation.relative_error() <= max(ILL, 16 * base.error if base is not None else 0.0)


def size_facts(reference: Reference, facts: Mapping[str, Any], inputs: list[Any]) -> dict[str, Any]:
    """The facts of a task (facts.py) as they are at other sizes: what the clock and the roofline reckon with."""
    outputs, work = reference.measured(inputs)
    started = time.perf_counter()
    reference.native(inputs)
    seconds = time.perf_counter() - started
    moved = {"input_bytes": tree.tensors(inputs), "output_bytes": [tensor for _, tensor in outputs]}
    counted = {name: sum(t.numel() * t.element_size() for t in tensors) for name, tensors in moved.items()}
    return {**facts, **counted, "flops": work.flops, "longest_reduction": work.reach, "eager_seconds": seconds}


def described(dynamic: Dynamic | None, sizes: SizeTrials | None) -> dict[str, Any] | None:
    """What varies and what was not tried, for the verdict."""
    if dynamic is None or sizes is None:
        return None
    return {"ranges": dynamic.ranges, "left_out": sizes.left_out}


def _product(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total
