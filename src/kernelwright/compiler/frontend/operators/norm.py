"""Normalisations and softmaxes, written as reductions and pointwise maths over the same rows, so that they fuse into one kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from kernelwright.compiler.frontend.operators.reduce import variance
from kernelwright.compiler.frontend.operators.table import Result, rule
from kernelwright.compiler.graph import build as b
from kernelwright.compiler.graph.values import Leaf, Value, View
from kernelwright.sketch.nodes import DType


@rule("_softmax", "softmax", "_safe_softmax")
def softmax(out: Result, x: Value, axis: int, *_: Any, **__: Any) -> Value:
    x = b.cast(x, out.dtype)
    if not x.shape:
        return b.const(1.0, out.dtype)
    axis = b.axis_of(axis, len(x.shape))
    peak = b.reduce("max", x, (axis,), keep=True)
    raised = b.apply("exp", b.sub(x, peak))
    return b.div(raised, b.reduce("sum", raised, (axis,), keep=True))


@rule("_log_softmax", "log_softmax")
def log_softmax(out: Result, x: Value, axis: int, *_: Any, **__: Any) -> Value:
    x = b.cast(x, out.dtype)
    if not x.shape:
        return b.const(0.0, out.dtype)
    axis = b.axis_of(axis, len(x.shape))
    low = b.sub(x, b.reduce("max", x, (axis,), keep=True))
    return b.sub(low, b.apply("log", b.reduce("sum", b.apply("exp", low), (axis,), keep=True)))


def normalised(x: Value, axes: Sequence[int], eps: float, *, twice: bool = False) -> tuple[Value, Value, Value]:
    """(x - mean) / sqrt(var + eps) over axes, and mean and reciprocal deviation with the axes kept. `twice` takes the mean of what is
    left once more: where x may lie far from zero beside its spread, the first mean's rounding would show in every element."""
    spread, centre = variance(x, axes, 0, keep=True)
    scale = b.apply("rsqrt", b.add(spread, eps))
    off = b.sub(x, centre)
    if twice:
        off = b.sub(off, b.mean(off, axes, keep=True))
    return b.mul(off, scale), centre, scale


def _computed(x: Value) -> bool:
    """Whether x is more than a tensor in memory, or a view of one."""
    while isinstance(x, View):
        x = x.source
    return not isinstance(x, Leaf)


def affine(x: Value, weight: Value | None, bias: Value | None) -> Value:
    """x * weight + bias, where given."""
    x = b.mul(x, weight) if weight is not None else x
    return b.add(x, bias) if bias is not None else x


@rule("native_layer_norm", "layer_norm")
def layer_norm(
    out: Any, x: Value, shape: Sequence[int], weight: Value | None = None, bias: Value | None = None, eps: float = 1e-5, *_: Any
) -> Any:
    axes = tuple(range(len(x.shape) - len(shape), len(x.shape)))
    y, centre, scale = normalised(x, axes, eps)
    y = affine(y, weight, bias)
    return (y, centre, scale) if isinstance(out, tuple) else y


@rule("rms_norm", "_fused_rms_norm")
def rms_norm(out: Any, x: Value, shape: Sequence[int], weight: Value | None = None, eps: float | None = None) -> Any:
    axes = tuple(range(len(x.shape) - len(shape), len(x.shape)))
    eps = eps if eps is not None else (x.dtype if x.dtype.is_float else DType.f32).epsilon
    scale = b.apply("rsqrt", b.add(b.mean(b.mul(x, x), axes, keep=True), eps))
    y = affine(b.mul(x, scale), weight, None)
    return (y, scale) if isinstance(out, tuple) else y


def _per_channel(weight: Value | None, rank: int) -> Value | None:
    return None if weight is None else b.reshape(weight, (weight.size,) + (1,) * (rank - 2))


@rule("native_group_norm")
def native_group_norm(
    out: Any, x: Value, weight: Value | None, bias: Value | None, n: int, c: int, hw: int, groups: int, eps: float
) -> Any:
    cut = b.reshape(x, (n, groups, c // groups, *x.shape[2:]))
    # A group of one channel is as batch norm's channels below; in a group of several, their biases are part of the spread.
    y, centre, scale = normalised(cut, tuple(range(2, len(cut.shape))), eps, twice=c == groups and hw != 1 and _computed(x))
    y = affine(b.reshape(y, x.shape), _per_channel(weight, len(x.shape)), _per_channel(bias, len(x.shape)))
    return y, b.reshape(centre, (n, groups)), b.reshape(scale, (n, groups))


@rule("group_norm")
def group_norm(
    out: Result, x: Value, groups: int, weight: Value | None = None, bias: Value | None = None, eps: float = 1e-5, *_: Any
) -> Value:
    y: Value = native_group_norm(out, x, weight, bias, x.shape[0], x.shape[1], math.prod(x.shape[2:]), groups, eps)[0]
    return y


@rule("_native_batch_norm_legit_no_training")
def batch_norm(
    out: Any, x: Value, weight: Value | None, bias: Value | None, mean: Value, var: Value, _momentum: float, eps: float
) -> Any:
    """In eval mode a scale and a shift per channel, worked out from [C] vectors only."""
    rank = len(x.shape)
    scale = b.apply("rsqrt", b.add(var, eps))
    scale = b.mul(scale, weight) if weight is not None else scale
    shift = b.apply("neg", b.mul(mean, scale))
    shift = b.add(shift, bias) if bias is not None else shift
    y = b.add(b.mul(x, _per_channel(scale, rank)), _per_channel(shift, rank))  # type: ignore[arg-type]
    y = b.cast(y, x.dtype)
    return y, b.const(0, x.dtype, (0,)), b.const(0, x.dtype, (0,))


@rule("_native_batch_norm_legit", "_native_batch_norm_legit.no_stats", "native_batch_norm")
def batch_norm_of_batch(out: Any, x: Value, weight: Value | None, bias: Value | None, *rest: Any) -> Any:
    """Statistics of the batch itself (instance norm arrives here with one sample a channel)."""
    eps = float(rest[-1])
    if len(rest) >= 5 and rest[-3] is False:
        return batch_norm(out, x, weight, bias, rest[0], rest[1], 0.0, eps)
    axes = tuple(i for i in range(len(x.shape)) if i != 1)
    # A convolution's bias is one number for a whole channel: all of it is in the mean.
    y, centre, scale = normalised(x, axes, eps, twice=_computed(x))
    rank = len(x.shape)
    y = affine(y, _per_channel(weight, rank), _per_channel(bias, rank))
    return y, b.reshape(centre, (x.shape[1],)), b.reshape(scale, (x.shape[1],))
