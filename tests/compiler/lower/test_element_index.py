"""Where elements lie: index arithmetic of views says what NumPy's views say."""

from __future__ import annotations

import numpy as np
import pytest

from kernelwright.compiler.lower.element_index import ElementIndex, Index, fitting, flat, offset
from kernelwright.compiler.lower.tile_values import AtAccess, SpanAccess, Value
from kernelwright.core.dtypes import DType
from kernelwright.sketch.index import Poly, Ranges, poly


class Numbers(ElementIndex):
    """Indices that are numbers."""

    def __init__(self) -> None:
        self.ranges = Ranges({})

    @property
    def bounds(self) -> Ranges:
        return self.ranges

    def is_stored(self, value: Value) -> bool:
        return value.op == "stored"

    def picked(self, indices: Value, index: Index) -> Poly:
        return poly("@picked")


def value(op: str, args: tuple[Value, ...], shape: tuple[int, ...], data: object = None) -> Value:
    return Value(0, op, args, tuple(map(poly, shape)), DType.i64, data)


def at(array: np.ndarray, index: Index) -> int:
    return int(array[tuple(int(p.constant or 0) for p in index)])


SHAPES = [(3,), (1, 4), (2, 3), (4, 1, 2), (3, 2, 2), (2, 1, 3, 2)]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_views_operand_is_read_where_numpy_reads_it(shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape)).reshape(shape)
    x = value("stored", (), shape)
    axis, begin = len(shape) - 1, shape[0] - 1
    order = (*range(1, len(shape)), 0)
    parts = (SpanAccess(poly(begin), poly(shape[0] - begin), poly(1)), *(AtAccess(poly(n - 1)) for n in shape[1:]))
    views = {
        "permute": (array.transpose(order), order),
        "unsqueeze": (np.expand_dims(array, axis), axis),
        "reshape": (array.reshape(-1), None),
        "part": (array[(slice(begin, None), *(n - 1 for n in shape[1:]))], parts),
    }
    for op, (seen, how) in views.items():
        view = value(op, (x,), seen.shape, how)
        for place in np.ndindex(*seen.shape):
            inner = Numbers().viewed(view, tuple(map(poly, place)))
            assert at(array, inner) == int(seen[place]), op


@pytest.mark.parametrize("shape", SHAPES)
def test_flat_positions_go_there_and_back(shape: tuple[int, ...]) -> None:
    extents = tuple(map(poly, shape))
    strides = [int(np.prod(shape[k + 1 :])) for k in range(len(shape))]
    for place in np.ndindex(*shape):
        index = tuple(map(poly, place))
        assert flat(extents, index) == offset(strides, index)
        assert Numbers().unflatten(flat(extents, index), extents) == index


def test_an_operand_that_is_broadcast_stays_at_its_only_element() -> None:
    assert fitting(value("stored", (), (1, 3)), (poly(7), poly(5), poly(2))) == (poly(0), poly(2))


def test_what_is_always_inside_needs_no_condition_and_what_is_picked_at_run_time_does() -> None:
    index = Numbers()
    index.ranges = Ranges({"i": (poly(0), poly(9))})
    assert index.outside([10], [poly("i")]) == []
    assert index.outside([8], [poly("i")]) == [poly(7) - poly("i")]
    assert len(index.outside([10], [poly("@picked")])) == 2


def test_comparisons_of_positions_are_conditions() -> None:
    iota = value("iota", (), (10,))
    three = Value(1, "const", (), (), DType.i64, 3)
    index = Numbers()
    i = poly("i")
    for op, gap in {"lt": poly(2) - i, "le": poly(3) - i, "gt": i - 4, "ge": i - 3}.items():
        test = Value(2, "binary", (iota, three), (poly(10),), DType.bool, op)
        assert index.comparison(test, (i,)) == gap
