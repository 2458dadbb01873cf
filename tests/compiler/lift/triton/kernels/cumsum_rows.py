"""Along rows: x.cumsum(1)."""

import torch
import triton
import triton.language as tl


@triton.jit
def along_rows(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=-float("inf"))
    tl.store(y_ptr + row * n + cols, tl.cumsum(x, axis=0), mask=cols < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty(*x.shape, dtype=torch.float32, device=x.device)
        along_rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=128)
        return y
