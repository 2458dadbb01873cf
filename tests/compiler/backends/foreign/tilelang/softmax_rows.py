"""A softmax whose rows fit on the chip, several to a block, compiled with tilelang.compile, and a scaled sum with an output given by the caller."""

import tilelang
import tilelang.language as T
import torch
import torch.nn as nn


def softmax(rows, cols, block_rows=4, threads=128):
    @T.prim_func
    def kernel(x: T.Tensor([rows, cols], "float32"), y: T.Tensor([rows, cols], "float32")):
        with T.Kernel(T.ceildiv(rows, block_rows), threads=threads) as bx:
            tile = T.alloc_fragment([block_rows, cols], "float32")
            top = T.alloc_fragment([block_rows], "float32")
            total = T.alloc_fragment([block_rows], "float32")
            T.copy(x[bx * block_rows : (bx + 1) * block_rows, :], tile)
            T.reduce_max(tile, top, dim=1, clear=True)
            for i, j in T.Parallel(block_rows, cols):
                tile[i, j] = T.exp(tile[i, j] - top[i])
            T.reduce_sum(tile, total, dim=1)
            for i, j in T.Parallel(block_rows, cols):
                tile[i, j] /= total[i]
            T.copy(tile, y[bx * block_rows, 0])

    return kernel


@tilelang.jit
def axpy(n, alpha, block=256):
    @T.prim_func
    def main(x: T.Buffer((n,), "float32"), y: T.Buffer((n,), "float32"), out: T.Buffer((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=128) as bx:
            for i in T.Parallel(block):
                if bx * block + i < n:
                    out[bx * block + i] = alpha * x[bx * block + i] + y[bx * block + i]

    return main


class Model(nn.Module):
    def forward(self, x):
        y = torch.softmax(x, dim=-1)
        return y, 0.5 * x + y


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = tilelang.compile(softmax(*x.shape), out_idx=-1, target="cuda", execution_backend="cython")(x)
        out = torch.empty_like(x)
        axpy(x.numel(), 0.5)(x.view(-1), y.view(-1), out.view(-1))
        torch.cuda.synchronize()
        return y, out


def get_inputs():
    return [torch.randn(8, 128)]


def get_init_inputs():
    return []
