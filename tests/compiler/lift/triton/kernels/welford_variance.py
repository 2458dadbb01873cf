"""Variance by Welford's combination of (mean, sum of squares, count) in tl.reduce."""

import torch
import triton
import triton.language as tl


@triton.jit
def combine(ma, va, na, mb, vb, nb):
    n = na + nb
    d = mb - ma
    w = tl.where(n == 0.0, 0.0, nb / n)
    return ma + d * w, va + vb + d * d * na * w, n


@triton.jit
def welford(x, out, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    o = tl.arange(0, BLOCK)
    m = o < N
    v = tl.load(x + row * N + o, mask=m, other=0.0)
    _, m2, _ = tl.reduce((v, tl.zeros_like(v), m.to(tl.float32)), 0, combine)
    tl.store(out + row, m2 / N)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape[0])
        welford[(x.shape[0],)](x, out, x.shape[1], BLOCK=128)
        return out
