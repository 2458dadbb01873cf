"""LayerNorm in column blocks: sums in two serial loops."""

import tilelang
import tilelang.language as T
import torch


@tilelang.jit
def layer_norm(M, N, rows, columns, eps):
    @T.prim_func
    def main(
        X: T.Tensor((M, N), "float32"),
        W: T.Tensor((N,), "float32"),
        B: T.Tensor((N,), "float32"),
        Y: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(M, rows), threads=128) as bx:
            x = T.alloc_shared((rows, columns), "float32")
            square = T.alloc_fragment((rows, columns), "float32")
            mean = T.alloc_fragment((rows,), "float32")
            var = T.alloc_fragment((rows,), "float32")
            T.clear(mean)
            T.clear(var)
            for k in T.serial(T.ceildiv(N, columns)):
                T.copy(X[bx * rows, k * columns], x)
                T.reduce_sum(x, mean, dim=1, clear=False)
            for i in T.Parallel(rows):
                mean[i] = mean[i] / N
            for k in T.serial(T.ceildiv(N, columns)):
                T.copy(X[bx * rows, k * columns], x)
                for i, j in T.Parallel(rows, columns):
                    d = x[i, j] - mean[i]
                    square[i, j] = T.if_then_else(k * columns + j < N, d * d, 0.0)
                T.reduce_sum(square, var, dim=1, clear=False)
            for k in T.serial(T.ceildiv(N, columns)):
                T.copy(X[bx * rows, k * columns], x)
                for i, j in T.Parallel(rows, columns):
                    at = k * columns + j
                    if at < N:
                        Y[bx * rows + i, at] = (x[i, j] - mean[i]) * T.rsqrt(var[i] / N + eps) * W[at] + B[at]

    return main


class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x):
        flat = x.contiguous().view(-1, x.shape[-1])
        y = torch.empty_like(flat)
        layer_norm(*flat.shape, 8, 64, 1e-5)(flat, self.norm.weight, self.norm.bias, y)
        return y.view(x.shape)
