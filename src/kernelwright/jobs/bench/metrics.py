"""Records in, figures out: shares, fast_p, geometric means and medians with bootstrap intervals, groups. Plain Python, no numpy.

Honest by construction: every share's denominator is all tasks of the group, also those that were unusable or too large. Speedups are
given twice: over the timed, correct kernels alone, and with every other task counted as 1.0x (whoever gets no kernel keeps eager).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from statistics import median

from pydantic import Field

from kernelwright.jobs.bench.record import Frozen, Record

POINTS = (
    0.0,
    0.25,
    0.5,
    0.6,
    0.7,
    0.8,
    0.9,
    1.0,
    1.1,
    1.2,
    1.3,
    1.4,
    1.5,
    1.75,
    2.0,
    2.5,
    3.0,
    4.0,
    5.0,
    7.0,
    10.0,
    15.0,
    20.0,
)
RESAMPLES = 1000


class Figure(Frozen):
    """A statistic over tasks and its 95 % bootstrap interval (tasks drawn anew); `count` is how many it is over."""

    value: float
    low: float
    high: float
    count: int


class Speed(Frozen):
    """Speedups over one contender."""

    geomean_correct: Figure | None
    geomean_failures_as_one: Figure | None
    median_correct: Figure | None
    fast_p: tuple[tuple[float, float], ...]
    """(p, share of all tasks that are correct and more than p times as fast); at p = 0 it is the share that is correct."""
    surely_faster: int
    """Tasks whose whole interval lies above 1."""
    slower: int
    """Tasks whose whole interval lies below 1."""
    slowest: float | None
    fastest: float | None

    def fast(self, p: float) -> float:
        return dict(self.fast_p)[p]


class Summary(Frozen):
    """The figures of a group of tasks."""

    tasks: int
    correct: int
    timed: int
    correct_share: float
    over_eager: Speed
    over_compile: Speed | None
    roofline_median: Figure | None
    roofline_memory_median: Figure | None = None
    """The same over the tasks that are bounded by memory."""
    seconds_median: float
    seconds_total: float
    phases_median: dict[str, float] = Field(default_factory=dict)
    """Median seconds of each phase of a correct kernel, where it came to that phase."""
    cost_usd: float


def summarise(records: Sequence[Record]) -> Summary:
    """All figures of these tasks."""
    right = [record for record in records if record.correct]
    timed = [record.timing for record in right if record.timing]
    roofs = [(timing.roofline_fraction, timing.bound) for timing in timed if timing.roofline_fraction]
    compiled = any(record.speedup_vs_compile for record in records)
    return Summary(
        tasks=len(records),
        correct=len(right),
        timed=len(timed),
        correct_share=len(right) / len(records) if records else 0.0,
        over_eager=speed(records, eager_triple),
        over_compile=speed(records, compile_triple) if compiled else None,
        roofline_median=bootstrap([share for share, _ in roofs], median),
        roofline_memory_median=bootstrap([share for share, bound in roofs if bound == "memory"], median),
        seconds_median=round(median([record.seconds for record in records]), 2) if records else 0.0,
        seconds_total=round(sum(record.seconds for record in records), 1),
        phases_median=phases(right),
        cost_usd=sum(record.cost_usd for record in records),
    )


def phases(records: Sequence[Record]) -> dict[str, float]:
    """The median of each phase, in the order in which the phases come."""
    names = dict.fromkeys(name for record in records for name in record.phases)
    return {name: round(median([r.phases[name] for r in records if name in r.phases]), 3) for name in names}


Triple = tuple[float, float, float]


def eager_triple(record: Record) -> Triple | None:
    """(speedup, low, high) over eager."""
    timing = record.timing
    return (timing.speedup, timing.speedup_low, timing.speedup_high) if timing else None


def compile_triple(record: Record) -> Triple | None:
    """(speedup, low, high) over torch.compile."""
    timing = record.timing
    if timing is None or timing.speedup_vs_compile is None:
        return None
    middle = timing.speedup_vs_compile
    return middle, timing.speedup_vs_compile_low or middle, timing.speedup_vs_compile_high or middle


def speed(records: Sequence[Record], triple: Callable[[Record], Triple | None]) -> Speed:
    """Speedups of a group over one contender."""
    known = [found for record in records if record.correct and (found := triple(record)) is not None]
    values = [middle for middle, _, _ in known]
    right = sum(record.correct for record in records)
    total = max(1, len(records))
    shares = [(p, (right if p == 0 else sum(value > p for value in values)) / total) for p in POINTS]
    return Speed(
        geomean_correct=bootstrap(values, geomean),
        geomean_failures_as_one=bootstrap(values + [1.0] * (len(records) - len(values)), geomean) if values else None,
        median_correct=bootstrap(values, median),
        fast_p=tuple(shares),
        surely_faster=sum(low > 1 for _, low, _ in known),
        slower=sum(high < 1 for _, _, high in known),
        slowest=min(values, default=None),
        fastest=max(values, default=None),
    )


def geomean(values: Sequence[float]) -> float:
    """The mean of ratios that treats 2x and 0.5x alike."""
    return math.exp(sum(map(math.log, values)) / len(values))


def bootstrap(values: Sequence[float], statistic: Callable[[Sequence[float]], float]) -> Figure | None:
    """The statistic and the interval in which it lies when tasks are drawn anew; the dice are fixed, so a report is repeatable."""
    if not values:
        return None
    dice = random.Random(6)
    drawn = sorted(statistic(dice.choices(values, k=len(values))) for _ in range(RESAMPLES))
    edge = int(0.025 * (RESAMPLES - 1))
    return Figure(value=statistic(values), low=drawn[edge], high=drawn[-1 - edge], count=len(values))


def group(records: Sequence[Record], by: Callable[[Record], str]) -> dict[str, list[Record]]:
    """Records by a word of theirs, in the order in which the words appear."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(by(record), []).append(record)
    return found
