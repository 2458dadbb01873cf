"""Group norm: one program for an image and a group, the channel's weight by division."""

import torch
import triton
import triton.language as tl


@triton.jit
def group_norm(x_ptr, y_ptr, w_ptr, b_ptr, groups, channels, area, eps, CG: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    n = pid // groups
    g = pid % groups
    offs = tl.arange(0, BLOCK)
    count = CG * area
    mask = offs < count
    base = n * channels * area + g * count
    x = tl.load(x_ptr + base + offs, mask=mask, other=0.0)
    mean = tl.sum(x, axis=0) / count
    d = tl.where(mask, x - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(d * d, axis=0) / count + eps)
    c = g * CG + offs // area
    w = tl.load(w_ptr + c, mask=mask, other=0.0)
    b = tl.load(b_ptr + c, mask=mask, other=0.0)
    tl.store(y_ptr + base + offs, d * rstd * w + b, mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, g, c):
        super().__init__()
        self.gn = torch.nn.GroupNorm(g, c)

    def forward(self, x):
        N, C, H, W = x.shape
        G = self.gn.num_groups
        y = torch.empty_like(x)
        group_norm[(N * G,)](x, y, self.gn.weight, self.gn.bias, G, C, H * W, self.gn.eps, CG=C // G, BLOCK=64)
        return y
