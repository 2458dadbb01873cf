"""Batched product with a transposed operand by strides, a 3-D grid, and a while loop over k."""

import torch
import triton
import triton.language as tl


@triton.jit
def bmm_kernel(
    a, b, c, M, N, K, sab, sam, sak, sbb, sbk, sbn, scb, scm, scn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    pid_b = tl.program_id(axis=2)
    pm = tl.program_id(axis=0)
    pn = tl.program_id(axis=1)
    a = a + pid_b * sab
    b = b + pid_b * sbb
    c = c + pid_b * scb
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    acc = tl.zeros([BM, BN], tl.float32)
    k = 0
    while k < K:
        rk = k + tl.arange(0, BK)
        x = tl.load(a + rm[:, None] * sam + rk[None, :] * sak, mask=(rm < M)[:, None] & (rk < K)[None, :], other=0.0)
        y = tl.load(b + rk[:, None] * sbk + rn[None, :] * sbn, mask=(rk < K)[:, None] & (rn < N)[None, :], other=0.0)
        acc = tl.dot(x, y, acc, allow_tf32=False)
        k += BK
    tl.store(c + rm[:, None] * scm + rn[None, :] * scn, acc, mask=(rm < M)[:, None] & (rn < N)[None, :])


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        bt = b.transpose(1, 2)
        B, M, K = a.shape
        N = bt.shape[2]
        c = torch.zeros((B, M, N), device=a.device, dtype=a.dtype)
        bmm_kernel[(triton.cdiv(M, 16), triton.cdiv(N, 16), B)](
            a, bt, c, M, N, K, *a.stride(), *bt.stride(), *c.stride(), BM=16, BN=16, BK=16
        )
        return c
