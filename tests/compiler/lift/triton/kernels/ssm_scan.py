"""A linear recurrence by tl.associative_scan over pairs."""

import torch
import triton
import triton.language as tl


@triton.jit
def op(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def ssm(a, b, y, L, D, BL: tl.constexpr, BD: tl.constexpr):
    d = tl.program_id(0) * BD + tl.arange(0, BD)
    t = tl.arange(0, BL)
    m = (t[:, None] < L) & (d[None, :] < D)
    x = tl.load(a + t[:, None] * D + d[None, :], mask=m, other=1.0)
    z = tl.load(b + t[:, None] * D + d[None, :], mask=m, other=0.0)
    _, h = tl.associative_scan((x, z), 0, op)
    tl.store(y + t[:, None] * D + d[None, :], h, mask=m)


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        y = torch.empty_like(a)
        ssm[(triton.cdiv(a.shape[1], 8),)](a, b, y, a.shape[0], a.shape[1], BL=triton.next_power_of_2(a.shape[0]), BD=8)
        return y
