"""CUDA's language in the emulator: warps, groups, atomics, half types, tensor cores, asynchronous copies, constant memory."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kernelwright.compiler.backends.cuda_c.emulator.library import Emulated, EmulatorError
from tests.compiler.backends.cuda_c.emulation import call, library, needs_gcc

SOURCE = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
namespace cg = cooperative_groups;
using namespace nvcuda;

__constant__ float table[4];
__device__ int counter;

__global__ void warps(const float* x, float* out) {
  const int t = threadIdx.x;
  const float v = x[t];
  out[t] = __shfl_sync(0xffffffffu, v, 3);
  out[32 + t] = __shfl_up_sync(0xffffffffu, v, 1);
  out[64 + t] = __shfl_down_sync(0xffffffffu, v, 2, 16);
  out[96 + t] = __shfl_xor_sync(0xffffffffu, v, 5);
  out[128 + t] = __popc(__ballot_sync(0xffffffffu, t % 3 == 0));
  out[160 + t] = __reduce_add_sync(0xffffffffu, t);
  if (t < 12) out[192 + t] = __shfl_sync(0xfffu, v, 11 - t);  // a part of the warp
  out[224 + t] = t % 2 ? __popc(__activemask()) : -1.0f;      // the lanes that took this branch
  out[256 + t] = __popc(__match_any_sync(0xffffffffu, t / 8));
}

__global__ void groups(const float* x, float* out) {
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  __shared__ float s[64];
  s[block.thread_rank()] = x[block.thread_rank()];
  block.sync();
  float v = s[63 - block.thread_rank()];
  for (int o = tile.size() / 2; o > 0; o /= 2) v += tile.shfl_down(v, o);
  if (tile.thread_rank() == 0) out[tile.meta_group_rank()] = v;
  out[8 + block.thread_rank()] = cg::reduce(tile, x[block.thread_rank()], cg::plus<float>());
}

__global__ void counting(int* bins, const int* keys, float* total, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  atomicAdd(&bins[keys[i]], 1);
  atomicAdd(total, 0.5f);
  atomicMax(&counter, keys[i]);
  const int all = __syncthreads_count(keys[i] == 0);
  if (threadIdx.x == 0) atomicAdd(&bins[8], all);
}

__global__ void halves(const __half* a, const __nv_bfloat16* b, __half* c, __nv_bfloat16* d, float4* f) {
  const int t = threadIdx.x;
  c[t] = __hfma(a[t], a[t], __float2half(0.5f));
  d[t] = b[t] * b[t] + __float2bfloat16(1.0f);
  const __half2 pair = __halves2half2(a[t], c[t]);
  float4 v = f[t];
  v.x = __low2float(pair) + table[t % 4];
  v.w = rsqrtf(4.0f) + __fdividef(1.0f, 2.0f);
  f[t] = v;
}

__global__ void tensor_cores(const half* a, const half* b, float* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 1.0f);
  wmma::load_matrix_sync(left, a, 16);
  wmma::load_matrix_sync(right, b, 16);
  wmma::mma_sync(sum, left, right, sum);
  for (int k = 0; k < sum.num_elements; ++k) sum.x[k] *= 2.0f;
  wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
}

template <bool waits> __global__ void copies(const float4* x, float* y) {
  extern __shared__ float s[];
  __pipeline_memcpy_async(&s[4 * threadIdx.x], &x[threadIdx.x], 16);
  __pipeline_commit();
  if (waits) __pipeline_wait_prior(0);
  __syncthreads();
  y[threadIdx.x] = s[127 - threadIdx.x];
}

// m16n8k16 by hand: fragments by ldmatrix, product by mma.sync
__global__ void by_hand(const half* a, const half* b, float* c) {
  __shared__ __align__(16) half as[16][16];
  __shared__ __align__(16) half bs[16][8];
  const int t = threadIdx.x;
  unsigned at = (unsigned)__cvta_generic_to_shared(&as[t / 2][t % 2 * 8]);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;\n" :: "r"(at), "l"(a + t * 8) : "memory");
  asm volatile("cp.async.commit_group;\n" ::);
  for (int k = t; k < 128; k += 32) bs[k / 8][k % 8] = b[k];
  asm volatile("cp.async.wait_group %0;\n" :: "n"(0));
  __syncthreads();
  unsigned x[4], y[2];
  float s[4] = {0, 0, 0, 0};
  unsigned row = (unsigned)__cvta_generic_to_shared(&as[t % 16][t / 16 * 8]);
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(row));
  unsigned column = (unsigned)__cvta_generic_to_shared(&bs[t % 16][0]);
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];\n" : "=r"(y[0]), "=r"(y[1]) : "r"(column));
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};\n"
      : "=f"(s[0]), "=f"(s[1]), "=f"(s[2]), "=f"(s[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "f"(s[0]), "f"(s[1]), "f"(s[2]), "f"(s[3]));
  for (int k = 0; k < 4; ++k) c[(t / 4 + 8 * (k / 2)) * 8 + t % 4 * 2 + k % 2] = s[k];
}

extern "C" void run_by_hand(const half* a, const half* b, float* c) { by_hand<<<1, 32>>>(a, b, c); }
extern "C" void run_warps(const float* x, float* y) { warps<<<1, 32>>>(x, y); }
extern "C" void run_groups(const float* x, float* y) { groups<<<1, 64>>>(x, y); }
extern "C" int run_counting(int* bins, const int* keys, float* total, int n) {
  int zero = 0, most = 0;
  cudaMemcpyToSymbol(counter, &zero, sizeof zero);
  counting<<<dim3((n + 63) / 64), dim3(64)>>>(bins, keys, total, n);
  cudaMemcpyFromSymbol(&most, counter, sizeof most);
  return most;
}
extern "C" void run_halves(const __half* a, const __nv_bfloat16* b, __half* c, __nv_bfloat16* d, float4* f) {
  const float host[4] = {1, 2, 3, 4};
  cudaMemcpyToSymbol(table, host, sizeof host);
  halves<<<1, 8>>>(a, b, c, d, f);
}
extern "C" void run_tensor_cores(const half* a, const half* b, float* c) { tensor_cores<<<1, 32>>>(a, b, c); }
extern "C" void run_copies(const float4* x, float* y) { copies<true><<<1, 32, 512>>>(x, y); }
extern "C" void run_no_wait(const float4* x, float* y) { copies<false><<<1, 32, 512>>>(x, y); }
"""

