"""Reading at positions computed at run time: embedding, gather, index, take, searchsorted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kernelwright.compiler.frontend.operators.table import Result, rule
from kernelwright.compiler.graph import build as b
from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.index_maps import IndexExpr
from kernelwright.compiler.graph.values import Gather, Value
from kernelwright.core.dtypes import FLOATS
from kernelwright.sketch.nodes import DType

Read = Callable[[int, v.MultiIndex, int], IndexExpr]


@rule("embedding")
def embedding(out: Result, table: Value, indices: Value, *_: Any, **__: Any) -> Value:
    rank = len(indices.shape)
    return Gather(out.shape, out.dtype, table, (indices,), lambda c, read: (read(0, c[:rank], table.shape[0]), c[rank]))


@rule("index_select")
def index_select(out: Result, x: Value, axis: int, index: Value) -> Value:
    if not x.shape:
        return x
    axis = b.axis_of(axis, len(x.shape))

    def build(coords: v.MultiIndex, read: Read) -> v.MultiIndex:
        at = (coords[axis],) if index.shape else ()
        return (*coords[:axis], read(0, at, x.shape[axis]), *coords[axis + 1 :])

    return Gather(out.shape, out.dtype, x, (index,), build)


@rule("gather")
def gather(out: Result, x: Value, axis: int, index: Value, **_: Any) -> Value:
    if not x.shape:
        return b.reshape(x, out.shape) if not index.shape else b.expand(x, out.shape)
    axis = b.axis_of(axis, len(x.shape))

    def build(coords: v.MultiIndex, read: Read) -> v.MultiIndex:
        return (*coords[:axis], read(0, coords, x.shape[axis]), *coords[axis + 1 :])

    return Gather(out.shape, out.dtype, x, (index,), build)


@rule("take")
def take(out: Result, x: Value, index: Value) -> Value:
    flat = b.reshape(x, (x.size,))
    return Gather(out.shape, out.dtype, flat, (index,), lambda c, read: (read(0, c, x.size),))


@rule("index", "_unsafe_index")
def index(out: Result, x: Value, indices: Sequence[Value | None]) -> Value:
    """NumPy's rule: the broadcast axes of the indices stand where the first was if they are neighbours, else at the front."""
    if any(i is not None and i.dtype == DType.bool for i in indices):
        raise NotImplementedError("a mask as index gives a shape that depends on data")
    given = [i for i, one in enumerate(indices) if one is not None]
    shape = b.broadcast_shape(*(indices[i].shape for i in given))  # type: ignore[union-attr]
    adjacent = given == list(range(given[0], given[-1] + 1))
    front = given[0] if adjacent else 0
    full = tuple(b.expand(indices[i], shape) for i in given)  # type: ignore[arg-type]

    def build(coords: v.MultiIndex, read: Read) -> v.MultiIndex:
        at = coords[front : front + len(shape)]
        rest = [*coords[:front], *coords[front + len(shape) :]]
        return tuple(read(given.index(i), at, e) if i in given else rest.pop(0) for i, e in enumerate(x.shape))

    return Gather(out.shape, out.dtype, x, full, build)


def bucket(out: Result, edges: Value, x: Value, right: bool) -> Value:
    """How many edges lie below each element (or at it): the position where it would be inserted."""
    rank = len(x.shape)
    wide = b.unsqueeze(x, rank)
    if len(edges.shape) > 1:
        edges = b.unsqueeze(edges, rank - 1)
    dtype = x.dtype if x.dtype in FLOATS or edges.dtype not in FLOATS else edges.dtype
    below = b.apply("le" if right else "lt", edges, wide, dtype=DType.bool, compute=dtype)
    return b.cast(b.reduce("sum", b.cast(below, DType.i64), (rank,)), out.dtype)


@rule("bucketize")
def bucketize(out: Result, x: Any, edges: Value, *, out_int32: bool = False, right: bool = False) -> Value:
    return bucket(out, edges, x, right)


@rule("searchsorted")
def searchsorted_(
    out: Result, edges: Value, x: Value, *, out_int32: bool = False, right: bool = False, side: str | None = None, **_: Any
) -> Value:
    return bucket(out, edges, x, right or side == "right")


@rule("one_hot")
def one_hot(out: Result, x: Value, classes: int = -1) -> Value:
    same = b.apply(
        "eq", b.unsqueeze(x, len(x.shape)), b.position(out.shape, len(out.shape) - 1), dtype=DType.bool, compute=DType.i64
    )
    return b.cast(same, out.dtype)
