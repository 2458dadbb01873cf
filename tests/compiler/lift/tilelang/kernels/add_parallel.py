"""Elementwise with T.Parallel over two axes, the borders checked by hand."""

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[2])
def scaled_add(M, N, block_M, block_N, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((M, N), dtype), B: T.Tensor((M, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            for i, j in T.Parallel(block_M, block_N):
                y = by * block_M + i
                x = bx * block_N + j
                if y < M and x < N:
                    C[y, x] = T.max(A[y, x] * 2.0 + B[y, x], 0.0)

    return main


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return scaled_add(*a.shape, 32, 64)(a.contiguous(), b.contiguous())
