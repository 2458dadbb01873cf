"""Kernels of CUDA-C, as nvcc compiles them, against torch."""

from __future__ import annotations

import pytest
import torch

from kernelwright.core.errors import GpuError, PtxError
from kernelwright.gpu import Program
from tests.gpu.devices import cuda_ptx, launch

SOURCE = r"""
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__constant__ float coefficients[4] = {1, 2, 3, 4};
__device__ int counter;
__global__ void sgemm(const float* A, const float* B, float* C, int n) {
    __shared__ float a[32][32], b[32][32];
    int tx = threadIdx.x, ty = threadIdx.y, r = blockIdx.y * 32 + ty, c = blockIdx.x * 32 + tx;
    float s = 0;
    for (int k = 0; k < n; k += 32) {
        a[ty][tx] = A[r * n + k + tx];
        b[ty][tx] = B[(k + ty) * n + c];
        __syncthreads();
        for (int i = 0; i < 32; i++) s += a[ty][i] * b[i][tx];
        __syncthreads();
    }
    C[r * n + c] = s;
}
__global__ void reduce(const float4* x, float* out, int n) {
    extern __shared__ float part[];
    float s = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float4 v = x[i];
        s += v.x + v.y + v.z + v.w;
    }
    for (int o = 16; o; o >>= 1) s += __shfl_down_sync(0xffffffff, s, o);
    if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = s;
    __syncthreads();
    if (threadIdx.x == 0) {
        float t = 0;
        for (int i = 0; i < blockDim.x / 32; i++) t += part[i];
        atomicAdd(out, t * coefficients[1]);
        atomicAdd(&counter, 1);
    }
}
__global__ void maths(const float* x, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    o[i] = expf(v) + sinf(v) * powf(fabsf(v), 1.5f) + tanhf(v) / (1 + expf(v)) + erff(v) + log1pf(fabsf(v));
}
__global__ void halves(const __half2* x, __half2* o, const __nv_bfloat16* y, __nv_bfloat16* z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    o[i] = __hfma2(x[i], x[i], h2exp(x[i]));
    z[i] = __hmax(y[i], __float2bfloat16(1.f)) * y[i];
}
__global__ void doubles(const double* x, double* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) o[i] = sqrt(x[i]) / x[i] + exp(x[i]) + pow(x[i], 2.5);
}
__device__ __noinline__ int collatz(int n) { int c = 0; while (n != 1) { n = n & 1 ? 3 * n + 1 : n / 2; c++; } return c; }
__global__ void calls(const int* x, long long* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, found[4];
    for (int k = 0; k < 4; k++) found[k] = collatz(i + k + 1);
    if (i >= n) return;
    int c = found[x[i] & 3];
    switch (x[i] & 7) {
        case 0: y[i] = c; break;
        case 1: y[i] *= c; break;
        case 2: y[i] /= 3; break;
        case 3: y[i] ^= c; break;
        case 4: y[i] = __popcll(y[i]); break;
        case 5: y[i] = y[i] % 1000; break;
        default: y[i] = __clzll(y[i]);
    }
}
__global__ void grid_sync(float* x, int n) {
    cg::grid_group g = cg::this_grid();
    x[g.thread_rank()] += 1;
    g.sync();
    float next = g.thread_rank() + 1 < n ? x[g.thread_rank() + 1] : 0;
    g.sync();
    x[g.thread_rank()] += next;
}
__global__ void tiles(const float* x, float* o) {
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    float v = x[threadIdx.x];
    for (int k = 4; k; k >>= 1) v += tile.shfl_xor(v, k);
    if (threadIdx.x % 3 == 0) v += __popc(__ballot_sync(__activemask(), v > 0));
    o[threadIdx.x] = v + __syncthreads_count(threadIdx.x % 5 == 0) + (__syncthreads_or(threadIdx.x == 70) ? 1000 : 0);
}
__global__ void lock(int* flag, int* sum, int* order) {
    bool done = false;
    while (!done) {
        if (atomicCAS(flag, 0, 1) == 0) {
            sum[0] += threadIdx.x;
            __threadfence();
            atomicExch(flag, 0);
            done = true;
        }
    }
}
__global__ void ticket(volatile int* turn, int* out) {  // blocks go on in order
    if (threadIdx.x == 0) {
        while (*turn != gridDim.x - 1 - blockIdx.x) {}
        out[blockIdx.x] = *turn;
        __threadfence();
        *turn = *turn + 1;
    }
}
"""


