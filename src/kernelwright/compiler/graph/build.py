"""Constructors of lazy values, in the vocabulary of tensors: what the operator tables (design/operators) are written with.

Shapes are concrete; axes may be negative. Constructors do the algebra that is exact (a view of nothing is nothing, a cast to the
same dtype is nothing), so that operator tables can be written plainly.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.index_maps import IndexExpr, constant_index, flatten, unflatten
from kernelwright.compiler.graph.symbolic import Extent, Size, largest, likely, size_poly, smallest
from kernelwright.compiler.graph.values import Const, Map, Position, Reduce, Value, View
from kernelwright.core.dtypes import FLOATS, promoted
from kernelwright.core.operations import gives_bool
from kernelwright.sketch.nodes import DType

Number = float | int | bool | Size
FAR = 1 << 62
"""From here on, the end of a slice means the end of the axis."""


def const(value: Number, dtype: DType, shape: Sequence[Extent] = ()) -> Value:
    """One number everywhere, brought to the dtype."""
    if isinstance(value, Size):
        return cast(Const(tuple(shape), DType.i64, value), dtype)
    if dtype in FLOATS:
        value = float(value)
    elif dtype == DType.bool:
        value = bool(value)
    else:
        value = int(value)
    return Const(tuple(shape), dtype, value)


def broadcast_shape(*shapes: tuple[Extent, ...]) -> tuple[Extent, ...]:
    """The shape that several shapes broadcast to."""
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    return tuple(next((e for e in column if e != 1), 1) for column in zip(*padded, strict=True))


def cast(x: Value, dtype: DType) -> Value:
    """torch's `.to(dtype)`."""
    return x if x.dtype == dtype else Map(x.shape, dtype, "cast", (x,))


def apply(op: str, *args: Value | Number, dtype: DType | None = None, compute: DType | None = None) -> Value:
    """A pointwise operation. Numbers take the compute dtype; the result has that dtype too, except comparisons, which are bool."""
    tensors = [a for a in args if isinstance(a, Value)]
    compute = compute or dtype or tensors[0].dtype
    if dtype is None:
        dtype = DType.bool if gives_bool(op) else compute
    values = tuple(a if isinstance(a, Value) else const(a, compute) for a in args)
    return Map(broadcast_shape(*(a.shape for a in values)), dtype, op, values, compute)


def common(*args: Value | Number) -> DType:
    """The dtype in which torch compares its arguments: tensors of a dimension win over scalars of the same kind."""
    tensors = [a for a in args if isinstance(a, Value)]
    full = [t for t in tensors if t.shape] or tensors
    best = functools.reduce(promoted, (t.dtype for t in full))
    for other in tensors:
        if other.dtype in FLOATS and best not in FLOATS:
            best = other.dtype
    for number in args:
        if isinstance(number, float) and best not in FLOATS:
            best = DType.f32
        if isinstance(number, int | Size) and not isinstance(number, bool) and best == DType.bool:
            best = DType.i64
    return best


def add(a: Value, b: Value | Number) -> Value:
    return apply("add", a, b)


def sub(a: Value, b: Value | Number) -> Value:
    return apply("sub", a, b)


def mul(a: Value, b: Value | Number) -> Value:
    return apply("mul", a, b)


def div(a: Value, b: Value | Number) -> Value:
    return apply("div", a, b)


def where(condition: Value, a: Value | Number, b: Value | Number, dtype: DType) -> Value:
    """Elementwise choice in a dtype."""
    x, y = (t if isinstance(t, Value) else const(t, dtype) for t in (a, b))
    return Map(broadcast_shape(condition.shape, x.shape, y.shape), dtype, "where", (cast(condition, DType.bool), x, y), dtype)


def axis_of(axis: int, rank: int) -> int:
    """A possibly negative axis as a position."""
    return axis + rank if axis < 0 else axis


def axes_of(axes: Sequence[int] | int | None, rank: int) -> tuple[int, ...]:
    """Positions of axes; none given means all."""
    if axes is None:
        return tuple(range(rank))
    if isinstance(axes, int):
        axes = [axes]
    return tuple(sorted(axis_of(a, rank) for a in axes)) if axes else tuple(range(rank))


