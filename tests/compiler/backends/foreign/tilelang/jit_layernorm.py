"""LayerNorm: tilelang.jit with out_idx, fragments per row block, reduce with clear, rsqrt, T.ceildiv, a macro."""

import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


@tilelang.jit(out_idx=[-1], pass_configs={tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True})
def layernorm(M, N, blk_m, eps, dtype="float32"):
    @T.macro
    def centred(x: T.FragmentBuffer((blk_m, N), dtype), mean: T.FragmentBuffer((blk_m,), dtype)):
        for i, j in T.Parallel(blk_m, N):
            x[i, j] = x[i, j] - mean[i]

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), W: T.Tensor((N,), dtype), B: T.Tensor((N,), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, blk_m), threads=128) as bx:
            xs = T.alloc_shared((blk_m, N), dtype)
            x = T.alloc_fragment((blk_m, N), dtype)
            sq = T.alloc_fragment((blk_m, N), dtype)
            mean = T.alloc_fragment((blk_m,), dtype)
            var = T.alloc_fragment((blk_m,), dtype)
            T.copy(X[bx * blk_m, 0], xs)
            T.copy(xs, x)
            T.reduce_sum(x, mean, dim=1, clear=True)
            for i in T.Parallel(blk_m):
                mean[i] /= N
            centred(x, mean)
            for i, j in T.Parallel(blk_m, N):
                sq[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(sq, var, dim=1)
            for i in T.Parallel(blk_m):
                var[i] = T.rsqrt(var[i] / N + eps)
            for i, j in T.Parallel(blk_m, N):
                x[i, j] = x[i, j] * var[i] * W[j] + B[j]
            T.copy(x, Y[bx * blk_m, 0])

    return main


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.ln = nn.LayerNorm(n)

    def forward(self, x):
        return self.ln(x)


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.ln = nn.LayerNorm(n)
        self.n = n

    def forward(self, x):
        flat = x.reshape(-1, self.n).contiguous()
        kernel = layernorm(flat.shape[0], self.n, 4, self.ln.eps)
        return kernel(flat, self.ln.weight, self.ln.bias).view(x.shape)


def get_inputs():
    return [torch.randn(3, 10, 128)]


def get_init_inputs():
    return [128]
