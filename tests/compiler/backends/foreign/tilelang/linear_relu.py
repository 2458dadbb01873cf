"""A linear layer with bias and ReLU in half precision: factory with out_idx and pass options, a pipelined loop, swizzled blocks."""

import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(
    out_idx=[-1],
    pass_configs={tilelang.PassConfigKey.TL_DISABLE_TMA_LOWER: True, tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True},
)
def linear_relu(M, N, K, block_M=64, block_N=64, block_K=32, num_stages=2, threads=128, dtype="float16", accum_dtype="float"):
    @T.prim_func
    def main(
        X: T.Tensor((M, K), dtype),
        W: T.Tensor((N, K), dtype),
        bias: T.Tensor((N,), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=threads) as (bx, by):
            X_shared = T.alloc_shared((block_M, block_K), dtype)
            W_shared = T.alloc_shared((block_N, block_K), dtype)
            bias_shared = T.alloc_shared((block_N,), dtype)
            acc = T.alloc_fragment((block_M, block_N), accum_dtype)
            T.use_swizzle(panel_size=10, enable=True)
            T.copy(bias[bx * block_N], bias_shared)
            T.clear(acc)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
                T.copy(X[by * block_M, ko * block_K], X_shared)
                T.copy(W[bx * block_N, ko * block_K], W_shared)
                T.gemm(X_shared, W_shared, acc, transpose_B=True)
            for i, j in T.Parallel(block_M, block_N):
                acc[i, j] = T.max(acc[i, j] + T.cast(bias_shared[j], accum_dtype), T.float32(0))
            T.copy(acc, Y[by * block_M, bx * block_N])

    return main


class Model(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.linear = nn.Linear(k, n)

    def forward(self, x):
        return torch.relu(torch.nn.functional.linear(x.half().float(), self.linear.weight.half().float(), self.linear.bias.half().float())).half()


class ModelNew(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.linear = nn.Linear(k, n)
        self._kernels = {}

    def _kernel(self, m, n, k):
        if (m, n, k) not in self._kernels:
            self._kernels[m, n, k] = linear_relu(m, n, k)
        return self._kernels[m, n, k]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous().cuda().half()
        w, b = self.linear.weight.data.to(device=x.device, dtype=torch.float16), self.linear.bias.half()
        kernel = self._kernel(x.shape[0], w.shape[0], x.shape[1])
        return kernel(x, w.contiguous(), b)


def get_inputs():
    return [torch.randn(70, 48)]


def get_init_inputs():
    return [48, 96]
