"""Proofs by looking at every value there is: the last resort where names range over few numbers.

In: an expression and the ranges of its names. Out: its values as an array, or whether it is never negative. Needs NumPy, so nothing
that must start fast imports this file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from kernelwright.sketch.index.expressions import bounds, polynomial, symbols
from kernelwright.sketch.index.intervals import Interval
from kernelwright.sketch.index.normal_form import Poly
from kernelwright.sketch.nodes import Index, IndexOp, Int, Sym

MOST_POINTS = 1 << 20
"""Points that a proof by looking at all of them may take."""

_OPERATIONS = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "//": np.floor_divide,
    "%": np.remainder,
    "min": np.minimum,
    "max": np.maximum,
}


def evaluate_all(index: Index, env: Mapping[str, Any]) -> Any:
    """The values of an expression for arrays of values of its names."""
    match index:
        case Int(value):
            return np.int64(value)
        case Sym(name):
            return env[name]
        case IndexOp(op, left, right):
            return _OPERATIONS[op](evaluate_all(left, env), evaluate_all(right, env))
    raise TypeError(f"not an index: {index!r}")


def never_negative(index: Index, ranges: Mapping[str, Interval], given: Sequence[Index] = ()) -> bool:
    """Whether `index >= 0` wherever all of `given` are, for all values of the names in their ranges."""
    low = bounds(index, ranges)[0]
    if low is not None and low >= 0:
        return True
    for known in given:
        for factor in (1, *_factors(polynomial(index), polynomial(known))):
            rest = bounds(IndexOp("-", index, IndexOp("*", known, Int(factor))), ranges)[0]
            if rest is not None and rest >= 0:
                return True
    return _by_all_values(index, ranges, given)


def _factors(wanted: Poly, known: Poly) -> Iterator[int]:
    """By what a known expression could be multiplied to take the first terms of another away."""
    have = dict(known.terms)
    found = {count // have[m] for m, count in wanted.terms if m and m in have and count % have[m] == 0}
    yield from sorted(factor for factor in found if factor > 1)


def _by_all_values(index: Index, ranges: Mapping[str, Interval], given: Sequence[Index]) -> bool:
    useful = [known for known in given if symbols(known) & symbols(index)]
    names = sorted(symbols(index).union(*(symbols(known) for known in useful)))
    spans: list[tuple[int, int]] = []
    for name in names:
        low, high = ranges.get(name, (None, None))
        if low is None or high is None:
            return False
        spans.append((low, high))
    if prod(high - low + 1 for low, high in spans) > MOST_POINTS:
        return False
    axes: tuple[Any, ...] = np.ix_(*(np.arange(low, high + 1, dtype=np.int64) for low, high in spans))
    env = dict(zip(names, axes, strict=True))
    try:
        with np.errstate(all="raise"):
            wrong = evaluate_all(index, env) < 0
            for known in useful:
                wrong = wrong & (evaluate_all(known, env) >= 0)
    except FloatingPointError:
        return False
    return not bool(np.any(wrong))
