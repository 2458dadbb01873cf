"""Rotary embedding of the two halves of a head, batch and position in one program number."""

import torch
import triton
import triton.language as tl


@triton.jit
def rope_kernel(q, cos, sin, out, seq_len, n_heads, stride_b, stride_s, stride_h, HEAD_DIM: tl.constexpr):
    pid = tl.program_id(0)
    head = tl.program_id(1)
    b = pid // seq_len
    s = pid % seq_len
    half = HEAD_DIM // 2
    offs = tl.arange(0, HEAD_DIM // 2)
    base = b * stride_b + s * stride_s + head * stride_h
    x1 = tl.load(q + base + offs)
    x2 = tl.load(q + base + half + offs)
    c = tl.load(cos + s * half + offs)
    sn = tl.load(sin + s * half + offs)
    tl.store(out + base + offs, x1 * c - x2 * sn)
    tl.store(out + base + half + offs, x2 * c + x1 * sn)


class ModelNew(torch.nn.Module):
    def forward(self, q, cos, sin):
        B, S, H, D = q.shape
        out = torch.empty_like(q)
        rope_kernel[(B * S, H)](q, cos, sin, out, S, H, q.stride(0), q.stride(1), q.stride(2), HEAD_DIM=D)
        return out
