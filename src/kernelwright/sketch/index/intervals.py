"""Arithmetic on intervals of integers: `(low, high)`, both included; None where there is no bound."""

from __future__ import annotations

from collections.abc import Iterable

Interval = tuple[int | None, int | None]
UNKNOWN: Interval = (None, None)


def plus(a: Interval, b: Interval) -> Interval:
    """The sum."""
    return (
        None if a[0] is None or b[0] is None else a[0] + b[0],
        None if a[1] is None or b[1] is None else a[1] + b[1],
    )


def times(a: Interval, b: Interval) -> Interval:
    """The product."""
    if a == (0, 0) or b == (0, 0):
        return 0, 0
    if a[0] is None or a[1] is None or b[0] is None or b[1] is None:
        if a[0] is not None and a[0] >= 0 and b[0] is not None and b[0] >= 0:
            return a[0] * b[0], (None if a[1] is None or b[1] is None else a[1] * b[1])
        if a[0] is not None and a[0] == a[1]:
            low, high = (None if v is None else a[0] * v for v in b)
            return (low, high) if a[0] > 0 else (high, low)
        if b[0] is not None and b[0] == b[1]:
            return times(b, a)
        return UNKNOWN
    corners = [x * y for x in (a[0], a[1]) for y in (b[0], b[1])]
    return min(corners), max(corners)


def quotient(a: Interval, b: Interval) -> Interval:
    """Floor division by what is known to be positive."""
    if b[0] is None or b[0] <= 0:
        return UNKNOWN
    if b[1] is None:
        low = None if a[0] is None else min(a[0] // b[0], 0 if a[0] >= 0 else -1)
        high = None if a[1] is None else max(a[1] // b[0], 0 if a[1] >= 0 else -1)
        return low, high
    low = None if a[0] is None else min(a[0] // b[0], a[0] // b[1])
    high = None if a[1] is None else max(a[1] // b[0], a[1] // b[1])
    return low, high


def remainder(a: Interval, b: Interval) -> Interval:
    """What floor division by something positive leaves over."""
    if b[0] is None or b[0] <= 0:
        return UNKNOWN
    if a[0] is not None and a[1] is not None:
        if b[0] == b[1] and a[0] // b[0] == a[1] // b[0]:
            return a[0] % b[0], a[1] % b[0]
        if a[0] >= 0 and a[1] < b[0]:
            return a
    high = None if b[1] is None else b[1] - 1
    if a[0] is not None and a[0] >= 0 and a[1] is not None and (high is None or a[1] < high):
        high = a[1]
    return 0, high


def least(a: Interval, b: Interval) -> Interval:
    """The minimum: one side's upper bound holds for it alone."""
    low = None if a[0] is None or b[0] is None else min(a[0], b[0])
    highs = [v for v in (a[1], b[1]) if v is not None]
    return low, min(highs, default=None)


def greatest(a: Interval, b: Interval) -> Interval:
    """The maximum: one side's lower bound holds for it alone."""
    lows = [v for v in (a[0], b[0]) if v is not None]
    high = None if a[1] is None or b[1] is None else max(a[1], b[1])
    return max(lows, default=None), high


COMBINE = {"//": quotient, "%": remainder, "min": least, "max": greatest}


def joined(intervals: Iterable[Interval]) -> Interval:
    """The smallest interval around several."""
    items = list(intervals)
    lows, highs = [i[0] for i in items], [i[1] for i in items]
    low = None if None in lows else min(v for v in lows if v is not None)
    high = None if None in highs else max(v for v in highs if v is not None)
    return low, high