@pytest.fixture(scope="module")
def ptx() -> str:
    return cuda_ptx(SOURCE)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("checks", [False, True])
def test_tiled_product(ptx: str, checks: bool) -> None:
    a, b, c = torch.randn(64, 64), torch.randn(64, 64), torch.empty(64, 64)
    report = launch(ptx, "sgemm", (2, 2), (32, 32), a, b, c, 64, checks=checks)
    assert report.ok, report.faults
    torch.testing.assert_close(c, a @ b)


@pytest.mark.parametrize("checks", [False, True])
def test_reduction_with_shuffles_atomics_constants(ptx: str, checks: bool) -> None:
    x, out = torch.randn(5001, 4), torch.zeros(1)
    report = launch(ptx, "reduce", (16,), (256,), x, out, 5001, shared=32, checks=checks)
    assert report.ok, report.faults
    torch.testing.assert_close(out[0], 2 * x.sum(), rtol=1e-3, atol=1e-2)


def test_functions_of_floats(ptx: str) -> None:
    x, o = torch.randn(1000) * 3, torch.empty(1000)
    launch(ptx, "maths", (8,), (128,), x, o, 1000)
    v = x.double()
    want = v.exp() + v.sin() * v.abs().pow(1.5) + v.tanh() / (1 + v.exp()) + v.erf() + v.abs().log1p()
    torch.testing.assert_close(o.double(), want, rtol=1e-5, atol=1e-5)


def test_halves(ptx: str) -> None:
    x, o = torch.randn(1000).half(), torch.empty(1000).half()
    y, z = torch.randn(500).bfloat16(), torch.empty(500).bfloat16()
    launch(ptx, "halves", (4,), (128,), x, o, y, z, 500)
    torch.testing.assert_close(o.double(), x.double() ** 2 + x.double().exp(), rtol=3e-3, atol=1e-3)
    torch.testing.assert_close(z, torch.maximum(y, torch.ones_like(y)) * y, rtol=0, atol=0)


def test_doubles(ptx: str) -> None:
    x, o = torch.rand(300, dtype=torch.float64) + 0.1, torch.empty(300, dtype=torch.float64)
    launch(ptx, "doubles", (3,), (128,), x, o, 300)
    torch.testing.assert_close(o, x.sqrt() / x + x.exp() + x.pow(2.5), rtol=1e-14, atol=0)


