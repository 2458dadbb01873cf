"""Matrix products, convolutions and attention: described as problems for the families of schedule/contraction.

Bias and scaling are plain pointwise values after the product; the epilogue takes them in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from kernelwright.compiler.frontend.operators.table import Result, rule
from kernelwright.compiler.graph import build as b
from kernelwright.compiler.graph.problems import AttentionProblem, ConvProblem, GemmProblem
from kernelwright.compiler.graph.values import Contraction, Value
from kernelwright.core.dtypes import FLOATS
from kernelwright.sketch.nodes import DType


def accumulator(dtype: DType) -> DType:
    """The dtype in which products are summed."""
    return {DType.f64: DType.f64, DType.i64: DType.i64}.get(dtype, DType.f32 if dtype in FLOATS else DType.i32)


def matmul(x: Value, y: Value, dtype: DType) -> Value:
    """[*batch, m, k] @ [*batch, k, n]; batch axes broadcast."""
    batch = b.broadcast_shape(x.shape[:-2], y.shape[:-2])
    m, k, n = x.shape[-2], x.shape[-1], y.shape[-1]
    if 0 in (m, n, k, *batch):
        return b.const(0, dtype, (*batch, m, n))
    diagonal = _diagonal_product(x, y, dtype)
    if diagonal is not None:
        return diagonal
    x, y = b.expand(b.cast(x, dtype), (*batch, m, k)), b.expand(b.cast(y, dtype), (*batch, k, n))
    problem = GemmProblem(m, n, k, batch, accumulator(dtype), a_shape=_triangle(x), b_shape=_triangle(y))
    made = dtype.computed if dtype in FLOATS else dtype
    product: Value = Contraction((*batch, m, n), dtype, "gemm", (x, y), problem, origin="aten.mm.default")
    return b.cast(product, made) if made == dtype else product


def _triangle(x: Value) -> Any:
    """Which triangle a matrix is known to be."""
    return getattr(x, "triangle", "full")


def _diagonal_product(x: Value, y: Value, dtype: DType) -> Value | None:
    """diag(d) @ y only scales rows, x @ diag(d) only columns: exact, and no product at all."""
    d = getattr(x, "diagonal_of", None)
    if d is not None:
        return b.mul(b.unsqueeze(d, len(d.shape)), b.cast(y, dtype))
    d = getattr(y, "diagonal_of", None)
    return b.mul(b.cast(x, dtype), b.unsqueeze(d, len(d.shape) - 1)) if d is not None else None


rule("mm", "bmm")(lambda out, x, y, *_, **__: matmul(x, y, out.dtype))


@rule("matmul")
def matmul_(out: Result, x: Value, y: Value) -> Value:
    left = b.unsqueeze(x, 0) if len(x.shape) == 1 else x
    right = b.unsqueeze(y, 1) if len(y.shape) == 1 else y
    return b.reshape(matmul(left, right, out.dtype), out.shape)


@rule("mv", "dot", "vdot")
def mv(out: Result, x: Value, y: Value) -> Value:
    return matmul_(out, x, y)


@rule("addmm", "addbmm", "baddbmm", "addmv")
def addmm(out: Result, bias: Value, x: Value, y: Value, *, beta: float = 1, alpha: float = 1) -> Value:
    product = matmul_(out, x, y)
    product = product if alpha == 1 else b.mul(product, alpha)
    if beta == 0:
        return product
    return b.add(product, bias if beta == 1 else b.mul(bias, beta))


@rule("linear")
def linear(out: Result, x: Value, weight: Value, bias: Value | None = None) -> Value:
    flat = b.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))
    order = (1, 0) if len(weight.shape) == 2 else (0,)
    if len(weight.shape) == 1:
        weight = b.unsqueeze(weight, 0)
        order = (1, 0)
    product = b.reshape(matmul(flat, b.permute(weight, order), out.dtype), (*x.shape[:-1], weight.shape[0]))
    product = b.reshape(product, out.shape)
    return b.add(product, bias) if bias is not None else product


@rule("convolution", "_convolution")
def convolution(
    out: Result, x: Value, weight: Value, bias: Value | None, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
    transposed: bool, output_padding: Sequence[int], groups: int, *_: Any,
) -> Value:  # fmt: skip
    n = len(weight.shape) - 2

    def full(values: Sequence[int]) -> tuple[int, ...]:
        return tuple(values) * n if len(values) == 1 else tuple(values)

    problem = ConvProblem(
        x.shape[0], x.shape[1], out.shape[1], tuple(x.shape[2:]), tuple(weight.shape[2:]), full(stride), full(padding), full(dilation),
        groups, transposed, full(output_padding) if transposed else (), accumulator(out.dtype),
    )  # fmt: skip
    if 0 in out.shape:
        return b.const(0, out.dtype, out.shape)
    y: Value = Contraction(out.shape, out.dtype, "conv", (x, weight), problem, origin="aten.convolution.default")
    return b.add(y, b.reshape(bias, (bias.size,) + (1,) * n)) if bias is not None else y


@rule("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention(
    out: Any, q: Value, k: Value, y: Value, dropout: float = 0.0, causal: bool = False, *, attn_mask: Value | None = None,
    scale: float | None = None, **_: Any,
) -> Any:  # fmt: skip
    """What scaled_dot_product_attention becomes below autograd: the same in another order of arguments, with a second result."""
    return attention(out, q, k, y, attn_mask, dropout, causal, scale=scale)


@rule("scaled_dot_product_attention")
def attention(
    out: Any, q: Value, k: Value, y: Value, mask: Value | None = None, dropout: float = 0.0, causal: bool = False, *,
    scale: float | None = None, enable_gqa: bool = False, attn_mask: Value | None = None, **_: Any,
) -> Any:  # fmt: skip
    mask = mask if isinstance(mask, Value) else attn_mask
    result: Result = out[0] if isinstance(out, tuple) else out
    while len(q.shape) < 4:
        q, k, y = (b.unsqueeze(t, 0) for t in (q, k, y))
        mask = b.unsqueeze(mask, 0) if mask is not None and len(mask.shape) > 2 else mask
    batch = b.broadcast_shape(q.shape[:-3], k.shape[:-3])
    q, k, y = (b.expand(t, (*batch, *t.shape[-3:])) for t in (q, k, y))
    if k.shape[-3] == 1 and q.shape[-3] != 1 and not enable_gqa:
        k, y = (b.expand(t, (*batch, q.shape[-3], *t.shape[-2:])) for t in (k, y))
    heads, queries, depth = q.shape[-3:]
    dtype = accumulator(result.dtype)
    problem = AttentionProblem(
        batch, heads, k.shape[-3], queries, k.shape[-2], depth, y.shape[-1], scale, causal, mask is not None, dtype
    )  # fmt: skip
    operands = [q, k, y]
    if mask is not None:
        additive = b.where(mask, 0.0, -math.inf, dtype) if mask.dtype == DType.bool else b.cast(mask, dtype)
        operands.append(b.expand(additive, (*batch, heads, queries, k.shape[-2])))
    made: Value = Contraction(
        problem.shape, result.dtype, "attention", tuple(operands), problem, origin="aten.scaled_dot_product_attention.default"
    )
    made = b.reshape(made, result.shape)
    return (made, *(b.const(0, DType.f32, r.shape) for r in out[1:])) if isinstance(out, tuple) else made
