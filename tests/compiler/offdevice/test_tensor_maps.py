"""Copies of tiles by tensor maps in whole programs: CUDA's host code makes them, and Triton's descriptors."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.cli.main import run

CUDA = r"""
#include <cstdio>
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime.h>
#include <cstdint>
__device__ inline uint32_t at(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__global__ void twice(const __grid_constant__ CUtensorMap in, const __grid_constant__ CUtensorMap out) {
    __shared__ alignas(128) float tile[32][32];
    __shared__ uint64_t bar;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at(&bar)));
        asm volatile("fence.mbarrier_init.release.cluster;");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4096;" ::"r"(at(&bar)) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                     ::"r"(at(tile)), "l"(&in), "r"(blockIdx.x * 32), "r"(blockIdx.y * 32), "r"(at(&bar)) : "memory");
    }
    __syncthreads();
    asm volatile("{.reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @p bra D; bra W; D: }" ::"r"(at(&bar)) : "memory");
    for (int k = threadIdx.x; k < 1024; k += blockDim.x) tile[k / 32][k % 32] *= 2;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];"
                     ::"l"(&out), "r"(blockIdx.x * 32), "r"(blockIdx.y * 32), "r"(at(tile)) : "memory");
        asm volatile("cp.async.bulk.commit_group;");
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
}
int main() {
    const int n = 100;  // rows of 400 bytes: no whole number of tiles
    float *x, *y; cudaMallocManaged(&x, n * n * 4); cudaMallocManaged(&y, n * n * 4);
    for (int k = 0; k < n * n; k++) x[k] = k, y[k] = -1;
    void* f; cudaDriverEntryPointQueryResult r;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault, &r);
    auto encode = (PFN_cuTensorMapEncodeTiled_v12000)f;
    CUtensorMap in, out; cuuint64_t extents[] = {n, n}, strides[] = {n * 4}; cuuint32_t box[] = {32, 32}, steps[] = {1, 1};
    auto make = [&](CUtensorMap* map, float* from) {
        return encode(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, from, extents, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                      CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    };
    int bad = make(&in, x) + make(&out, y);
    twice<<<dim3(4, 4), 128>>>(in, out);
    printf("%d %s\n", bad, cudaGetErrorString(cudaDeviceSynchronize()));
    int wrong = 0;
    for (int k = 0; k < n * n; k++) wrong += y[k] != 2.0f * k;
    printf("%d wrong\n", wrong);
    return wrong != 0;
}
"""
TRITON = """
import torch, triton, triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor
@triton.jit
def product(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(a.load([i, k]), b.load([k, j]), total)
    c.store([i, j], total.to(tl.float16))
M, N, K = 200, 136, 96
a, b, c = torch.randn(M, K, device="cuda").half(), torch.randn(K, N, device="cuda").half(), torch.empty(M, N, device="cuda").half()
d = [TensorDescriptor.from_tensor(t, s) for t, s in ((a, [64, 32]), (b, [32, 64]), (c, [64, 64]))]
product[(4, 3)](*d, K, BM=64, BN=64, BK=32)
e = (c.float() - a.float() @ b.float()).abs().max().item()
print("error", e); assert e < 0.05
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_a_cuda_program_makes_its_maps(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "twice.cu").write_text(CUDA)
    assert run(["run", str(tmp_path / "twice.cu"), "--target", "h100", "--check"]) == 0
    assert "0 wrong" in capfd.readouterr().out


def test_descriptors_of_a_triton_program_are_maps(tmp_path: Path) -> None:
    """In a process of its own: the program's torch answers for the target until it ends."""
    pytest.importorskip("triton")
    (tmp_path / "product.py").write_text(TRITON)
    command = [sys.executable, "-m", "kernelwright", "run", str(tmp_path / "product.py"), "--target", "h100", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
