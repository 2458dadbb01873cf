"""Kernels in Triton and their PTX, compiled ahead of time with no device."""

from __future__ import annotations

import functools
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def softmax(x, o, n, B: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + r * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(o + r * n + i, e / tl.sum(e, 0), mask=i < n)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    om = pm * BM + tl.arange(0, BM)
    on = pn * BN + tl.arange(0, BN)
    ok = tl.arange(0, BK)
    ap = a + om[:, None] * K + ok[None, :]
    bp = b + ok[:, None] * N + on[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(ap, mask=(om[:, None] < M) & (ok[None, :] + k < K), other=0.0)
        y = tl.load(bp, mask=(on[None, :] < N) & (ok[:, None] + k < K), other=0.0)
        acc = tl.dot(x, y, acc)
        ap += BK
        bp += BK * N
    tl.store(c + om[:, None] * N + on[None, :], acc.to(c.dtype.element_ty), mask=(om[:, None] < M) & (on[None, :] < N))


@triton.jit
def scans(x, h, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    tl.store(o + i, tl.cumsum(v, 0))
    tl.store(o + B + i, tl.sort(v))
    tl.store(o + 2 * B + i, tl.erf(v) + tl.sin(v) + tl.log(v) + tl.sqrt(v))
    tl.store(o + 3 * B + i, tl.argmax(v, 0).to(tl.float32) + 0 * v)
    tl.atomic_add(h + (v * 4).to(tl.int32), 1)


@triton.jit
def fp8(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    low, high = v.to(tl.float8e5), v.to(tl.float8e4nv)
    tl.store(o + i, high.to(tl.float32) + low.to(tl.float32) + v.to(tl.bfloat16).to(tl.float32), mask=i < n)


def compiled(
    name: str, signature: dict[str, str], constants: dict[str, Any], capability: int = 80, **options: Any
) -> tuple[str, int]:
    """PTX and bytes of shared memory; arguments are aligned to 16 where Triton would see that they are."""
    return _compiled(name, tuple(signature.items()), tuple(constants.items()), capability, tuple(options.items()))


@functools.lru_cache(maxsize=64)
def _compiled(name: str, signature: Any, constants: Any, capability: int, options: Any) -> tuple[str, int]:
    types = {**dict(signature), **dict.fromkeys(dict(constants), "constexpr")}
    attributes = {(k,): [["tt.divisibility", 16]] for k, (_, kind) in enumerate(signature) if kind.startswith("*")}
    source = ASTSource(globals()[name], types, dict(constants), attributes)
    made = triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": 4, **dict(options)})
    return made.asm["ptx"], made.metadata.shared
