"""Values that are stored along another axis than they are loaded or summed along.

In: a value. Out: whether it is a permuted load, or the permuted sums of a product, and which axes change places. Element by element, a
load or a store of each step would touch another line of memory: a language may copy such tiles in blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.compiler.lower.tile_values import AtAccess, SpanAccess, Value

LEAST = 8
"""Shorter sides are not worth a block."""


@dataclass(frozen=True)
class Transposition:
    """Which axes of the tensor become the rows and the columns of the tile, and their extents."""

    row_axis: int
    column_axis: int
    rows: int
    columns: int


def transposition_of(value: Value) -> Transposition | None:
    """How a value turns what it loads, or None if it does not."""
    if value.op != "permute" or value.args[0].op != "load" or value.args[0].storage is not None:
        return None
    axes = value.args[0].data.axes
    if not all(isinstance(axis, SpanAccess | AtAccess) for axis in axes):
        return None
    spans = [k for k, axis in enumerate(axes) if isinstance(axis, SpanAccess)]
    wide = [(d, extent.constant) for d, extent in enumerate(value.shape) if extent.constant != 1]
    if len(wide) != 2 or len(spans) != len(value.shape) or any(n is None or n < LEAST for _, n in wide):
        return None
    (row, rows), (column, columns) = wide
    row_axis, column_axis = (spans[value.data[d]] for d in (row, column))
    steps = [axes[k].step.constant for k in (row_axis, column_axis)]
    if row_axis != len(axes) - 1 or steps != [1, 1] or rows is None or columns is None:
        return None
    return Transposition(row_axis, column_axis, rows, columns)


def transposes_sums(value: Value) -> bool:
    """Whether a value is the sums of a product, seen from the other side."""
    if value.op != "permute" or value.data != (1, 0) or value.args[0].op not in ("stored", "gemm"):
        return False
    return all(extent.constant is not None and extent.constant >= LEAST for extent in value.shape)
