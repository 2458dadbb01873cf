"""Matrix times vector: a fragment of partial products for each block of columns, summed at the end."""

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=-1)
def gemv(N, K, block_N, block_K):
    @T.prim_func
    def main(x: T.Tensor((K,), "float32"), A: T.Tensor((N, K), "float32"), y: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), threads=128) as bn:
            partial = T.alloc_fragment((block_N, block_K), "float32")
            total = T.alloc_fragment((block_N,), "float32")
            for i, j in T.Parallel(block_N, block_K):
                partial[i, j] = 0
            for bk in T.serial(T.ceildiv(K, block_K)):
                for i, j in T.Parallel(block_N, block_K):
                    partial[i, j] += A[bn * block_N + i, bk * block_K + j] * x[bk * block_K + j]
            T.reduce_sum(partial, total, dim=1)
            for i in T.Parallel(block_N):
                y[bn * block_N + i] = total[i]

    return main


class ModelNew(torch.nn.Module):
    def forward(self, a, x):
        return gemv(*a.shape, 16, 64)(x.contiguous(), a.contiguous())
