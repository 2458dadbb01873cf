"""Sums over the outputs of a linear map: sum over n of (a @ b) is a @ (sum over n of b), one column instead of all of them.

In: a value and the axis summed over. Out: the sum as a value, where a matrix product lies behind additions, subtractions and factors
that do not vary along the axis; None where the plain sum is as good. Exact in the reals; in floats the sum over the (usually constant)
operand is rounded once more, and the long sum over all products once less.
"""

from __future__ import annotations

from kernelwright.design import build as b
from kernelwright.design.operators.product import matmul
from kernelwright.design.values import Contraction, Map, Value, View
from kernelwright.sketch.nodes import DType

LEAST_COLUMNS = 16
"""With fewer outputs the product itself is cheap, and its epilogue sums them for nothing."""


def summed(x: Value, axis: int) -> Value | None:
    """The sum of x along its last axis, which disappears, if that saves a matrix product."""
    if x.dtype not in (DType.f32, DType.f64) or axis != len(x.shape) - 1 or x.shape[axis] < LEAST_COLUMNS:
        return None
    return _summed(x)


def _summed(x: Value) -> Value | None:
    if isinstance(x, Contraction) and x.family == "gemm" and _plain(x):
        left, right = x.operands
        column = b.unsqueeze(b.fold("sum", right, (len(right.shape) - 1,)), len(right.shape) - 1)
        return b.reshape(matmul(left, column, x.dtype), x.shape[:-1])
    if isinstance(x, View) and x.kind == "reshape" and x.source.shape and x.source.shape[-1] == x.shape[-1]:
        inner = _summed(x.source)
        return None if inner is None else b.reshape(inner, x.shape[:-1])
    if not isinstance(x, Map) or len(x.args) != 2 or any(arg.dtype != x.dtype for arg in x.args):
        return None
    return _summed_pair(x)


def _summed_pair(x: Map) -> Value | None:
    first, second = x.args
    if x.op in ("add", "sub"):
        sums = [_summed(arg) if arg.shape == x.shape else None for arg in x.args]
        if sums == [None, None]:
            return None
        parts = [found if found is not None else _plain_sum(arg, x.shape) for found, arg in zip(sums, x.args, strict=True)]
        return b.apply(x.op, *parts)
    if x.op in ("mul", "div") and first.shape == x.shape and _same_along(second):
        found = _summed(first)
        return None if found is None else b.apply(x.op, found, _dropped(second))
    if x.op == "mul" and second.shape == x.shape and _same_along(first):
        found = _summed(second)
        return None if found is None else b.apply("mul", _dropped(first), found)
    return None


def _plain(x: Contraction) -> bool:
    problem = x.problem
    return bool(problem.a_shape == problem.b_shape == problem.out_shape == "full")


def _same_along(x: Value) -> bool:
    """One value for the whole last axis."""
    return not x.shape or x.shape[-1] == 1


def _dropped(x: Value) -> Value:
    return b.reshape(x, x.shape[:-1]) if x.shape else x


def _plain_sum(x: Value, shape: tuple[int, ...]) -> Value:
    """The sum of a term without a product, which may be broadcast along the axis."""
    if _same_along(x):
        return b.mul(_dropped(x), float(shape[-1]))
    return b.fold("sum", x, (len(x.shape) - 1,))
