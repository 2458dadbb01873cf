"""Causal attention with a running maximum, in two stages, exp2 and 2-D pointers."""

import math

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def _attn_inner(acc, l_i, m_i, q, k_base, v_base, stride_kn, stride_vn, start_m, qk_scale, N_CTX,
                BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, STAGE: tl.constexpr):
    if STAGE == 1:
        lo, hi = 0, start_m * BLOCK_M
    else:
        lo, hi = start_m * BLOCK_M, min((start_m + 1) * BLOCK_M, N_CTX)
        lo = tl.multiple_of(lo, BLOCK_M)
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    for start_n in tl.range(lo, hi, BLOCK_N, warp_specialize=False):
        start_n = tl.multiple_of(start_n, BLOCK_N)
        cols = start_n + offs_n
        k = tl.load(k_base + cols[None, :] * stride_kn + offs_d[:, None], mask=cols[None, :] < N_CTX, other=0.0)
        qk = tl.dot(q, k, input_precision="ieee")
        if STAGE == 2:
            mask = (offs_m[:, None] >= cols[None, :]) & (cols[None, :] < N_CTX)
            qk = qk * qk_scale + tl.where(mask, 0, -1.0e6)
            m_ij = tl.maximum(m_i, tl.max(qk, 1))
            qk -= m_ij[:, None]
        else:
            m_ij = tl.maximum(m_i, tl.max(qk, 1) * qk_scale)
            qk = qk * qk_scale - m_ij[:, None]
        p = tl.math.exp2(qk)
        alpha = tl.math.exp2(m_i - m_ij)
        l_ij = tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(v_base + cols[:, None] * stride_vn + offs_d[None, :], mask=cols[:, None] < N_CTX, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="ieee")
        l_i = l_i * alpha + l_ij
        m_i = m_ij
    return acc, l_i, m_i


@triton.jit
def _attn_fwd(Q, K, V, sm_scale, Out, stride_h, stride_n, N_CTX, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr):
    tl.static_assert(BLOCK_N <= BLOCK_M)
    start_m = tl.program_id(0)
    off_hz = tl.program_id(1).to(tl.int64)
    base = off_hz * stride_h
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, D)
    m_i = tl.zeros([BLOCK_M], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32) + 1.0
    acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    qk_scale = sm_scale * 1.44269504
    rows = offs_m[:, None] < N_CTX
    q = tl.load(Q + base + offs_m[:, None] * stride_n + offs_d[None, :], mask=rows, other=0.0)
    acc, l_i, m_i = _attn_inner(acc, l_i, m_i, q, K + base, V + base, stride_n, stride_n, start_m, qk_scale, N_CTX, BLOCK_M, BLOCK_N, D, 1)
    acc, l_i, m_i = _attn_inner(acc, l_i, m_i, q, K + base, V + base, stride_n, stride_n, start_m, qk_scale, N_CTX, BLOCK_M, BLOCK_N, D, 2)
    acc = acc / l_i[:, None]
    tl.store(Out + base + offs_m[:, None] * stride_n + offs_d[None, :], acc.to(Out.type.element_ty), mask=rows)


class Model(nn.Module):
    def forward(self, q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


class ModelNew(nn.Module):
    def forward(self, q, k, v):
        B, H, N, D = q.shape
        assert D in {16, 32, 64, 128, 256}
        q, k, v = [t.contiguous() for t in (q, k, v)]
        o = torch.empty_like(q)
        grid = (triton.cdiv(N, 32), B * H, 1)
        _attn_fwd[grid](q, k, v, 1.0 / math.sqrt(D), o, q.stride(1), q.stride(2), N, BLOCK_M=32, BLOCK_N=16, D=D, num_warps=4, num_stages=2)
        return o


def get_inputs():
    return [torch.randn(1, 2, 90, 32) for _ in range(3)]


def get_init_inputs():
    return []
