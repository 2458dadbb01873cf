"""Coordinates are exact: whatever is simplified has the same value for every position."""

from __future__ import annotations

import itertools
import math

from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.compiler.graph.index_maps import IndexExpr, LoopAxis, axis_index, constant_index, flatten, unflatten
from kernelwright.sketch.index import OWN, poly


def value(c: IndexExpr, at: dict[LoopAxis, int]) -> int:
    there = c.substitute({loop_axis: poly(number) for loop_axis, number in at.items()})
    assert there.constant is not None
    return there.constant


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(1, 6), st.integers(-8, 8)), min_size=1, max_size=3),
    st.integers(-20, 20),
    st.integers(1, 12),
    st.integers(1, 5),
)
def test_division_and_remainder_are_exact(terms: list[tuple[int, int]], offset: int, by: int, again: int) -> None:
    loop_axes = [LoopAxis(extent) for extent, _ in terms]
    c = sum((axis_index(a) * k for a, (_, k) in zip(loop_axes, terms, strict=True)), constant_index(offset))
    for position in itertools.product(*(range(a.extent) for a in loop_axes)):
        at = dict(zip(loop_axes, position, strict=True))
        plain = value(c, at)
        assert value(c // by, at) == plain // by
        assert value(c % by, at) == plain % by
        assert value((c // by) // again, at) == plain // by // again
        assert value((c // by) * by + c % by, at) == plain
        low, high = OWN.interval(c // by)
        assert low is not None
        assert high is not None
        assert low <= plain // by <= high


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_reshaping_there_and_back_is_nothing(shape: list[int], data: st.DataObject) -> None:
    size = math.prod(shape)
    divisor = data.draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0]))
    coords = tuple(axis_index(LoopAxis(e)) for e in shape)
    there = unflatten(flatten(coords, tuple(shape)), (divisor, size // divisor))
    assert flatten(there, (divisor, size // divisor)) == flatten(coords, tuple(shape))
