"""Distances between all pairs of rows: cdist and pdist, where torch does not spell them as a matrix product.

In: rows as values. Out: a norm over the differences of pairs, which fuses into one reduction; no difference is ever stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernelwright.compiler.frontend.operators.index import embedding
from kernelwright.compiler.frontend.operators.reduce import vector_norm
from kernelwright.compiler.frontend.operators.table import Result, rule
from kernelwright.compiler.graph import build as b
from kernelwright.compiler.graph.values import Value
from kernelwright.sketch.nodes import DType


@rule("_cdist_forward")
def cdist(out: Result, x: Value, y: Value, order: float, *_: Any) -> Value:
    """Each row of x against each row of y."""
    apart = b.sub(b.unsqueeze(x, -2), b.unsqueeze(y, -3))
    return _length(out, apart, order)


@rule("_pdist_forward")
def pdist(out: Result, x: Value, order: float = 2.0) -> Value:
    """Pairs (i, j) with i < j in row-major order: pair k belongs to the row whose first pair is the last one not after k."""
    rows, width = x.shape
    pairs = out.shape[0]
    if not pairs:
        return b.const(0.0, out.dtype, out.shape)
    k = b.cast(b.position((pairs,), 0), DType.f64)
    # Row i begins at i * (2 * rows - i - 1) / 2, solved for i; the half keeps rounding away from the whole numbers.
    root = b.apply("sqrt", b.add(b.mul(k, -8.0), (2.0 * rows - 1.0) ** 2 - 4.0))
    i = b.cast(b.apply("floor", b.mul(b.sub(b.const(2.0 * rows - 1.0, DType.f64), root), 0.5)), DType.i64)
    begin = b.apply("floordiv", b.mul(i, b.sub(b.const(2 * rows - 1, DType.i64), i)), 2)
    j = b.add(b.add(b.sub(b.position((pairs,), 0), begin), i), 1)
    taken: Sequence[Value] = [embedding(Result((pairs, width), x.dtype), x, row) for row in (i, j)]
    return _length(out, b.sub(*taken), order)


def _length(out: Result, apart: Value, order: float) -> Value:
    return vector_norm(out, apart, order, (len(apart.shape) - 1,))