def test_calls_switches_and_local_memory(ptx: str) -> None:
    n = 500
    x = torch.randint(0, 1 << 20, (n,), dtype=torch.int32)
    before = torch.randint(-(1 << 60), 1 << 60, (n,))
    y = before.clone()
    launch(ptx, "calls", (4,), (128,), x, y, n)

    def steps(v: int) -> int:
        count = 0
        while v != 1:
            v = 3 * v + 1 if v & 1 else v // 2
            count += 1
        return count

    for i in range(n):
        v, c, case = int(before[i]), steps(i + 1 + (int(x[i]) & 3)), int(x[i]) & 7
        sign = -1 if v < 0 else 1
        bits = v & ((1 << 64) - 1)
        want = [
            c,
            v * c,
            sign * (abs(v) // 3),
            v ^ c,
            bits.bit_count(),
            sign * (abs(v) % 1000),
            64 - bits.bit_length(),
            64 - bits.bit_length(),
        ]
        wrapped = (want[case] + (1 << 63)) % (1 << 64) - (1 << 63)
        assert int(y[i]) == wrapped, (i, case)


def test_a_whole_grid_in_step(ptx: str) -> None:
    x = torch.arange(1024, dtype=torch.float32)
    report = launch(ptx, "grid_sync", (8,), (128,), x, 1024, cooperative=True)
    assert report.ok, report.faults
    up = torch.arange(1024, dtype=torch.float32) + 1
    torch.testing.assert_close(x, up + torch.cat([up[1:], torch.zeros(1)]))


def test_votes_and_parts_of_warps(ptx: str) -> None:
    x, o = torch.randn(96), torch.empty(96)
    report = launch(ptx, "tiles", (1,), (96,), x, o, checks=True)
    assert report.ok, report.faults
    want = x.view(-1, 8).sum(1).repeat_interleave(8)
    i = torch.arange(96)
    third = i % 3 == 0
    for w in range(3):
        warp = i // 32 == w
        want[warp & third] += int(((want > 0) & warp & third).sum())
    torch.testing.assert_close(o, want + 20 + 1000)


def test_lanes_of_a_warp_take_a_lock(ptx: str) -> None:
    flag, total, order = (torch.zeros(1, dtype=torch.int32) for _ in range(3))
    launch(ptx, "lock", (4,), (64,), flag, total, order)
    assert int(total) == 4 * 63 * 32


def test_blocks_that_wait_for_later_blocks(ptx: str) -> None:
    turn, out = torch.zeros(1, dtype=torch.int32), torch.zeros(20, dtype=torch.int32)
    assert launch(ptx, "ticket", (20,), (32,), turn, out).ok
    assert out.tolist() == list(range(19, -1, -1))


def test_variables_of_a_module_are_reached_by_name(ptx: str) -> None:
    program = Program.from_ptx(ptx)
    address, size = program.variable("coefficients")
    assert size == 16
    import ctypes

    assert list((ctypes.c_float * 4).from_address(address)) == [1, 2, 3, 4]


def test_refused_by_name_and_line() -> None:
    head = ".version 8.8\n.target sm_80\n.address_size 64\n"
    text = head + ".entry k()\n{\n.reg .b32 %r<3>;\nvideo.madness.b32 %r1, %r2;\nret;\n}\n"
    with pytest.raises(PtxError, match=r"k\.ptx:7: video\.madness\.b32 is not known") as error:
        Program.from_ptx(text, name="k.ptx")
    assert error.value.line == 7


def test_launches_that_a_device_refuses(ptx: str) -> None:
    with pytest.raises(GpuError, match="2048 threads"):
        launch(ptx, "doubles", (1,), (2048,), torch.empty(1), torch.empty(1), 1)
    with pytest.raises(GpuError, match="no kernel"):
        Program.from_ptx(ptx).launch("nothing", (1,), (1,), b"")


def test_products_of_halves_with_bytes() -> None:
    source = r"""
__global__ void products(const int* a, const int* b, int* o) {
    int i = threadIdx.x;
    o[i] = __dp2a_lo(a[i], b[i], i);
    o[64 + i] = __dp2a_hi(a[i], b[i], i);
    o[128 + i] = (int)__dp2a_lo((unsigned)a[i], (unsigned)b[i], (unsigned)i);
}
"""
    a, b = (torch.randint(-(1 << 31), 1 << 31, (64,)).to(torch.int32) for _ in range(2))
    o = torch.zeros(192, dtype=torch.int32)
    launch(cuda_ptx(source), "products", (1,), (64,), a, b, o)
    halves, count = a.view(torch.int16).view(64, 2).long(), torch.arange(64)
    octets = b.view(torch.int8).view(64, 4).long()
    unsigned = (halves & 0xFFFF) * (b.view(torch.uint8).view(64, 4).long()[:, :2])
    wanted = [(halves * octets[:, :2]).sum(1) + count, (halves * octets[:, 2:]).sum(1) + count, unsigned.sum(1) + count]
    assert torch.equal(o, torch.cat(wanted).to(torch.int32))
