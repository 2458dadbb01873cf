"""Half GEMM as in the README: swizzled layouts, L2 rasterisation, T.gemm with a policy, an epilogue; compiled in __init__."""

import tilelang
import tilelang.language as T
import torch
import torch.nn as nn
from tilelang.layout import make_swizzled_layout


def matmul(M, N, K, block_M, block_N, block_K, dtype="float16", accum_dtype="float"):
    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), bias: T.Tensor((N,), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_N, block_K), dtype)
            C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
            C_shared = T.alloc_shared((block_M, block_N), dtype)
            T.annotate_layout({A_shared: make_swizzled_layout(A_shared), B_shared: make_swizzled_layout(B_shared)})
            T.use_swizzle(panel_size=10, enable=True)
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                for j, k in T.Parallel(block_N, block_K):
                    B_shared[j, k] = B[bx * block_N + j, ko * block_K + k]
                T.gemm(A_shared, B_shared, C_local, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] = T.max(C_local[i, j] + bias[bx * block_N + j], 0)
            T.copy(C_local, C_shared)
            T.copy(C_shared, C[by * block_M, bx * block_N])

    return main


class Model(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.fc = nn.Linear(i, o).half()

    def forward(self, x):
        return torch.relu(self.fc(x))


class ModelNew(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.fc = nn.Linear(i, o).half()
        self.kernels = {}

    def forward(self, x):
        key = tuple(x.shape)
        if key not in self.kernels:
            program = matmul(x.shape[0], self.fc.out_features, self.fc.in_features, 64, 64, 32)
            self.kernels[key] = tilelang.compile(program, out_idx=-1, target="cuda", execution_backend="cython")
        return self.kernels[key](x, self.fc.weight, self.fc.bias)


def get_inputs():
    return [torch.randn(96, 64).half()]


def get_init_inputs():
    return [64, 128]
