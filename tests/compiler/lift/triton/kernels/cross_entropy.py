"""Cross entropy in chunks with an online maximum; the label's logit by its own address."""

import torch
import triton
import triton.language as tl


@triton.jit
def cross_entropy(x_ptr, stride, y_ptr, loss_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * stride
    label = tl.load(y_ptr + row)
    m = float("-inf")
    d = 0.0
    target = tl.load(x_ptr + label).to(tl.float32)
    for i in range(0, n, BLOCK):
        offs = i + tl.arange(0, BLOCK)
        block = tl.load(x_ptr + offs, mask=offs < n, other=float("-inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(block))
        d = d * tl.exp(m - new) + tl.sum(tl.exp(block - new))
        m = new
    tl.store(loss_ptr + row, m + tl.log(d) - target)


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        loss = torch.empty(x.shape[0], device=x.device, dtype=torch.float32)
        cross_entropy[(x.shape[0],)](x, x.stride(0), y, loss, x.shape[1], BLOCK=128)
        return loss
