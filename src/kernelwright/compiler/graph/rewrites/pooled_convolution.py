"""Averages over windows of a convolution's output: the mean of sums of products is one sum of products with mean weights, so that a
convolution and the pooling behind it are one convolution with longer strides, and nothing of the size between them is ever made.

Along one axis a convolution is y[o] = sum over k of w[k] x[o * s + k - p], and the mean of m neighbours, t apart, is
z[i] = sum over q of W[q] x[i * t * s + q - p], where W[q] is the mean over j < m of w[q - j * s]. A transposed one is
y[o] = sum over k of w[k] x[(o + p - k) / s] where that is whole; if s divides t, z[i] = sum over r of W[r] x[i * t / s + r], where
W[r] is the mean over j < m of w[j + p - r * s].

In: a value and the windows. Out: the averages as a value, where a convolution lies behind additions and factors that are the same for
all places of a channel; None where the plain pooling is as good. Exact in the reals; the weights are rounded once more, the averages
once less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelwright.compiler.graph import build as b
from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.index_maps import constant_index
from kernelwright.compiler.graph.problems import ConvProblem
from kernelwright.compiler.graph.values import Contraction, Map, Value, View
from kernelwright.sketch.nodes import DType

WORTH = 0.75
"""Multiplications that are left, of those of the convolution alone, up to which it pays."""
WINOGRAD = 2.5
"""By how much a convolution of three by three taps needs fewer multiplications by itself."""


@dataclass(frozen=True)
class Axis:
    """One axis of the convolution that makes the averages: W[q] is the sum over j of w[first + j * apart + q * step], zeros outside;
    `after` zeros follow the input."""

    taps: int
    stride: int
    padding: int
    first: int
    apart: int
    step: int
    after: int = 0


def averaged(x: Value, kernel: Sequence[int], stride: Sequence[int], outputs: Sequence[int]) -> Value | None:
    """The means over windows that lie inside x, if that saves most of a convolution."""
    if x.shared or x.dtype not in (DType.f32, DType.f64):
        return None
    if isinstance(x, Contraction):
        return _convolved(x, kernel, stride, outputs) if x.family == "conv" else None
    if not isinstance(x, Map) or len(x.args) != 2 or any(arg.dtype != x.dtype for arg in x.args):
        return None
    first, second = x.args
    n = len(kernel)
    if x.op in ("add", "sub", "mul", "div") and first.shape == x.shape and _one_place(second, n):
        found = averaged(first, kernel, stride, outputs)
        return None if found is None else b.apply(x.op, found, second)
    if x.op in ("add", "sub", "mul") and second.shape == x.shape and _one_place(first, n):
        found = averaged(second, kernel, stride, outputs)
        return None if found is None else b.apply(x.op, first, found)
    return None


def _one_place(x: Value, n: int) -> bool:
    """The same for all places of a channel."""
    return math.prod(x.shape[-n:] if len(x.shape) >= n else x.shape) == 1


def _convolved(x: Contraction, kernel: Sequence[int], stride: Sequence[int], outputs: Sequence[int]) -> Value | None:
    p = x.problem
    if not all(isinstance(extent, int) for extent in p.spatial):
        return None
    if any(d != 1 for d in p.dilation) or math.prod(kernel) == 1:
        return None
    axes: list[Axis] = []
    left, before = 1.0, 1.0 / _saved(p)
    for i, (m, t, out) in enumerate(zip(kernel, stride, outputs, strict=True)):
        found = (_behind_transposed if p.transposed else _behind)(
            p.spatial[i], p.kernel[i], p.stride[i], p.padding[i], m, t, out
        )
        if found is None:
            return None
        axes.append(found)
        left *= found.taps
        before *= p.kernel[i] * (t / p.stride[i] if p.transposed else t)
    if left > WORTH * before:
        return None
    image, weight = x.operands
    weight = _by_output(weight, p.groups) if p.transposed else weight
    for i, (axis, m) in enumerate(zip(axes, kernel, strict=True)):
        weight = _mixed(weight, 2 + i, axis, m)
    weight = b.div(weight, math.prod(kernel))
    weight.stored = True
    image = b.pad(image, (0,) * len(image.shape), (0, 0, *(axis.after for axis in axes)), 0.0)
    taps, steps, paddings = (tuple(getattr(axis, name) for axis in axes) for name in ("taps", "stride", "padding"))
    problem = replace(
        p, spatial=image.shape[2:], kernel=taps, stride=steps, padding=paddings, transposed=False, output_padding=()
    )
    return Contraction((*x.shape[:2], *outputs), x.dtype, "conv", (image, weight), problem, origin=x.origin)


def _saved(p: ConvProblem) -> float:
    """By how much the convolution alone needs fewer multiplications than it has taps."""
    plain = not p.transposed and all(step == 1 for step in p.stride)
    return WINOGRAD if plain and p.kernel[-2:] == (3, 3) else 1.0


def _behind(size: int, taps: int, step: int, padding: int, m: int, t: int, out: int) -> Axis | None:
    """Windows of m, t apart, behind a plain convolution."""
    longer = (m - 1) * step + taps
    fits = (size + 2 * padding - longer) // (t * step) + 1 == out
    return Axis(longer, t * step, padding, 0, -step, 1) if fits else None


def _behind_transposed(size: int, taps: int, step: int, padding: int, m: int, t: int, out: int) -> Axis | None:
    """Windows behind a transposed convolution. Padding is the same on both sides: what only the far end needs is added to the input,
    where only the near end needs it taps of zeros stand for it."""
    if t % step:
        return None
    low, high, stride = -((taps - 1 - padding) // step), (m - 1 + padding) // step, t // step
    first = min(low, 0)
    count = high - first + 1
    after = max(0, (out - 1) * stride + count + 2 * first - size)
    count += max(0, size + after - 2 * first - count - (out * stride - 1))
    return Axis(count, stride, -first, padding - first * step, 1, -step, after)


def _by_output(weight: Value, groups: int) -> Value:
    """The weight of a transposed convolution, [channels, outputs of a group, …], as [outputs, channels of a group, …]."""
    channels, outputs, *taps = weight.shape
    apart = b.reshape(weight, (groups, channels // groups, outputs, *taps))
    order = (0, 2, 1, *range(3, 3 + len(taps)))
    return b.reshape(b.permute(apart, order), (groups * outputs, channels // groups, *taps))


def _mixed(weight: Value, place: int, axis: Axis, m: int) -> Value:
    """The sum of m copies of the weight along one of its axes, each moved by one window's place; zeros outside."""
    shape = (*weight.shape[:place], axis.taps, *weight.shape[place + 1 :])

    def moved(j: int) -> Value:
        def move(coords: v.MultiIndex) -> v.MultiIndex:
            at = coords[place] * axis.step + constant_index(axis.first + j * axis.apart)
            return (*coords[:place], at, *coords[place + 1 :])

        return View(shape, weight.dtype, weight, move, fill=0.0, kind="moved")

    total = moved(0)
    for j in range(1, m):
        total = b.add(total, moved(j))
    return total
