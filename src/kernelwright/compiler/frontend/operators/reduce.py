"""Reductions, arg-reductions and scans."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from kernelwright.compiler.frontend.operators.table import Result, rule
from kernelwright.compiler.frontend.rewrites.summed_product import summed
from kernelwright.compiler.graph import build as b
from kernelwright.compiler.graph.symbolic import Size, largest
from kernelwright.compiler.graph.values import ArgReduce, Scan, Value, View
from kernelwright.core.dtypes import FLOATS
from kernelwright.sketch.nodes import DType


def _axes(x: Value, axes: Any) -> tuple[int, ...]:
    return b.axes_of(axes if axes is None or isinstance(axes, int) else list(axes), len(x.shape))


@rule("sum", "sum.dim_IntList")
def sum_(out: Result, x: Value, axes: Any = None, keep: bool = False, **_: Any) -> Value:
    return _total(b.cast(x, out.dtype), _axes(x, axes), keep)


def _total(x: Value, axes: tuple[int, ...], keep: bool) -> Value:
    """A sum; along the outputs of a linear map it is taken before the product."""
    found = summed(x, axes[0]) if len(axes) == 1 else None
    if found is None:
        return b.reduce("sum", x, axes, keep)
    return b.unsqueeze(found, axes[0]) if keep else found


@rule("prod")
def prod(out: Result, x: Value, axes: Any = None, keep: bool = False, **_: Any) -> Value:
    return b.reduce("prod", b.cast(x, out.dtype), _axes(x, axes), keep)


@rule("mean")
def mean(out: Result, x: Value, axes: Any = None, keep: bool = False, **_: Any) -> Value:
    x, places = b.cast(x, out.dtype), _axes(x, axes)
    count = math.prod(x.shape[a] for a in places)
    return b.div(_total(x, places, keep), count) if count else b.mean(x, places, keep)


rule("amax")(lambda out, x, axes=(), keepdim=False: b.reduce("max", x, _axes(x, list(axes)), keepdim))
rule("amin")(lambda out, x, axes=(), keepdim=False: b.reduce("min", x, _axes(x, list(axes)), keepdim))
rule("max.default")(lambda out, x: b.reduce("max", x, _axes(x, None)))
rule("min.default")(lambda out, x: b.reduce("min", x, _axes(x, None)))
rule("any")(lambda out, x, axes=None, keepdim=False: b.reduce("any", b.cast(x, DType.bool), _axes(x, axes), keepdim))
rule("all")(lambda out, x, axes=None, keepdim=False: b.reduce("all", b.cast(x, DType.bool), _axes(x, axes), keepdim))


@rule("aminmax")
def aminmax(out: Any, x: Value, dim: int | None = None, keepdim: bool = False) -> tuple[Value, Value]:
    axes = _axes(x, dim)
    return b.reduce("min", x, axes, keepdim), b.reduce("max", x, axes, keepdim)


def arg_fold(op: str, x: Value, axis: int, keep: bool) -> Value:
    """Position of an extreme along an axis."""
    if not x.shape:
        return b.const(0, DType.i64)
    axis = b.axis_of(axis, len(x.shape))
    rest = (*x.shape[:axis], *x.shape[axis + 1 :])
    found: Value = ArgReduce(rest, DType.i64, op, x, axis) if x.shape[axis] != 1 else b.const(0, DType.i64, rest)
    return b.unsqueeze(found, axis) if keep else found


def _arg(op: str) -> Any:
    def build(out: Result, x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
        if dim is None:
            return b.reshape(arg_fold(op, b.reshape(x, (x.size,)), 0, False), out.shape)
        return arg_fold(op, x, dim, keepdim)

    return build


def _extreme(op: str) -> Any:
    def build(out: Any, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
        if not x.shape:
            return x, b.const(0, DType.i64)
        return b.reduce(op, x, (b.axis_of(dim, len(x.shape)),), keepdim), arg_fold(op, x, dim, keepdim)

    return build


for _op in ("max", "min"):
    rule(f"arg{_op}")(_arg(_op))
    rule(f"{_op}.dim")(_extreme(_op))


def variance(x: Value, axes: Sequence[int], correction: float, keep: bool) -> tuple[Value, Value]:
    """Variance and mean over axes, in two passes: exact where a sum of squares would cancel."""
    centre = b.mean(x, axes, keep=True)
    apart = b.sub(x, centre)
    total = b.reduce("sum", b.mul(apart, apart), axes, keep)
    count = math.prod(x.shape[a] for a in axes)
    if isinstance(count, Size) and correction == int(correction):
        return b.div(total, largest(count - int(correction), 0)), centre if keep else b.reshape(centre, total.shape)
    left = count - correction
    spread = b.div(total, float(left)) if left > 0 else b.div(total, 0.0)
    return spread, centre if keep else b.reshape(centre, spread.shape)


def _correction(args: tuple[Any, ...], kw: dict[str, Any]) -> tuple[Any, float, bool]:
    """(axes, correction, keepdim) of the overloads of var and std."""
    dim = kw.get("dim")
    keep = kw.get("keepdim", False)
    correction = kw.get("correction", 1 if kw.get("unbiased", True) else 0)
    rest = list(args)
    if rest and (rest[0] is None or isinstance(rest[0], list | tuple)):
        dim = rest.pop(0)
    if rest and isinstance(rest[0], bool):
        correction = 1 if rest.pop(0) else 0
    if rest and isinstance(rest[0], bool):
        keep = rest.pop(0)
    return dim, 1 if correction is None else correction, keep


@rule("var", "std")
def var(out: Result, x: Value, *args: Any, **kw: Any) -> Value:
    dim, correction, keep = _correction(args, kw)
    return variance(x, _axes(x, dim), correction, keep)[0]


rule("std")(lambda out, x, *args, **kw: b.apply("sqrt", var(out, x, *args, **kw)))


@rule("var_mean", "std_mean")
def var_mean(out: Any, x: Value, *args: Any, **kw: Any) -> tuple[Value, Value]:
    dim, correction, keep = _correction(args, kw)
    return variance(x, _axes(x, dim), correction, keep)


@rule("std_mean")
def std_mean(out: Any, x: Value, *args: Any, **kw: Any) -> tuple[Value, Value]:
    spread, centre = var_mean(out, x, *args, **kw)
    return b.apply("sqrt", spread), centre


@rule("logsumexp")
def logsumexp(out: Result, x: Value, axes: Any, keep: bool = False) -> Value:
    x = b.cast(x, out.dtype)
    where = _axes(x, axes)
    peak = b.reduce("max", x, where, keep=True)
    infinite = b.apply("isinf", peak, dtype=DType.bool, compute=x.dtype)
    steady = b.where(infinite, 0.0, peak, x.dtype)
    total = b.reduce("sum", b.apply("exp", b.sub(x, steady)), where, keep)
    return b.add(b.apply("log", total), b.reshape(steady, total.shape))


@rule("linalg_vector_norm", "norm")
def vector_norm(out: Result, x: Value, order: Any = 2, axes: Any = None, keep: bool = False, **_: Any) -> Value:
    x = b.cast(x, out.dtype)
    where = _axes(x, axes)
    size = b.apply("abs", x)
    if order == math.inf:
        return b.reduce("max", size, where, keep)
    if order == -math.inf:
        return b.reduce("min", size, where, keep)
    if order == 0:
        return b.reduce("sum", b.cast(b.apply("ne", x, 0, dtype=DType.bool, compute=x.dtype), x.dtype), where, keep)
    if order == 1:
        return b.reduce("sum", size, where, keep)
    if order is None or order == 2:
        return b.apply("sqrt", b.reduce("sum", b.mul(x, x), where, keep))
    return b.apply("pow", b.reduce("sum", b.apply("pow", size, float(order)), where, keep), 1.0 / order)


# ---------------------------------------------------------------- scans


def run(op: str, x: Value, axis: int) -> Value:
    """A running reduction; one over flipped data is a running reduction from the other end."""
    if not x.shape or x.size == 0:
        return x
    axis = b.axis_of(axis, len(x.shape))
    return x if x.shape[axis] == 1 else Scan(x.shape, x.dtype, op, x, axis)


rule("cumsum")(lambda out, x, axis, **_: run("sum", b.cast(x, out.dtype), axis))
rule("cumprod")(lambda out, x, axis, **_: run("prod", b.cast(x, out.dtype), axis))
rule("logcumsumexp")(lambda out, x, axis: run("logsumexp", x, axis))


@rule("flip")
def flip(out: Result, x: Value, axes: Sequence[int]) -> Value:
    """flip(scan(flip(x))) is a scan from the end."""
    if isinstance(x, Scan) and isinstance(x.source, View) and x.source.kind == "flip" and not x.reverse:
        inner = x.source.source
        if b.axes_of(axes, len(x.shape)) == (x.axis,) and _flipped_axis(x.source) == (x.axis,):
            return Scan(x.shape, x.dtype, x.op, inner, x.axis, reverse=True)
    return b.flip(x, axes)


def _flipped_axis(view: View) -> tuple[int, ...]:
    from kernelwright.compiler.graph.index_maps import LoopAxis, axis_index

    loop_axes = tuple(axis_index(LoopAxis(max(e, 2))) for e in view.shape)
    return tuple(i for i, (c, d) in enumerate(zip(loop_axes, view.move(loop_axes), strict=True)) if c != d)


def _running(op: str) -> Any:
    def build(out: Any, x: Value, axis: int) -> tuple[Value, Value]:
        if not x.shape:
            return x, b.const(0, DType.i64)
        axis = b.axis_of(axis, len(x.shape))
        best = run(op, x, axis)
        here = b.apply("eq", x, best, dtype=DType.bool, compute=x.dtype)  # the last place that reached the record so far
        if x.dtype in FLOATS:
            here = b.apply("logical_or", here, b.apply("isnan", x, dtype=DType.bool, compute=x.dtype))
        places = b.where(here, b.position(x.shape, axis), 0, DType.i64)
        return best, run("max", places, axis)

    return build


rule("cummax")(_running("max"))
rule("cummin")(_running("min"))
