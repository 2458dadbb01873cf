"""Sums of rows, split over columns, by atomic additions into zeros."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_sum(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
    tl.atomic_add(y_ptr + row, tl.sum(x, axis=0))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.zeros(x.shape[0], device=x.device)
        row_sum[(x.shape[0], triton.cdiv(x.shape[1], 128))](x, y, x.shape[1], BLOCK=128)
        return y
