"""What a contraction is asked to compute: plain numbers, no tensors and no tiles.

In: made by the graph's lowering from shapes and attributes of an ATen operator. Out: read by the families beside this file.
Operands are known by their logical axes, in the order each docstring gives; how they lie in memory is the loader's business,
and enters here only as hints (`a_inner`, `b_inner`) and as facts that save work (`*_constant`, `*_shape`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from kernelwright.compiler.graph.symbolic import Extent, likely, likely_shape
from kernelwright.sketch.nodes import DType

Triangle = Literal["full", "lower", "upper"]


@dataclass(frozen=True)
class GemmProblem:
    """out[*batch, m, n] = sum over k of a[*batch, m, k] * b[*batch, k, n].

    Loaders take axes (*batch, m, k) and (*batch, k, n) and ignore a batch axis along which their operand is broadcast. `dtype`
    is that of the accumulator (f32, f64, i32, i64). `a_inner` and `b_inner` name the axis that is contiguous in memory. A
    constant operand depends on parameters only and may be rearranged once; `keeps_b` says whether there is memory for such a copy of B on
    a machine that can do without (compiler/graph/memory_budget.py). `*_shape` says where an operand or the wanted output
    is zero.
    """

    m: Extent
    n: Extent
    k: Extent
    batch: tuple[Extent, ...] = ()
    dtype: DType = DType.f32
    a_inner: Literal["m", "k"] = "k"
    b_inner: Literal["k", "n"] = "n"
    a_constant: bool = False
    b_constant: bool = False
    keeps_b: bool = True
    a_shape: Triangle = "full"
    b_shape: Triangle = "full"
    out_shape: Triangle = "full"
    operand: DType = DType.f32
    """What A and B are before they are converted."""

    def likely(self) -> GemmProblem:
        """The same in the example's sizes: what schedules are chosen by."""
        return replace(self, m=likely(self.m), n=likely(self.n), k=likely(self.k), batch=likely_shape(self.batch))

    @property
    def flops(self) -> float:
        return 2.0 * likely(math.prod(self.batch) * self.m * self.n * self.k)

    @property
    def shape(self) -> tuple[Extent, ...]:
        return (*self.batch, self.m, self.n)


@dataclass(frozen=True)
class ConvProblem:
    """A convolution over 1, 2 or 3 spatial axes, or a transposed one.

    The loader of x takes axes (n, channel, *spatial); that of the weight (out channel, channel in group, *kernel), or for
    `transposed` (channel, out channel in group, *kernel), as torch stores them. The output's axes are (n, out channel,
    *spatial).
    """

    batch: Extent
    channels: int
    out_channels: int
    spatial: tuple[Extent, ...]
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1
    transposed: bool = False
    output_padding: tuple[int, ...] = ()
    dtype: DType = DType.f32
    weight_constant: bool = True

    def likely(self) -> ConvProblem:
        """The same in the example's sizes: what schedules are chosen by."""
        return replace(self, batch=likely(self.batch), spatial=likely_shape(self.spatial))

    @property
    def rank(self) -> int:
        return len(self.spatial)

    @property
    def out_spatial(self) -> tuple[Extent, ...]:
        """Extents of the output's spatial axes, by torch's formula."""
        extra = self.output_padding or (0,) * self.rank
        axes = zip(self.spatial, self.kernel, self.stride, self.padding, self.dilation, extra, strict=True)
        if self.transposed:
            return tuple((size - 1) * s - 2 * p + d * (k - 1) + e + 1 for size, k, s, p, d, e in axes)
        return tuple((size + 2 * p - d * (k - 1) - 1) // s + 1 for size, k, s, p, d, _ in axes)

    @property
    def shape(self) -> tuple[Extent, ...]:
        return (self.batch, self.out_channels, *self.out_spatial)

    @property
    def flops(self) -> float:
        points = likely(math.prod(self.spatial if self.transposed else self.out_spatial))
        return 2.0 * likely(self.batch) * points * math.prod(self.kernel) * self.channels * self.out_channels / self.groups


@dataclass(frozen=True)
class AttentionProblem:
    """out[*batch, head, q, v] = softmax(scale * query @ key^T + mask) @ value.

    Loaders: query (*batch, head, q, d), key (*batch, kv head, position, d), value (*batch, kv head, position, v), mask
    (*batch, head, q, position), which must be additive and of `dtype`. `heads` is a multiple of `kv_heads`; each kv head serves
    heads // kv_heads neighbours. `causal` is torch's: position <= q, counted from the top left. `scale` None: 1 / sqrt(d).
    """

    batch: tuple[Extent, ...]
    heads: int
    kv_heads: int
    queries: Extent
    positions: Extent
    depth: int
    value_depth: int
    scale: float | None = None
    causal: bool = False
    masked: bool = False
    dtype: DType = DType.f32
    operand: DType = DType.f32
    """Of query, key and value as they lie in memory."""

    def likely(self) -> AttentionProblem:
        """The same in the example's sizes: what schedules are chosen by."""
        return replace(self, batch=likely_shape(self.batch), queries=likely(self.queries), positions=likely(self.positions))

    @property
    def factor(self) -> float:
        return self.scale if self.scale is not None else 1.0 / math.sqrt(self.depth)

    @property
    def shape(self) -> tuple[Extent, ...]:
        return (*self.batch, self.heads, self.queries, self.value_depth)

    @property
    def flops(self) -> float:
        pairs = likely(math.prod(self.batch) * self.heads * self.queries * self.positions)
        return 2.0 * pairs * (self.depth + self.value_depth) * (0.5 if self.causal else 1.0)
