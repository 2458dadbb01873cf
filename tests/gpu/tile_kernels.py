"""Products by tensor descriptors, compiled by Triton for sm_90."""

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def host(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(a.load([i, k]), b.load([k, j]), total)
    c.store([i, j], total.to(tl.float16))


@triton.jit
def own(pa, pb, pc, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    a = tl.make_tensor_descriptor(pa, [M, K], [K, 1], [BM, BK])
    b = tl.make_tensor_descriptor(pb, [K, N], [N, 1], [BK, BN])
    c = tl.make_tensor_descriptor(pc, [M, N], [N, 1], [BM, BN])
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(a.load([i, k]), b.load([k, j]), total)
    c.store([i, j], total.to(tl.float16))


def compiled(entry: str) -> str:
    """PTX of one of them with tiles of 128 by 128 by 64."""
    constants = {"BM": 128, "BN": 128, "BK": 64}
    signature = {
        "host": {
            "a": "tensordesc<fp16[128,64]>",
            "b": "tensordesc<fp16[64,128]>",
            "c": "tensordesc<fp16[128,128]>",
            "K": "i32",
        },
        "own": {**dict.fromkeys(("pa", "pb", "pc"), "*fp16"), **dict.fromkeys("MNK", "i32")},
    }[entry] | dict.fromkeys(constants, "constexpr")
    source = ASTSource(globals()[entry], signature, constants)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4, "num_stages": 3}).asm["ptx"]
