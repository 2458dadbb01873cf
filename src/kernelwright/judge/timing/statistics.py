"""The few statistics of the clock, in plain Python: block times in, medians and bootstrap intervals of paired ratios out.

The parent imports neither torch nor numpy, and nothing here is ever loaded in a candidate's process, so nothing can be patched.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

RESAMPLES = 2000


@dataclass(frozen=True)
class Interval:
    """A median and the interval in which it lies with the stated confidence."""

    middle: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """The larger distance from the middle to an end, relative to the middle: how far the figure can be trusted."""
        return max(self.high - self.middle, self.middle - self.low) / self.middle if self.middle else 0.0


def bootstrap_median(values: Sequence[float], *, confidence: float = 0.95, resamples: int = RESAMPLES) -> Interval:
    """Percentile bootstrap of the median: honest about outliers and about few rounds, with no assumption on the noise's shape.

    The dice are fixed, so the same measurements always give the same interval."""
    if not values:
        raise ValueError("an interval needs at least one value")
    dice = random.Random(20)
    count = len(values)
    medians = sorted(median(dice.choices(values, k=count)) for _ in range(resamples))
    tail = (1.0 - confidence) / 2
    low = medians[int(tail * (resamples - 1))]
    high = medians[-1 - int(tail * (resamples - 1))]
    return Interval(median(values), low, high)


def paired_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> Interval:
    """The median of round-wise ratios. Both times of a pair come from the same round, so what disturbed the round cancels."""
    return bootstrap_median([top / bottom for top, bottom in zip(numerators, denominators, strict=True)])


def self_noise(first: Sequence[float], second: Sequence[float]) -> float:
    """How far a contender measured against itself strays from 1.00: the far end of its ratio's interval."""
    ratio = paired_ratio(first, second)
    return max(abs(ratio.high - 1.0), abs(1.0 - ratio.low))


def lower_quartile(values: Sequence[float]) -> float:
    """The value that three quarters of the sample exceed or equal."""
    return sorted(values)[len(values) // 4]


def upper_quartile(values: Sequence[float]) -> float:
    """The value that three quarters of the sample do not exceed."""
    return sorted(values)[-1 - len(values) // 4]
