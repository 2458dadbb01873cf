"""Group norm from two moments, channels of a flat block by division."""

import torch
import triton
import triton.language as tl


@triton.jit
def gn_kernel(x, w, b, y, group_size, hw, C, G, eps, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    g = pid % G
    n_elem = group_size * hw
    base = pid * n_elem
    s = tl.zeros([BLOCK], tl.float32)
    s2 = tl.zeros([BLOCK], tl.float32)
    for off in range(0, n_elem, BLOCK):
        r = off + tl.arange(0, BLOCK)
        v = tl.load(x + base + r, mask=r < n_elem, other=0.0)
        s += v
        s2 += v * v
    mean = tl.sum(s) / n_elem
    var = tl.sum(s2) / n_elem - mean * mean
    rstd = tl.math.rsqrt(var + eps)
    for off in range(0, n_elem, BLOCK):
        r = off + tl.arange(0, BLOCK)
        m = r < n_elem
        ch = g * group_size + r // hw
        v = tl.load(x + base + r, mask=m, other=0.0)
        ww = tl.load(w + ch, mask=m, other=0.0)
        bb = tl.load(b + ch, mask=m, other=0.0)
        tl.store(y + base + r, (v - mean) * rstd * ww + bb, mask=m)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gn = torch.nn.GroupNorm(4, 12)

    def forward(self, x):
        N, C, H, W = x.shape
        y = torch.empty_like(x)
        G = self.gn.num_groups
        gn_kernel[(N * G,)](x, self.gn.weight, self.gn.bias, y, C // G, H * W, C, G, self.gn.eps, BLOCK=128)
        return y
