"""Rotary embedding in place on a copy; halves of a head by addresses, heads unrolled."""

import torch
import triton
import triton.language as tl


@triton.jit
def rope(q_ptr, stride_b, stride_s, stride_h, cos_ptr, sin_ptr, seq, HALF: tl.constexpr, HEADS: tl.constexpr):
    pid = tl.program_id(0)
    b = pid // seq
    s = pid % seq
    cols = tl.arange(0, HALF)
    cos = tl.load(cos_ptr + s * HALF + cols)
    sin = tl.load(sin_ptr + s * HALF + cols)
    base = q_ptr + b * stride_b + s * stride_s
    for h in tl.static_range(HEADS):
        p = base + h * stride_h + cols
        x1 = tl.load(p)
        x2 = tl.load(p + HALF)
        tl.store(p, x1 * cos - x2 * sin)
        tl.store(p + HALF, x2 * cos + x1 * sin)


class ModelNew(torch.nn.Module):
    def forward(self, x, cos, sin):
        y = x.clone()
        B, S, H, D = x.shape
        rope[(B * S,)](y, *y.stride()[:3], cos, sin, S, HALF=D // 2, HEADS=H)
        return y
