"""The few statistics of the clock, in plain Python: block times in, medians and bootstrap intervals of paired ratios out.

The parent imports neither torch nor numpy, and nothing here is ever loaded in a candidate's process, so nothing can be patched.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean, median

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


def bootstrap_median(
    values: Sequence[float], *, starts: Sequence[int] = (0,), confidence: float = 0.95, resamples: int = RESAMPLES
) -> Interval:
    """Percentile bootstrap of the median: honest about outliers and about few rounds, with no assumption on the noise's shape.

    `starts` says where values from another process begin: processes are drawn first and values within them then, so that the interval
    covers what differs between processes. The dice are fixed, so the same measurements always give the same interval."""
    if not values:
        raise ValueError("an interval needs at least one value")
    dice = random.Random(20)
    borders = [*starts, len(values)]
    groups = [group for group in (values[start:stop] for start, stop in pairwise(borders)) if group]
    medians = sorted(_resampled(groups, dice) for _ in range(resamples))
    tail = (1.0 - confidence) / 2
    low = medians[int(tail * (resamples - 1))]
    high = medians[-1 - int(tail * (resamples - 1))]
    return Interval(_middle(groups), low, high)


def _resampled(groups: Sequence[Sequence[float]], dice: random.Random) -> float:
    if len(groups) == 1:
        return median(dice.choices(groups[0], k=len(groups[0])))
    drawn = dice.choices(groups, k=len(groups))
    return _middle([dice.choices(group, k=len(group)) for group in drawn])


def _middle(groups: Sequence[Sequence[float]]) -> float:
    """Each process counts alike, however many rounds it had."""
    return mean(median(group) for group in groups)


def paired_ratio(numerators: Sequence[float], denominators: Sequence[float], starts: Sequence[int] = (0,)) -> Interval:
    """The median of round-wise ratios. Both times of a pair come from the same round, so what disturbed the round cancels."""
    return bootstrap_median([top / bottom for top, bottom in zip(numerators, denominators, strict=True)], starts=starts)


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
