"""RMS norm in fp16 with fp32 inside, sizes as constants."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_kernel(
    x_ptr,
    w_ptr,
    y_ptr,
    x_row_stride: tl.constexpr,
    y_row_stride: tl.constexpr,
    n_cols: tl.constexpr,
    eps: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
):
    row_idx = tl.program_id(0)
    cols = tl.arange(0, BLOCK_SIZE)
    mask = cols < n_cols
    x = tl.load(x_ptr + row_idx * x_row_stride + cols, mask=mask, other=0)
    xf = x.to(tl.float32)
    var = tl.sum(xf * xf, axis=0) / n_cols
    inv = tl.rsqrt(var + eps)
    w = tl.load(w_ptr + cols, mask=mask)
    y = (xf * inv).to(x.dtype) * w
    tl.store(y_ptr + row_idx * y_row_stride + cols, y, mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim, dtype=torch.float16))
        self.eps = 1e-6

    def forward(self, x):
        n = x.shape[-1]
        x2 = x.contiguous().view(-1, n)
        y = torch.empty_like(x2)
        rms_kernel[(x2.shape[0],)](
            x2, self.weight, y, x2.stride(0), y.stride(0), n, self.eps, BLOCK_SIZE=triton.next_power_of_2(n), num_warps=8
        )
        return y.view_as(x)
