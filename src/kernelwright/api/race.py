"""Two ways to compute the same, timed in turns: eager and ours, on the inputs that came.

In: two callables. Out: `Outcome`: the median of round-wise ratios with its interval, and whether it may be believed. A block repeats a
short call until it takes a fraction of a millisecond, and who goes first changes from round to round. Eager runs twice in each round: what
it seems to gain over itself is noise, and a gain of ours must lie beyond that. On a busy machine a race is run again until it is
quiet or several agree; where they do not agree, eager has won.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from kernelwright.api.machine_load import Watch
from kernelwright.judge.timing.statistics import bootstrap_median
from kernelwright.workers.exclusive import turn

BLOCK = 2e-4
"""Seconds that a timed block should last at least."""
ROUNDS = (5, 31)
"""Fewest and most rounds of a race."""
AGREEING = 3
"""Races of a busy machine that must say the same."""


@dataclass(frozen=True)
class Outcome:
    """Seconds of a call of each, and how many times as fast as eager ours is. `noise` is what eager seems to gain over itself."""

    eager: float
    ours: float
    gain: float
    low: float
    high: float
    noise: float = 0.0
    quiet: bool = True

    @property
    def won(self) -> bool:
        """Faster beyond doubt: the whole interval lies above what eager gains over itself."""
        return self.low > 1.0 + self.noise


def race(eager: Callable[[], Any], ours: Callable[[], Any], *, seconds: float = 0.3) -> Outcome:
    """The outcome of a quiet race, or on a busy machine the middle one of several that ours won, or the first that it did not. Both are
    warm when the clock starts. Processes of ours that race at the same time take turns."""
    outcomes: list[Outcome] = []
    while len(outcomes) < AGREEING:
        with turn():
            outcomes.append(_race(eager, ours, seconds))
        if outcomes[-1].quiet or not outcomes[-1].won:
            return outcomes[-1]
    return sorted(outcomes, key=lambda o: o.low)[AGREEING // 2]


def _race(eager: Callable[[], Any], ours: Callable[[], Any], seconds: float) -> Outcome:
    watch = Watch()
    first, own, second = timed((eager, ours, eager), seconds)
    both = [(a + b) / 2 for a, b in zip(first, second, strict=True)]
    ratio = bootstrap_median([a / b for a, b in zip(both, own, strict=True)], resamples=400, confidence=0.9)
    noise = abs(median(a / b for a, b in zip(first, second, strict=True)) - 1.0)
    return Outcome(median(both), median(own), ratio.middle, ratio.low, ratio.high, noise, watch.quiet)


def timed(contenders: Sequence[Callable[[], Any]], seconds: float) -> list[list[float]]:
    """The seconds of a call of each, one figure a round; all of them run in each round, in an order that changes."""
    lasting = 0.0
    for run in dict.fromkeys(contenders):
        run()
        started = time.perf_counter()
        run()
        lasting = max(lasting, time.perf_counter() - started)
    repeats = max(1, min(50, int(BLOCK / max(lasting, 1e-7))))
    times: list[list[float]] = [[] for _ in contenders]
    places = list(range(len(contenders)))
    end = time.perf_counter() + seconds
    for number in range(ROUNDS[1]):
        if number >= ROUNDS[0] and time.perf_counter() > end:
            break
        turned = places[number % len(places) :] + places[: number % len(places)]
        for place in turned if number // len(places) % 2 == 0 else reversed(turned):
            run = contenders[place]
            started = time.perf_counter()
            for _ in range(repeats):
                run()
            times[place].append((time.perf_counter() - started) / repeats)
    return times