pytestmark = needs_gcc


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    folder: Path = tmp_path_factory.mktemp("language")
    return library(SOURCE, folder)


def test_warps(kernels: Emulated) -> None:
    x, out = torch.randn(32), torch.zeros(288)
    call(kernels.run_warps, x, out)
    rows = out.view(9, 32)
    lane = torch.arange(32)
    assert torch.equal(rows[0], x[3].expand(32))
    assert torch.equal(rows[1], torch.cat([x[:1], x[:-1]]))
    down = torch.where(lane % 16 + 2 < 16, lane + 2, lane)
    assert torch.equal(rows[2], x[down])
    assert torch.equal(rows[3], x[lane ^ 5])
    assert torch.equal(rows[4], torch.full((32,), 11.0))
    assert torch.equal(rows[5], torch.full((32,), 496.0))
    assert torch.equal(rows[6][:12], x[:12].flip(0))
    assert torch.equal(rows[7], torch.where(lane % 2 == 1, 16.0, -1.0))
    assert torch.equal(rows[8], torch.full((32,), 8.0))


def test_groups(kernels: Emulated) -> None:
    x, out = torch.randn(64), torch.zeros(72)
    call(kernels.run_groups, x, out)
    assert torch.allclose(out[:8], x.flip(0).view(8, 8).sum(1), atol=1e-5)
    assert torch.allclose(out[8:], x.view(8, 8).sum(1, keepdim=True).expand(8, 8).reshape(-1), atol=1e-5)


def test_atomics_and_counting_barrier(kernels: Emulated) -> None:
    keys = torch.randint(0, 8, (200,), dtype=torch.int32)
    bins, total = torch.zeros(9, dtype=torch.int32), torch.zeros(1)
    call(kernels.run_counting, bins, keys, total, 200)
    assert torch.equal(bins[:8].long(), torch.bincount(keys, minlength=8))
    assert bins[8] == bins[0]
    assert total.item() == 100.0


def test_half_types(kernels: Emulated) -> None:
    a, b = torch.randn(8).half(), torch.randn(8).bfloat16()
    c, d, f = torch.zeros(8).half(), torch.zeros(8).bfloat16(), torch.zeros(8, 4)
    call(kernels.run_halves, a, b, c, d, f)
    assert torch.equal(c, (a.double() * a.double() + 0.5).half())
    assert torch.equal(d, b * b + 1)
    assert torch.equal(f[:, 0], a.float() + torch.tensor([1.0, 2, 3, 4, 1, 2, 3, 4]))
    assert torch.equal(f[:, 3], torch.ones(8))


def test_tensor_cores(kernels: Emulated) -> None:
    a, b, c = torch.randn(16, 16).half(), torch.randn(16, 16).half(), torch.zeros(16, 16)
    call(kernels.run_tensor_cores, a, b, c)
    assert torch.allclose(c, 2 * (a.float() @ b.float().T + 1), atol=1e-3)


def test_inline_ptx(kernels: Emulated) -> None:
    a, b, c = torch.randn(16, 16).half(), torch.randn(16, 8).half(), torch.zeros(16, 8)
    call(kernels.run_by_hand, a, b, c)
    assert torch.allclose(c, a.float() @ b.float(), atol=1e-3)


def test_asynchronous_copies_arrive_at_the_wait(kernels: Emulated) -> None:
    x, y = torch.randn(32, 4), torch.zeros(32)
    call(kernels.run_copies, x, y)
    assert torch.equal(y, x.flatten().flip(0)[:32])
    with pytest.raises(EmulatorError, match="uninitialised"):
        call(kernels.run_no_wait, x, y)
