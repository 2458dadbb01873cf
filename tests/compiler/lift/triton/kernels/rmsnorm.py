"""RMS norm with a weight, in half precision, computed in fp32."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms(Y, y_stride, X, x_stride, W, n_cols, eps, BLOCK_SIZE: tl.constexpr):
    row_idx = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_SIZE)
    mask = offs < n_cols
    x = tl.load(X + row_idx * x_stride + offs, mask=mask, other=0).to(tl.float32)
    w = tl.load(W + offs, mask=mask, other=0)
    inv = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(Y + row_idx * y_stride + offs, (x * inv).to(tl.float16) * w.to(tl.float16), mask=mask)


class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(n))

    def forward(self, x):
        shape = x.shape
        x = x.contiguous().view(-1, shape[-1])
        y = torch.empty_like(x)
        block = triton.next_power_of_2(x.shape[1])
        rms[(x.shape[0],)](y, y.stride(0), x, x.stride(0), self.weight, x.shape[1], 1e-6, BLOCK_SIZE=block)
        return y.view(*shape)
