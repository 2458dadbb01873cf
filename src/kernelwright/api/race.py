"""Two ways to compute the same, timed in turns: eager and ours, on the inputs that came.

In: two callables. Out: `Outcome`: the median of round-wise ratios with its interval. A block repeats a short call until it takes a fraction
of a millisecond, and who goes first changes from round to round.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from kernelwright.judge.timing.statistics import bootstrap_median

BLOCK = 2e-4
"""Seconds that a timed block should last at least."""
ROUNDS = (5, 31)
"""Fewest and most rounds of a race."""


@dataclass(frozen=True)
class Outcome:
    """Seconds of a call of each, and how many times as fast as eager ours is."""

    eager: float
    ours: float
    gain: float
    low: float
    high: float

    @property
    def won(self) -> bool:
        """Faster beyond doubt: the whole interval lies above 1."""
        return self.low > 1.0


def race(eager: Callable[[], Any], ours: Callable[[], Any], *, seconds: float = 0.3) -> Outcome:
    """Both are warm when the clock starts: each runs twice first."""
    lasting = 0.0
    for run in (eager, ours):
        run()
        started = time.perf_counter()
        run()
        lasting = max(lasting, time.perf_counter() - started)
    repeats = max(1, min(50, int(BLOCK / max(lasting, 1e-7))))
    times: dict[Callable[[], Any], list[float]] = {eager: [], ours: []}
    end = time.perf_counter() + seconds
    for number in range(ROUNDS[1]):
        if number >= ROUNDS[0] and time.perf_counter() > end:
            break
        for run in (eager, ours) if number % 2 else (ours, eager):
            started = time.perf_counter()
            for _ in range(repeats):
                run()
            times[run].append((time.perf_counter() - started) / repeats)
    ratio = bootstrap_median([a / b for a, b in zip(times[eager], times[ours], strict=True)], resamples=400, confidence=0.9)
    return Outcome(median(times[eager]), median(times[ours]), ratio.middle, ratio.low, ratio.high)
