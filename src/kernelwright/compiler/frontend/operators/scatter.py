"""Writing at positions computed at run time: scatter, index_put, index_add and their kin; and writing into slices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kernelwright.compiler.frontend.operators.index import bucket
from kernelwright.compiler.frontend.operators.reduce import run
from kernelwright.compiler.frontend.operators.table import Result, rule
from kernelwright.compiler.graph import build as b
from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.index_maps import IndexExpr
from kernelwright.compiler.graph.values import Concat, CustomKernel, Gather, Value
from kernelwright.sketch.nodes import DType

Place = Callable[[v.MultiIndex, Callable[[int, v.MultiIndex, int], IndexExpr]], v.MultiIndex]


def scattered(
    base: Value, updates: Value, indices: tuple[Value, ...], serial: tuple[int, ...], place: Place, combine: str
) -> Value:
    """`base` with `updates` written at `place`, which reads `indices` as a Gather does."""
    base, updates = b.cast(base, base.dtype), b.cast(updates, base.dtype)
    probe = Gather(updates.shape, base.dtype, base, indices, place)
    made = CustomKernel(base.shape, base.dtype, None, (base, updates, *indices))  # type: ignore[arg-type]

    def where(coords: v.MultiIndex, tracer: Any) -> v.MultiIndex:
        positions: v.MultiIndex = tracer.positions(probe, coords)
        return positions

    made.write = lambda builder, _: builder.scatter(made, base, updates, serial, where, combine)
    return made


COMBINE = {"add": "add", "sum": "add", "amax": "maximum", "amin": "minimum", "prod": "mul", "multiply": "mul"}


def _along(out: Result, x: Value, axis: int, index: Value, source: Any, combine: str) -> Value:
    if not isinstance(source, Value):
        source = b.const(source, x.dtype, index.shape)
    if not index.size:
        return x
    axis = b.axis_of(axis, len(x.shape))
    for i, extent in enumerate(index.shape):
        source = b.slice_axis(source, i, 0, extent)
    return scattered(
        x, source, (index,), (axis,), lambda c, read: (*c[:axis], read(0, c, x.shape[axis]), *c[axis + 1 :]), combine
    )


@rule("scatter")
def scatter(
    out: Result, x: Value, axis: int, index: Value, source: Any = None, *, value: Any = None, reduce: str | None = None
) -> Value:
    return _along(out, x, axis, index, source if source is not None else value, COMBINE[reduce] if reduce else "set")


rule("scatter_add")(lambda out, x, axis, index, source: _along(out, x, axis, index, source, "add"))


@rule("scatter_reduce")
def scatter_reduce(
    out: Result, x: Value, axis: int, index: Value, source: Value, reduce: str, *, include_self: bool = True
) -> Value:
    if not include_self or reduce == "mean":
        raise NotImplementedError(f"reduce={reduce!r}, include_self={include_self}")
    return _along(out, x, axis, index, source, COMBINE[reduce])


def _slices(out: Result, x: Value, axis: int, index: Value, source: Value, combine: str) -> Value:
    axis = b.axis_of(axis, len(x.shape))
    index = b.reshape(index, (index.size,))
    source = b.expand(source, (*x.shape[:axis], index.size, *x.shape[axis + 1 :]))
    return scattered(
        x, source, (index,), (axis,), lambda c, read: (*c[:axis], read(0, (c[axis],), x.shape[axis]), *c[axis + 1 :]), combine
    )


@rule("index_add")
def index_add(out: Result, x: Value, axis: int, index: Value, source: Value, *, alpha: float = 1) -> Value:
    return _slices(out, x, axis, index, source if alpha == 1 else b.mul(source, alpha), "add")


rule("index_copy")(lambda out, x, axis, index, source: _slices(out, x, axis, index, source, "set"))
rule("index_fill")(lambda out, x, axis, index, value: _slices(out, x, axis, index, b.const(value, x.dtype), "set"))


@rule("index_put", "_unsafe_index_put")
def index_put(out: Result, x: Value, indices: Sequence[Value | None], values: Value, accumulate: bool = False) -> Value:
    given = [i for i, one in enumerate(indices) if one is not None]
    if len(given) == 1 and indices[given[0]].dtype == DType.bool:  # type: ignore[union-attr]
        mask: Value = indices[given[0]]  # type: ignore[assignment]
        if values.size != 1 or accumulate:
            raise NotImplementedError("a mask as index, with values that depend on it")
        mask = b.reshape(mask, (*mask.shape, *(1 for _ in x.shape[given[0] + len(mask.shape) :])))
        return b.where(mask, b.reshape(values, ()), x, x.dtype)
    shape = b.broadcast_shape(*(indices[i].shape for i in given))  # type: ignore[union-attr]
    adjacent = given == list(range(given[0], given[-1] + 1))
    front = given[0] if adjacent else 0
    full = tuple(b.expand(indices[i], shape) for i in given)  # type: ignore[arg-type]
    rest = [e for i, e in enumerate(x.shape) if i not in given]
    values = b.expand(values, (*rest[:front], *shape, *rest[front:]))

    def place(coords: v.MultiIndex, read: Callable[[int, v.MultiIndex, int], IndexExpr]) -> v.MultiIndex:
        at = coords[front : front + len(shape)]
        others = [*coords[:front], *coords[front + len(shape) :]]
        return tuple(read(given.index(i), at, e) if i in given else others.pop(0) for i, e in enumerate(x.shape))

    return scattered(x, values, full, tuple(range(front, front + len(shape))), place, "add" if accumulate else "set")


@rule("slice_scatter")
def slice_scatter(
    out: Result, x: Value, source: Value, axis: int = 0, start: int | None = None, stop: int | None = None, step: int = 1
) -> Value:
    axis = b.axis_of(axis, len(x.shape))
    first, last, _ = slice(start, stop, step).indices(x.shape[axis])
    if step == 1:
        parts = [
            b.slice_axis(x, axis, 0, first),
            b.cast(source, x.dtype),
            b.slice_axis(x, axis, max(first, last), x.shape[axis]),
        ]
        used = tuple(p for p in parts if p.shape[axis])
        return used[0] if len(used) == 1 else Concat(x.shape, x.dtype, used, axis)
    at = b.sub(b.position(x.shape, axis), first)
    inside = b.apply("eq", b.apply("mod", at, step), 0, dtype=DType.bool, compute=DType.i64)
    inside = b.apply("logical_and", inside, b.apply("ge", at, 0, dtype=DType.bool, compute=DType.i64))
    inside = b.apply("logical_and", inside, b.apply("lt", at, last - first, dtype=DType.bool, compute=DType.i64))

    def move(coords: v.MultiIndex) -> v.MultiIndex:
        return tuple((c - first) // step if i == axis else c for i, c in enumerate(coords))

    return b.where(inside, v.View(x.shape, source.dtype, source, move, fill=0, kind="windows"), x, x.dtype)


@rule("select_scatter")
def select_scatter(out: Result, x: Value, source: Value, axis: int, index: int) -> Value:
    axis = b.axis_of(axis, len(x.shape))
    index = index + x.shape[axis] if index < 0 else index
    return slice_scatter(out, x, b.unsqueeze(source, axis), axis, index, index + 1)


@rule("masked_scatter")
def masked_scatter(out: Result, x: Value, mask: Value, source: Value) -> Value:
    """Takes source elements in order where the mask holds: the running count of the mask says which."""
    mask = b.expand(mask, x.shape)
    flat = b.reshape(b.cast(mask, DType.i64), (x.size,))
    rank = b.reshape(run("sum", flat, 0), x.shape)
    place = b.apply("maximum", b.sub(rank, 1), 0)
    flat_source = b.reshape(source, (source.size,))
    taken = Gather(x.shape, x.dtype, flat_source, (place,), lambda c, read: (read(0, c, source.size),))
    return b.where(mask, taken, x, x.dtype)


@rule("repeat_interleave.Tensor")
def repeat_interleave(out: Result, counts: Value, *, output_size: int | None = None) -> Value:
    """Position z belongs to the first entry whose running total exceeds z."""
    totals = run("sum", b.cast(counts, DType.i64), 0)
    return bucket(out, totals, b.position(out.shape, 0), right=True)
