"""Residual addition and RMS norm with two results."""

import torch
import triton
import triton.language as tl


@triton.jit
def fused(x_ptr, r_ptr, w_ptr, y_ptr, s_ptr, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    m = offs < N
    p = row * N + offs
    s = tl.load(x_ptr + p, mask=m, other=0.0) + tl.load(r_ptr + p, mask=m, other=0.0)
    tl.store(s_ptr + p, s, mask=m)
    rstd = 1.0 / tl.sqrt(tl.sum(s * s) / N + eps)
    w = tl.load(w_ptr + offs, mask=m)
    tl.store(y_ptr + p, s * rstd * w, mask=m)


class ModelNew(torch.nn.Module):
    def forward(self, x, r, w):
        y = torch.empty_like(x)
        s = torch.empty_like(x)
        rows = x.numel() // x.shape[-1]
        fused[(rows,)](x, r, w, y, s, x.shape[-1], 1e-5, BLOCK=triton.next_power_of_2(x.shape[-1]))
        return y, s
