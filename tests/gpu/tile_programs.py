"""A product in TileLang, lowered for sm_90: it copies by tensor maps, with warps for copying and warps for multiplying."""

from __future__ import annotations

import tilelang
import tilelang.language as T
from tilelang import tvm


def product(m: int, n: int, k: int) -> tuple[str, int]:
    """CUDA source, and bytes of dynamic shared memory."""

    @T.prim_func
    def main(A: T.Tensor((m, k), "float16"), B: T.Tensor((k, n), "float16"), C: T.Tensor((m, n), "float16")):
        with T.Kernel(T.ceildiv(n, 128), T.ceildiv(m, 128), threads=128) as (x, y):
            a, b = T.alloc_shared((128, 64), "float16"), T.alloc_shared((64, 128), "float16")
            c = T.alloc_fragment((128, 128), "float32")
            T.clear(c)
            for step in T.Pipelined(T.ceildiv(k, 64), num_stages=3):
                T.copy(A[y * 128, step * 64], a)
                T.copy(B[step * 64, x * 128], b)
                T.gemm(a, b, c)
            T.copy(c, C[y * 128, x * 128])

    target = tvm.target.Target({"kind": "cuda", "arch": "sm_90a"})
    with target:
        artifact = tilelang.lower(main, target=target)
    (function,) = artifact.device_mod.functions.values()
    return str(artifact.kernel_source), int(dict(function.attrs)["dyn_shared_memory_buf"])
