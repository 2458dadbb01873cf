"""Operators that torch keeps whole, written in terms of simpler ones: hypot, rrelu, bilinear forms, bags of embeddings, modes.

In: their arguments as values. Out: values of the other families; nothing here is scheduled by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from kernelwright.compiler.frontend.operators.index import bucket, embedding
from kernelwright.compiler.frontend.operators.scatter import scattered
from kernelwright.compiler.frontend.operators.table import Result, rule
from kernelwright.compiler.graph import build as b
from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.values import Value
from kernelwright.sketch.nodes import DType


@rule("hypot")
def hypot(out: Result, x: Value, y: Value) -> Value:
    """Scaled by the larger side, so that squares neither overflow nor vanish."""
    dtype = out.dtype.computed
    x, y = (b.apply("abs", b.cast(side, dtype)) for side in (x, y))
    large, small = b.apply("maximum", x, y), b.apply("minimum", x, y)
    flat = b.apply("logical_or", b.apply("eq", large, 0.0), b.apply("isinf", large))
    ratio = b.div(small, b.where(flat, 1.0, large, dtype))
    length = b.mul(large, b.apply("sqrt", b.add(b.mul(ratio, ratio), 1.0)))
    return b.cast(b.where(flat, large, length, dtype), out.dtype)


@rule("rrelu", "rrelu_with_noise", "rrelu_with_noise_functional")
def rrelu(out: Any, x: Value, *args: Any, **keywords: Any) -> Any:
    """Outside training the slope is the mean of its bounds."""
    plain = [a for a in (*args, *keywords.values()) if not isinstance(a, Value)]
    lower, upper, train = ([*plain, *(1 / 8, 1 / 3, False)[len(plain) :]])[:3]
    if train:
        raise NotImplementedError("random slopes")
    made = b.where(b.apply("ge", x, 0, dtype=DType.bool, compute=x.dtype), x, b.mul(x, (lower + upper) / 2), x.dtype)
    return (made, *(b.const(0, r.dtype, r.shape) for r in out[1:])) if isinstance(out, tuple) else made


@rule("_trilinear")
def trilinear(
    out: Result, x: Value, y: Value, z: Value, expand1: Sequence[int], expand2: Sequence[int], expand3: Sequence[int],
    sumdim: Sequence[int], unroll_dim: int = 1,
) -> Value:  # fmt: skip
    """Each factor gets its missing axes; the product is summed over `sumdim`."""
    factors = []
    for value, missing in ((x, expand1), (y, expand2), (z, expand3)):
        for axis in sorted(missing):
            value = b.unsqueeze(value, axis)
        factors.append(value)
    product = b.mul(b.mul(factors[0], factors[1]), factors[2])
    return b.reshape(b.reduce("sum", product, tuple(sumdim)), out.shape)


@rule("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(
    out: Sequence[Result], table: Value, indices: Value, offsets: Value, scale: bool = False, mode: int = 0, sparse: bool = False,
    weights: Value | None = None, include_last_offset: bool = False, padding: int = -1,
) -> tuple[Value | None, ...]:  # fmt: skip
    """Rows of a table, summed, averaged or maximised by bag. Bags of one length are an axis; others are scattered to."""
    if padding >= 0:
        raise NotImplementedError("entries that do not count")
    count, width = indices.size, table.shape[1]
    bags = out[0].shape[0]
    rows = embedding(Result((count, width), out[0].dtype), table, indices)
    if weights is not None:
        rows = b.mul(rows, b.reshape(weights, (count, 1)))
    starts = _numbers(offsets)
    length = count // max(bags, 1)
    if starts is not None and starts[:bags] == [k * length for k in range(bags)] and length * bags == count and length:
        cut = b.reshape(rows, (bags, length, width))
        made = b.reduce("max", cut, (1,)) if mode == 2 else b.mean(cut, (1,)) if mode == 1 else b.reduce("sum", cut, (1,))
    else:
        made = _ragged(rows, b.slice_axis(offsets, 0, 0, bags), bags, mode)
    return made, *(None for _ in out[1:])


def _ragged(rows: Value, offsets: Value, bags: int, mode: int) -> Value:
    """Bags that begin at offsets known only at run time."""
    count, width = rows.shape
    place = Result((count,), DType.i64)
    bag = b.sub(bucket(place, b.cast(offsets, DType.i64), b.position((count,), 0), right=True), 1)
    base = b.const(-math.inf if mode == 2 else 0.0, rows.dtype, (bags, width))
    made = scattered(
        base, rows, (bag,), (0,), lambda c, read: (read(0, (c[0],), bags), c[1]), "maximum" if mode == 2 else "add"
    )
    if mode == 0:
        return made
    if mode == 2:
        empty = b.apply("eq", made, -math.inf, dtype=DType.bool, compute=rows.dtype)
        return b.where(empty, 0.0, made, rows.dtype)
    ones = b.const(1.0, rows.dtype, (count,))
    sizes = scattered(b.const(0.0, rows.dtype, (bags,)), ones, (bag,), (0,), lambda c, read: (read(0, (c[0],), bags),), "add")
    return b.div(made, b.unsqueeze(b.apply("maximum", sizes, 1.0), 1))


def _numbers(value: Value) -> list[int] | None:
    """The elements of an integer vector that is known before anything runs (arange and sums and products of such)."""
    if len(value.shape) != 1:
        return None
    if isinstance(value, v.Position):
        return list(range(value.shape[0]))
    if isinstance(value, v.Const):
        return [int(value.value)] * value.shape[0]
    if isinstance(value, v.Map) and value.op in ("cast", "add", "mul") and value.dtype in (DType.i64, DType.i32):
        args = [_numbers(b.expand(a, value.shape) if isinstance(a, v.Const) else a) for a in value.args]
        known = [a for a in args if a is not None]
        if len(known) != len(args) or any(len(a) != value.shape[0] for a in known):
            return None
        if value.op == "cast":
            return known[0]
        return [x + y if value.op == "add" else x * y for x, y in zip(*known, strict=True)]
    return None
