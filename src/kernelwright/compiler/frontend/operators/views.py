"""Views and makers: everything that renames, repeats, cuts, joins or fills without arithmetic on elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from kernelwright.compiler.frontend.operators.table import Result, rule
from kernelwright.compiler.frontend.rewrites.sections import in_sections
from kernelwright.compiler.graph import build as b
from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.index_maps import constant_index, divides
from kernelwright.compiler.graph.symbolic import likely, size_poly
from kernelwright.compiler.graph.values import Concat, Value
from kernelwright.core.dtypes import FLOATS
from kernelwright.sketch.index import rejoined
from kernelwright.sketch.nodes import DType

rule("view", "reshape", "_unsafe_view", "view_copy", "_reshape_copy", "flatten", "unflatten", "reshape_as", "expand_copy_none")(
    lambda out, x, *_, **__: b.reshape(x, out.shape)
)
rule("squeeze", "squeeze_copy", "unsqueeze", "unsqueeze_copy")(lambda out, x, *_: b.reshape(x, out.shape))
rule("permute", "permute_copy")(lambda out, x, order: b.permute(x, order))
rule("expand", "expand_copy")(lambda out, x, *_, **__: b.expand(x, out.shape))
rule("select", "select_copy")(lambda out, x, axis, index: b.select(x, axis, index))


@rule("t", "t_copy", "numpy_T")
def t(out: Result, x: Value) -> Value:
    return b.permute(x, tuple(reversed(range(len(x.shape)))))


@rule("transpose", "transpose_copy", "swapaxes")
def transpose(out: Result, x: Value, i: int, j: int) -> Value:
    order = list(range(len(x.shape)))
    order[i], order[j] = order[j], order[i]
    return b.permute(x, order)


@rule("slice", "slice_copy")
def slice_(out: Result, x: Value, axis: int = 0, start: int | None = None, stop: int | None = None, step: int = 1) -> Value:
    axis = b.axis_of(axis, len(x.shape))
    extent = x.shape[axis]
    return b.slice_axis(x, axis, 0 if start is None else start, extent if stop is None else stop, step)


@rule("split", "split_with_sizes", "split_copy", "split_with_sizes_copy", "chunk")
def split(out: tuple[Result, ...], x: Value, _: Any, axis: int = 0) -> tuple[Value, ...]:
    axis = b.axis_of(axis, len(x.shape))
    parts, start = [], 0
    for piece in out:
        parts.append(b.slice_axis(x, axis, start, start + piece.shape[axis]))
        start += piece.shape[axis]
    return tuple(parts)


@rule("unbind", "unbind_copy")
def unbind(out: tuple[Result, ...], x: Value, axis: int = 0) -> tuple[Value, ...]:
    return tuple(b.select(x, axis, i) for i in range(len(out)))


@rule("cat", "concat", "concatenate")
def cat(out: Result, parts: Sequence[Value], axis: int = 0) -> Value:
    axis = b.axis_of(axis, len(out.shape))
    used = [b.cast(p, out.dtype) for p in parts if p.shape != (0,) and (p.shape[axis] or len(parts) == 1)]
    if len(used) == 1:
        return used[0]
    return Concat(out.shape, out.dtype, tuple(used), axis) if used else b.const(0, out.dtype, out.shape)


@rule("stack")
def stack(out: Result, parts: Sequence[Value], axis: int = 0) -> Value:
    axis = b.axis_of(axis, len(out.shape))
    return cat(out, [b.unsqueeze(p, axis) for p in parts], axis)


@rule("constant_pad_nd")
def constant_pad(out: Result, x: Value, amounts: Sequence[int], value: float = 0) -> Value:
    rank = len(x.shape)
    before, after = [0] * rank, [0] * rank
    for i in range(len(amounts) // 2):
        before[rank - 1 - i], after[rank - 1 - i] = amounts[2 * i], amounts[2 * i + 1]
    return b.pad(x, before, after, value)


@rule("repeat")
def repeat(out: Result, x: Value, times: Sequence[int]) -> Value:
    source = (1,) * (len(times) - len(x.shape)) + x.shape
    x = b.reshape(x, source)

    def move(coords: v.MultiIndex) -> v.MultiIndex:
        return tuple(c % size_poly(e) if e else c for c, e in zip(coords, source, strict=True))

    return b.moved(x, out.shape, move, "repeat")


@rule("repeat_interleave.self_int")
def repeat_interleave(out: Result, x: Value, repeats: int, axis: int | None = None, **_: Any) -> Value:
    x = b.reshape(x, (x.size,)) if axis is None else x
    at = b.axis_of(axis or 0, len(x.shape))
    return b.moved(x, out.shape, lambda coords: tuple(c // repeats if i == at else c for i, c in enumerate(coords)), "repeat")


@rule("roll")
def roll(out: Result, x: Value, shifts: Sequence[int], axes: Sequence[int] = ()) -> Value:
    if not axes:
        return b.reshape(roll(out, b.reshape(x, (x.size,)), [*shifts], [0]), out.shape)
    for shift, axis in zip(shifts, axes, strict=True):
        axis = b.axis_of(axis, len(x.shape))
        extent = x.shape[axis]
        cut = extent - shift % extent if extent else 0
        if x.shape[axis] and cut != x.shape[axis]:
            ends = (b.slice_axis(x, axis, cut, x.shape[axis]), b.slice_axis(x, axis, 0, cut))
            x = Concat(x.shape, x.dtype, ends, axis)
    return x


@rule("diagonal", "diagonal_copy")
def diagonal(out: Result, x: Value, offset: int = 0, first: int = 0, second: int = 1) -> Value:
    i, j = b.axis_of(first, len(x.shape)), b.axis_of(second, len(x.shape))
    down, right = max(0, -offset), max(0, offset)

    def move(coords: v.MultiIndex) -> v.MultiIndex:
        rest = list(coords[:-1])
        return tuple(
            coords[-1] + down if axis == i else coords[-1] + right if axis == j else rest.pop(0) for axis in range(len(x.shape))
        )

    return b.moved(x, out.shape, move, "diagonal")


@rule("as_strided", "as_strided_copy")
def as_strided(out: Result, x: Value, shape: Sequence[int], strides: Sequence[int], offset: int | None = None) -> Value:
    flat = b.reshape(x, (x.size,))

    def move(coords: v.MultiIndex) -> v.MultiIndex:
        return (rejoined(sum((c * size_poly(s) for c, s in zip(coords, strides, strict=True)), constant_index(offset or 0))),)

    return b.moved(flat, out.shape, move, "strided")


@rule("unfold", "unfold_copy")
def unfold(out: Result, x: Value, axis: int, size: int, step: int) -> Value:
    axis = b.axis_of(axis, len(x.shape))

    def move(coords: v.MultiIndex) -> v.MultiIndex:
        return tuple(c * step + coords[-1] if i == axis else c for i, c in enumerate(coords[:-1]))

    return b.moved(x, out.shape, move, "windows")


@rule("im2col")
def im2col(
    out: Result, x: Value, kernel: Sequence[int], dilation: Sequence[int], padding: Sequence[int], stride: Sequence[int]
) -> Value:
    space = x.shape[2:]
    outputs = [
        (e + 2 * p - d * (k - 1) - 1) // s + 1 for e, k, d, p, s in zip(space, kernel, dilation, padding, stride, strict=True)
    ]
    cut = b.windows(x, kernel, stride, padding, dilation, outputs, 0 if any(padding) else None)
    return b.reshape(b.permute(cut, (0, 1, 4, 5, 2, 3)), out.shape)


@rule("pixel_shuffle")
def pixel_shuffle(out: Result, x: Value, r: int) -> Value:
    *lead, c, h, w = x.shape
    n = len(lead)
    cut = b.reshape(x, (*lead, c // (r * r), r, r, h, w))
    return b.reshape(b.permute(cut, (*range(n), n, n + 3, n + 1, n + 4, n + 2)), out.shape)


@rule("pixel_unshuffle")
def pixel_unshuffle(out: Result, x: Value, r: int) -> Value:
    *lead, c, h, w = x.shape
    n = len(lead)
    cut = b.reshape(x, (*lead, c, h // r, r, w // r, r))
    return b.reshape(b.permute(cut, (*range(n), n, n + 2, n + 4, n + 1, n + 3)), out.shape)


# ---------------------------------------------------------------- makers


@rule("full", "new_full", "full_like", "scalar_tensor", "fill")
def full(out: Result, *args: Any, **kw: Any) -> Value:
    value = kw.get("fill_value", args[-1] if args else 0)
    if isinstance(value, Value):
        return b.expand(b.cast(value, out.dtype), out.shape)
    return b.const(value, out.dtype, out.shape)


rule("zeros", "zeros_like", "new_zeros", "empty", "empty_like", "new_empty", "empty_permuted")(
    lambda out, *_, **__: b.const(0, out.dtype, out.shape)
)
rule("ones", "ones_like", "new_ones")(lambda out, *_, **__: b.const(1, out.dtype, out.shape))


def _ramp(out: Result, start: float, step: float) -> Value:
    if out.dtype in FLOATS:
        wide = DType.f64 if isinstance(start, float) or isinstance(step, float) else out.dtype
        ramp = b.cast(b.position(out.shape, 0), wide)
        return b.cast(b.add(b.mul(ramp, step), start), out.dtype)
    ramp = b.position(out.shape, 0)
    ramp = b.mul(ramp, int(step)) if step != 1 else ramp
    ramp = b.add(ramp, int(start)) if start else ramp
    return b.cast(ramp, out.dtype)


rule("arange.default")(lambda out, stop, **_: _ramp(out, 0, 1))
rule("arange.start")(lambda out, start, stop, **_: _ramp(out, start, 1))
rule("arange.start_step")(lambda out, start, stop, step=1, **_: _ramp(out, start, step))
rule("iota")(lambda out, length, start=0, step=1, **_: _ramp(out, start, step))


@rule("linspace")
def linspace(out: Result, start: float, stop: float, steps: int, **_: Any) -> Value:
    return _ramp(out, float(start), (stop - start) / max(steps - 1, 1))


@rule("eye")
def eye(out: Result, *_: Any, **__: Any) -> Value:
    same = b.apply("eq", b.position(out.shape, 0), b.position(out.shape, 1), dtype=DType.bool, compute=DType.i64)
    return b.cast(same, out.dtype)


def _triangle(x: Value, op: str, diagonal: int) -> Value:
    rank = len(x.shape)
    rows, columns = b.position(x.shape, rank - 2), b.position(x.shape, rank - 1)
    inside = b.apply(op, b.sub(columns, rows), diagonal, dtype=DType.bool, compute=DType.i64)
    made = b.where(inside, x, 0, x.dtype)
    if diagonal == 0:
        made.triangle = "lower" if op == "le" else "upper"  # products skip what is zero
    return made


rule("tril")(lambda out, x, diagonal=0: _triangle(x, "le", diagonal))
rule("triu")(lambda out, x, diagonal=0: _triangle(x, "ge", diagonal))


@rule("diag_embed")
def diag_embed(out: Result, x: Value, offset: int = 0, first: int = -2, second: int = -1) -> Value:
    rank = len(out.shape)
    i, j = b.axis_of(first, rank), b.axis_of(second, rank)
    down = max(0, -offset)

    def move(coords: v.MultiIndex) -> v.MultiIndex:
        return (*(c for axis, c in enumerate(coords) if axis not in (i, j)), coords[i] - down)

    grown = v.View(out.shape, x.dtype, x, move, fill=0, kind="diagonal")
    same = b.apply("eq", b.sub(b.position(out.shape, j), b.position(out.shape, i)), offset, dtype=DType.bool, compute=DType.i64)
    made = b.where(same, grown, 0, out.dtype)
    if offset == 0 and (i, j) == (rank - 2, rank - 1):
        made.diagonal_of = x
    return made


# ---------------------------------------------------------------- resampling


@rule("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d")
def upsample_nearest(out: Result, x: Value, *_: Any, **__: Any) -> Value:
    space = len(x.shape) - 2

    def move(coords: v.MultiIndex) -> v.MultiIndex:
        inner = []
        for i in range(space):
            o, e = out.shape[2 + i], x.shape[2 + i]
            if divides(e, o):
                inner.append(coords[2 + i] // size_poly(o // e))
                continue
            g = math.gcd(o, e)
            inner.append((coords[2 + i] * (e // g)) // (o // g))
        return (*coords[:2], *inner)

    return b.moved(x, out.shape, move, "repeat")


@rule("upsample_bilinear2d", "upsample_linear1d")
def upsample_linear(out: Result, x: Value, size: Any, align_corners: bool, *scales: Any) -> Value:
    """Last axis first: its results are kept while the rows above are mixed, each of them for several rows of the output."""
    if x.dtype not in FLOATS:
        raise NotImplementedError("linear resampling of whole numbers")
    given = scales[0] if scales and isinstance(scales[0], list | tuple) else scales
    grows = likely(math.prod(out.shape[3:])) > likely(math.prod(x.shape[3:]))

    def resampled(part: Value) -> Value:
        made = b.cast(part, x.dtype.computed)
        for axis in reversed(range(2, len(x.shape))):
            factor = given[axis - 2] if len(given) > axis - 2 else None
            made = _resampled(made, axis, out.shape[axis], align_corners, factor)
            made.stored = axis > 2 and likely(made.size) > likely(part.size)
        return b.cast(made, out.dtype)

    between = likely(x.size) // likely(math.prod(x.shape[3:])) * likely(math.prod(out.shape[3:])) if grows and x.size else 0
    return in_sections(x, out, between, resampled)


def _resampled(x: Value, axis: int, outputs: int, align_corners: bool, factor: float | None) -> Value:
    """Each place of the axis from the two next to it."""
    extent = x.shape[axis]
    at = b.cast(b.position((outputs,), 0), x.dtype)
    if align_corners:
        place = b.mul(at, (extent - 1) / (outputs - 1) if outputs > 1 else 0.0)
    else:
        place = b.add(b.mul(b.add(at, 0.5), 1.0 / factor if factor else extent / outputs), -0.5)
        place = b.apply("maximum", place, 0.0)
    first = b.apply("minimum", b.cast(place, DType.i64), extent - 1)
    weight = b.apply("minimum", b.apply("maximum", b.sub(place, b.cast(first, x.dtype)), 0.0), 1.0)
    weight = b.reshape(weight, (outputs,) + (1,) * (len(x.shape) - 1 - axis))
    shape = (*x.shape[:axis], outputs, *x.shape[axis + 1 :])

    def picked(index: Value) -> Value:
        def build(coords: v.MultiIndex, read: Any) -> v.MultiIndex:
            return (*coords[:axis], read(0, (coords[axis],), extent), *coords[axis + 1 :])

        return v.Gather(shape, x.dtype, x, (index,), build)

    low, high = picked(first), picked(b.apply("minimum", b.add(first, 1), extent - 1))
    return b.add(low, b.mul(b.sub(high, low), weight))
