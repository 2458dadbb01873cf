"""Triton kernels with defects that D chooses; D = 0 is honest. A mark says where a defect shows itself."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def scaled(x, o, n, D: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * (B - 32 if D == 4 else B) + tl.arange(0, B)
    if D == 1:
        m = i < n + B
    elif D == 2:
        m = i <= n
    else:
        m = i < n
    v = tl.load(x + i - (1 if D == 3 else 0), mask=m, other=0.0)  # @scaled1 @scaled2 @scaled3
    tl.store(o + i, v * (tl.program_id(0) + 1), mask=m)  # @scaled1 @scaled2 @scaled4


@triton.jit
def summed(x, o, n, D: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    total = tl.sum(tl.load(x + i, mask=i < n, other=0.0), 0)
    if D == 1:
        tl.store(o, tl.load(o) + total)  # @summed1
    elif D == 2:
        tl.atomic_add(o + n, total)  # @summed2
    else:
        tl.atomic_add(o, total)


@triton.jit
def turned(x, o, n, D: tl.constexpr, B: tl.constexpr):
    r, c = tl.program_id(0) * (B // 4 if D == 2 else B) + tl.arange(0, B), tl.arange(0, B)
    m = (r[:, None] < n) & (c[None, :] < n)
    v = tl.load(x + r[:, None] * n + c[None, :], mask=m)
    stride = n + 1 if D == 1 else n
    tl.store(o + c[None, :] * stride + r[:, None], v, mask=m)  # @turned1 @turned2


DEFECTS = [
    ("scaled", 1, {"out_of_bounds"}), ("scaled", 2, {"out_of_bounds"}), ("scaled", 3, {"out_of_bounds"}), ("scaled", 4, {"global_race"}),
    ("summed", 1, {"global_race"}), ("summed", 2, {"out_of_bounds"}), ("turned", 1, {"out_of_bounds"}), ("turned", 2, {"global_race"}),
]  # fmt: skip
