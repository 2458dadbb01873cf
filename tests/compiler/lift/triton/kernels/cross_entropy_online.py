"""Cross entropy in one pass over the logits, with a label that is left out under an if on data."""

import torch
import triton
import triton.language as tl


@triton.jit
def ce_kernel(logits, labels, losses, n_cols, stride, ignore_index, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels + row)
    logits += row * stride
    m = float("-inf")
    d = 0.0
    for start in range(0, n_cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(logits + offs, mask=offs < n_cols, other=float("-inf")).to(tl.float32)
        new_m = tl.maximum(m, tl.max(x))
        d = d * tl.exp(m - new_m) + tl.sum(tl.exp(x - new_m))
        m = new_m
    if label == ignore_index:
        tl.store(losses + row, 0.0)
    else:
        picked = tl.load(logits + label).to(tl.float32)
        tl.store(losses + row, m + tl.log(d) - picked)


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        losses = torch.zeros(x.shape[0], dtype=torch.float32, device=x.device)
        ce_kernel[(x.shape[0],)](x, y, losses, x.shape[1], x.stride(0), -100, BLOCK=256)
        return losses
