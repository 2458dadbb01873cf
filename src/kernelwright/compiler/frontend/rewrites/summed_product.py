"""Sums over the outputs of a linear map: sum over n of (a @ b) is a @ (sum over n of b), one column instead of all of them; the sum over
the channels of a convolution is a convolution with one channel, whose weight is the sum of all.

In: a value and the axis summed over. Out: the sum as a value, where a product or convolution lies behind additions, subtractions and
factors that do not vary along the axis; None where the plain sum is as good. Exact in the reals; in floats the sum over the (usually
constant) operand is rounded once more, and the long sum over all products once less.

Operands broadcast from the right, so the axis is counted from there inside this file: 1 is the last.
"""

from __future__ import annotations

from dataclasses import replace

from kernelwright.compiler.frontend.operators.product import matmul
from kernelwright.compiler.graph import build as b
from kernelwright.compiler.graph.symbolic import Size, likely
from kernelwright.compiler.graph.values import Contraction, Map, Value, View
from kernelwright.sketch.nodes import DType

LEAST_COLUMNS = 16
"""With fewer outputs the product itself is cheap, and its epilogue sums them for nothing."""


def summed(x: Value, axis: int) -> Value | None:
    """The sum of x along an axis, which disappears, if that saves a matrix product or a convolution."""
    if x.dtype not in (DType.f32, DType.f64) or likely(x.shape[axis]) < LEAST_COLUMNS:
        return None
    return _summed(x, len(x.shape) - axis, alone=True)


def _summed(x: Value, back: int, alone: bool) -> Value | None:
    """`alone`: nobody else uses what the sum is taken of, so that it need not be made at all."""
    alone = alone and not x.shared
    if isinstance(x, Contraction):
        return _summed_product(x, back, alone)
    if isinstance(x, View) and x.kind == "reshape" and back == 1 and x.source.shape and x.source.shape[-1] == x.shape[-1]:
        inner = _summed(x.source, 1, alone)
        return None if inner is None else b.reshape(inner, x.shape[:-1])
    if not isinstance(x, Map) or len(x.args) != 2 or any(arg.dtype != x.dtype for arg in x.args):
        return None
    return _summed_pair(x, back, alone)


def _summed_product(x: Contraction, back: int, alone: bool) -> Value | None:
    """A product with one column, or a convolution with one channel."""
    if x.family == "gemm" and back == 1 and _plain(x):
        left, right = x.operands
        column = b.unsqueeze(b.reduce("sum", right, (len(right.shape) - 1,)), len(right.shape) - 1)
        return b.reshape(matmul(left, column, x.dtype), x.shape[:-1])
    if x.family == "conv" and back == len(x.shape) - 1 and x.problem.groups == 1 and alone:
        image, weight = x.operands
        outputs = 1 if x.problem.transposed else 0
        one = b.unsqueeze(b.reduce("sum", weight, (outputs,)), outputs)
        shape = (x.shape[0], 1, *x.shape[2:])
        made = Contraction(shape, x.dtype, "conv", (image, one), replace(x.problem, out_channels=1), origin=x.origin)
        return b.reshape(made, (x.shape[0], *x.shape[2:]))
    return None


def _summed_pair(x: Map, back: int, alone: bool) -> Value | None:
    first, second = x.args
    if x.op in ("add", "sub"):
        sums = [_summed(arg, back, alone) if arg.shape == x.shape else None for arg in x.args]
        if sums == [None, None]:
            return None
        parts = [
            found if found is not None else _plain_sum(arg, x.shape, back) for found, arg in zip(sums, x.args, strict=True)
        ]
        return b.apply(x.op, *parts)
    if x.op in ("mul", "div") and first.shape == x.shape and _same_along(second, back):
        found = _summed(first, back, alone)
        return None if found is None else b.apply(x.op, found, _dropped(second, back))
    if x.op == "mul" and second.shape == x.shape and _same_along(first, back):
        found = _summed(second, back, alone)
        return None if found is None else b.apply("mul", _dropped(first, back), found)
    return None


def _plain(x: Contraction) -> bool:
    problem = x.problem
    return bool(problem.a_shape == problem.b_shape == problem.out_shape == "full")


def _same_along(x: Value, back: int) -> bool:
    """One value for the whole axis."""
    return len(x.shape) < back or x.shape[-back] == 1


def _dropped(x: Value, back: int) -> Value:
    """Without the axis, along which it has one value."""
    if len(x.shape) < back:
        return x
    axis = len(x.shape) - back
    return b.reshape(x, (*x.shape[:axis], *x.shape[axis + 1 :]))


def _plain_sum(x: Value, shape: tuple[int, ...], back: int) -> Value:
    """The sum of a term without a product, which may be broadcast along the axis."""
    if _same_along(x, back):
        return b.mul(_dropped(x, back), shape[-back] if isinstance(shape[-back], Size) else float(shape[-back]))
    return b.reduce("sum", x, (len(x.shape) - back,))
