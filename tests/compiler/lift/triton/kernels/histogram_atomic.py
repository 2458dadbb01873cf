"""A histogram by atomic additions at positions that are data."""

import torch
import triton
import triton.language as tl


@triton.jit
def hist(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    v = tl.load(x + i, mask=m, other=0)
    tl.atomic_add(out + v, 1, mask=m)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.zeros(32, dtype=torch.int32, device=x.device)
        hist[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        return out
