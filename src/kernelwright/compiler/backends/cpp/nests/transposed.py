"""Tiles that are stored along another axis than they are loaded or summed along: copied in blocks that are transposed in registers.

In: a permuted load of a kernel that does nothing but move and compute elements, or the permuted sums of a product. Out: its tile, kept
in the first cache with the axis last that its consumer walks along. Element by element, a load or a store of each step would touch
another line of memory; blocks of eight rows read and write whole lines. Measured on 16 matrices of 512 x 512: 7 GB/s one by one, 75 to
95 in blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelwright.compiler.lower.c_family.transpositions import Transposition
from kernelwright.compiler.lower.c_types import STORED, literal
from kernelwright.compiler.lower.tile_values import AtAccess, Value
from kernelwright.sketch.index import Poly, poly, to_c

if TYPE_CHECKING:
    from kernelwright.compiler.backends.cpp.schedule import Scheduler


def make_sums(scheduler: Scheduler, value: Value) -> None:
    """Copies a product's sums transposed into storage of its own: all who read it then do so along its rows."""
    sums = value.args[0]
    if sums.storage is None:
        scheduler.make(sums)
    assert sums.storage is not None
    storage = scheduler.declare(value)
    rows, columns = value.shape
    pitches = to_c(sums.storage.extents[-1]), to_c(storage.extents[-1])
    scheduler.out.append(
        f"transpose_copy({sums.storage.name}, {pitches[0]}, {storage.name}, {pitches[1]}, {to_c(rows)}, {to_c(columns)});"
    )
    value.storage = storage
    scheduler.count_work(value.shape, 2)


def make(scheduler: Scheduler, value: Value, transposition: Transposition) -> bool:
    """Writes the copy into storage of its own; False if the tile may begin outside its tensor."""
    data = value.args[0].data
    tensor, ranges = scheduler.context.tensors[data.tensor], scheduler.context.ranges
    starts = [axis.index if isinstance(axis, AtAccess) else axis.start for axis in data.axes]
    if not all(ranges.nonnegative(start) for start in starts):
        return False
    others = [k for k in range(len(starts)) if k not in (transposition.row_axis, transposition.column_axis)]
    if not all(ranges.below(starts[k], tensor.shape[k]) for k in others):
        return False

    def inside(axis: int, extent: int) -> tuple[str, bool]:
        """How much of the tile lies inside the tensor along an axis, and whether that is all."""
        if ranges.nonnegative(tensor.shape[axis] - starts[axis] - extent):
            return str(extent), True
        return f"min_of<int64_t>({extent}, {to_c(tensor.shape[axis] - starts[axis])})", False

    rows, all_rows = inside(transposition.row_axis, transposition.rows)
    columns, all_columns = inside(transposition.column_axis, transposition.columns)
    offset: Poly = poly(0)
    for start, stride in zip(starts, tensor.strides, strict=True):
        offset = offset + start * stride
    storage = scheduler.declare(value)
    if not (all_rows and all_columns):
        kind, pad = STORED[storage.dtype], literal(data.pad or 0, storage.dtype)
        size = transposition.rows * transposition.columns
        scheduler.out.append(f"if ({rows} < {transposition.rows} || {columns} < {transposition.columns})")
        scheduler.out.append(f"for (int64_t k = 0; k < {size}; ++k) {storage.name}[k] = {kind}({pad});")
    pitch = to_c(tensor.strides[transposition.column_axis])
    scheduler.out.append(
        f"transpose_copy(&{tensor.pointer}[{to_c(offset)}], {pitch}, {storage.name}, {transposition.columns}, {rows}, {columns});"
    )
    value.storage = storage
    scheduler.count_work(value.shape, 2)
    return True