def reduce(op: str, x: Value, axes: Sequence[int], keep: bool = False, dtype: DType | None = None) -> Value:
    """A reduction over axes (positions); an empty one over nothing is the value itself."""
    axes = tuple(a for a in axes)
    dtype = dtype or x.dtype
    rest = tuple(e for i, e in enumerate(x.shape) if i not in axes)
    if x.size == 0 and math.prod(rest) != 0:
        start = {"sum": 0, "prod": 1, "any": False, "all": True}
        result: Value = const(start.get(op, float("-inf") if op == "max" else float("inf")), dtype, rest)
    elif all(x.shape[a] == 1 for a in axes):
        result = cast(reshape(x, rest), dtype)
    else:
        result = Reduce(rest, dtype, op, x, axes)
    return reshape(result, tuple(1 if i in axes else e for i, e in enumerate(x.shape))) if keep else result


def mean(x: Value, axes: Sequence[int], keep: bool = False) -> Value:
    """Sum over axes divided by their extent."""
    count = math.prod(x.shape[a] for a in axes)
    total = reduce("sum", x, axes, keep)
    return div(total, count) if count else const(float("nan"), x.dtype, total.shape)


# ---------------------------------------------------------------- views


def reshape(x: Value, shape: Sequence[Extent]) -> Value:
    """The same elements in row-major order under another shape."""
    shape = tuple(shape)
    if shape == x.shape:
        return x
    if isinstance(x, Const):
        return Const(shape, x.dtype, x.value)
    if isinstance(x, View) and x.kind == "reshape":
        return reshape(x.source, shape)
    source = x.shape

    def move(coords: v.MultiIndex) -> v.MultiIndex:
        return _reshaped(coords, shape, source)

    return View(shape, x.dtype, x, move, bijective=True, kind="reshape")


def _reshaped(coords: v.MultiIndex, shape: tuple[Extent, ...], source: tuple[Extent, ...]) -> v.MultiIndex:
    """Coordinates in `source` of coordinates in `shape`, matching up groups of axes of equal product first."""
    result: list[IndexExpr] = []
    i = j = 0
    while i < len(shape) or j < len(source):
        a, b = i, j
        p = q = 1
        while True:
            left, right, same = likely(p), likely(q), p == q
            if a < len(shape) and (left < right or (same and a == i)):
                p *= shape[a]
                a += 1
            elif b < len(source) and (right < left or (same and b == j)):
                q *= source[b]
                b += 1
            elif not same and (a < len(shape) or b < len(source)):  # equal in the example only
                p, q = math.prod(shape[i : a + 1]), math.prod(source[j : b + 1])
                a, b = min(a + 1, len(shape)), min(b + 1, len(source))
            else:
                break
        if 0 in (p, q):
            return (constant_index(0),) * len(source)
        while a < len(shape) and shape[a] == 1 and (b == len(source) or source[b] != 1):
            a += 1
        result += unflatten(flatten(coords[i:a], shape[i:a]), source[j:b])
        i, j = a, b
    return tuple(result)


def permute(x: Value, order: Sequence[int]) -> Value:
    """Axes in another order: result axis i is source axis order[i]."""
    order = tuple(axis_of(a, len(x.shape)) for a in order)
    if order == tuple(range(len(order))):
        return x

    def move(coords: v.MultiIndex) -> v.MultiIndex:
        return tuple(coords[order.index(i)] for i in range(len(order)))

    return View(tuple(x.shape[a] for a in order), x.dtype, x, move, bijective=True, kind="permute")


def expand(x: Value, shape: Sequence[Extent]) -> Value:
    """Broadcast to a shape (-1 keeps an extent)."""
    lead = len(shape) - len(x.shape)
    full = tuple(x.shape[i - lead] if e == -1 else e for i, e in enumerate(shape))
    if full == x.shape:
        return x
    if isinstance(x, Const):
        return Const(full, x.dtype, x.value)

    def move(coords: v.MultiIndex) -> v.MultiIndex:
        return tuple(constant_index(0) if x.shape[i] == 1 else coords[i + lead] for i in range(len(x.shape)))

    return View(full, x.dtype, x, move, kind="expand")


def unsqueeze(x: Value, axis: int) -> Value:
    axis = axis_of(axis, len(x.shape) + 1)
    return reshape(x, (*x.shape[:axis], 1, *x.shape[axis:]))


def squeeze(x: Value, axes: Sequence[int]) -> Value:
    axes = axes_of(axes, len(x.shape))
    return reshape(x, tuple(e for i, e in enumerate(x.shape) if i not in axes or e != 1))


def slice_axis(x: Value, axis: int, start: Extent, stop: Extent, step: Extent = 1) -> Value:
    """`x[start:stop:step]` along an axis, with Python's clamping; a negative step counts down from start."""
    extent = x.shape[axis]
    if any(isinstance(e, Size) for e in (extent, start, stop, step)):
        start, count = _sliced(extent, start, stop, step)
    elif step > 0:
        start, stop, step = slice(start, stop, step).indices(extent)
        count = max(0, -(-(stop - start) // step))
    else:
        count = max(0, -(-(start - stop) // -step))
    if start == 0 and step == 1 and count == extent:
        return x

    def move(coords: v.MultiIndex) -> v.MultiIndex:
        return (*coords[:axis], coords[axis] * size_poly(step) + size_poly(start), *coords[axis + 1 :])

    return View((*x.shape[:axis], count, *x.shape[axis + 1 :]), x.dtype, x, move, kind="slice")


def _sliced(extent: Extent, start: Extent, stop: Extent, step: Extent) -> tuple[Extent, Extent]:
    """First position and length of a slice where sizes vary: Python's clamping, as expressions."""
    if not isinstance(step, int) or step < 1:
        raise NotImplementedError("a slice of a dynamic size whose step is not a positive number")
    first, last = (clamped(extent + e if isinstance(e, int) and e < 0 else e, extent) for e in (start, stop))
    length = largest(last - first, 0)
    return first, length if step == 1 else (length + (step - 1)) // step


def clamped(position: Extent, extent: Extent) -> Extent:
    """A position brought into `0 ... extent`."""
    if isinstance(position, int) and position >= FAR:
        return extent
    return largest(smallest(position, extent), 0)


def select(x: Value, axis: int, index: Extent) -> Value:
    """One position along an axis, which disappears."""
    axis = axis_of(axis, len(x.shape))
    at = index + x.shape[axis] if index < 0 else index

    def move(coords: v.MultiIndex) -> v.MultiIndex:
        return (*coords[:axis], constant_index(at), *coords[axis:])

    return View((*x.shape[:axis], *x.shape[axis + 1 :]), x.dtype, x, move, kind="select")


def flip(x: Value, axes: Sequence[int]) -> Value:
    """Reversed along axes."""
    axes = axes_of(axes, len(x.shape))

    def move(coords: v.MultiIndex) -> v.MultiIndex:
        return tuple(c * -1 + size_poly(x.shape[i] - 1) if i in axes else c for i, c in enumerate(coords))

    return View(x.shape, x.dtype, x, move, kind="flip")


def pad(x: Value, before: Sequence[Extent], after: Sequence[Extent], fill: Number) -> Value:
    """Grown (or, if negative, cut) at both ends of each axis, filled with a number."""
    shape = tuple(b + e + a for b, e, a in zip(before, x.shape, after, strict=True))
    if shape == x.shape and not any(before):
        return x

    def move(coords: v.MultiIndex) -> v.MultiIndex:
        return tuple(c - size_poly(b) for c, b in zip(coords, before, strict=True))

    return View(shape, x.dtype, x, move, fill=fill, kind="pad")


def windows(
    x: Value, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], outputs: Sequence[Extent],
    fill: Number | None,
) -> Value:  # fmt: skip
    """Windows over the last axes: shape [leading…, outputs…, kernel…]; positions outside are `fill`."""
    n = len(kernel)
    lead = len(x.shape) - n

    def move(coords: v.MultiIndex) -> v.MultiIndex:
        inner = (coords[lead + i] * stride[i] + coords[lead + n + i] * dilation[i] - padding[i] for i in range(n))
        return (*coords[:lead], *inner)

    return View((*x.shape[:lead], *outputs, *kernel), x.dtype, x, move, fill=fill, kind="windows")


def position(shape: Sequence[Extent], axis: int, dtype: DType = DType.i64) -> Value:
    """The coordinate along an axis."""
    return Position(tuple(shape), dtype, axis)


def moved(x: Value, shape: Sequence[Extent], move: object, kind: str) -> Value:
    """A view by any function of coordinates that stays inside the source."""
    return View(tuple(shape), x.dtype, x, move, kind=kind)  # type: ignore[arg-type]
