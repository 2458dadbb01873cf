"""Planted defects: each is found, on its line; the honest kernels beside them are clean."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.gpu.devices import cuda_ptx, launch, line_of

# The bug of a kernel stands between BUG(…); DEFECT chooses which of them are there.
SOURCE = r"""
#include <cuda_pipeline.h>
#ifdef DEFECT
#define SYNC
#define EDGE(good, bad) bad
#else
#define SYNC __syncthreads()
#define EDGE(good, bad) good
#endif
__global__ void reverse(const float* x, float* o) {
    __shared__ float t[256];
    t[threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];
    SYNC;
    o[blockIdx.x * 256 + threadIdx.x] = t[255 - threadIdx.x];  // race: reverse
}
__global__ void product(const float* a, const float* b, float* c, int n) {
    __shared__ float s[16][16], t[16][16];
    int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, col = blockIdx.x * 16 + x;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        s[y][x] = a[row * n + k + x];                          // race: product
        t[y][x] = b[(k + y) * n + col];                        // race: product
        __syncthreads();
        for (int i = 0; i < 16; i++) sum += s[y][i] * t[i][x];  // race: product
        SYNC;
    }
    c[row * n + col] = sum;
}
__global__ void edge(const float* x, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) o[i] = EDGE(x[i], x[i + 1]);                    // bounds: edge
}
__global__ void mask(const float* x, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (EDGE(i < n, i <= n)) o[i] = 1;                         // bounds: mask
}
__global__ void before(const float* x, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) o[i] = x[EDGE(i ? i - 1 : 0, i - 1)];           // bounds: before
}
__global__ void vectors(const float* x, float4* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) o[i] = *(const float4*)(x + 4 * i + EDGE(0, 1)); // misaligned: vectors
}
__global__ void unwritten(float* o) {
    __shared__ float t[128];
    if (threadIdx.x < EDGE(128, 100)) t[threadIdx.x] = threadIdx.x;
    __syncthreads();
    o[threadIdx.x] = t[threadIdx.x];                           // unwritten: unwritten
}
__global__ void beyond(float* o) {
    __shared__ float t[128];
    t[threadIdx.x] = 1;
    __syncthreads();
    o[threadIdx.x] = t[threadIdx.x ^ EDGE(64, 128)];           // shared bounds: beyond
}
__global__ void copied(const float4* x, float4* o) {
    __shared__ float4 t[64];
    __pipeline_memcpy_async(&t[threadIdx.x], x + threadIdx.x, 16);
    __pipeline_commit();
    EDGE(__pipeline_wait_prior(0), (void)0);
    o[threadIdx.x] = t[threadIdx.x];                           // stale: copied
}
__global__ void half_block(const float* x, float* o) {
    __shared__ float t[128];
    t[threadIdx.x] = x[threadIdx.x];
    if (threadIdx.x < EDGE(1000, 64)) __syncthreads();         // deadlock: half_block
    else while (*(volatile float*)o == 0) {}
    o[threadIdx.x] = t[threadIdx.x] + 1;
}
__global__ void neighbours(float* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = x[EDGE(i, i ^ 128)] + 1;                            // blocks: neighbours
}
__global__ void histogram(const int* x, int* o) {
    __shared__ int t[32];
    if (threadIdx.x < 32) t[threadIdx.x] = 0;
    __syncthreads();
    int b = x[threadIdx.x] & 31;
    EDGE(atomicAdd(&t[b], 1), t[b] += 1);                      // race: histogram
    __syncthreads();
    if (threadIdx.x < 32) o[threadIdx.x] = t[threadIdx.x];
}
__global__ void held_twice(const float* x, float* o) {
    __shared__ float t[32];
    t[threadIdx.x & 31] = x[EDGE(threadIdx.x & 31, threadIdx.x)];  // race: held_twice
    __syncthreads();
    o[threadIdx.x] = t[threadIdx.x & 31];
}
__global__ void absent(const float* x, float* o) {
    float v = x[threadIdx.x];
    if (threadIdx.x < EDGE(64, 16)) v += __shfl_xor_sync(0xffffffff, v, 1);  // lanes: absent
    else if (threadIdx.x == 17) while (o[0] != 0) o[1] += 1;
    o[threadIdx.x] = v;
}
"""

CASES: dict[str, tuple[str, str, tuple[int, ...], tuple[int, ...], Any]] = {
    "reverse": ("shared_race", "race: reverse", (2,), (256,), lambda: (torch.randn(512), torch.empty(512))),
    "product": (
        "shared_race",
        "race: product",
        (2, 2),
        (16, 16),
        lambda: (torch.randn(32, 32), torch.randn(32, 32), torch.empty(32, 32), 32),
    ),
    "edge": ("out_of_bounds", "bounds: edge", (2,), (128,), lambda: (torch.randn(200), torch.empty(200), 200)),
    "mask": ("out_of_bounds", "bounds: mask", (2,), (128,), lambda: (torch.randn(200), torch.empty(200), 200)),
    "before": ("out_of_bounds", "bounds: before", (2,), (128,), lambda: (torch.randn(200), torch.empty(200), 200)),
    "vectors": ("misaligned", "misaligned: vectors", (1,), (32,), lambda: (torch.randn(200), torch.empty(128), 32)),
    "unwritten": ("uninitialised", "unwritten: unwritten", (1,), (128,), lambda: (torch.empty(128),)),
    "beyond": ("shared_out_of_bounds", "shared bounds: beyond", (1,), (128,), lambda: (torch.empty(128),)),
    "copied": ("stale_copy", "stale: copied", (1,), (64,), lambda: (torch.randn(256), torch.empty(256))),
    "half_block": ("deadlock", "deadlock: half_block", (1,), (128,), lambda: (torch.randn(128), torch.zeros(128))),
    "neighbours": ("global_race", "blocks: neighbours", (4,), (128,), lambda: (torch.zeros(512),)),
    "histogram": (
        "shared_race",
        "race: histogram",
        (1,),
        (256,),
        lambda: (torch.randint(0, 99, (256,), dtype=torch.int32), torch.empty(32, dtype=torch.int32)),
    ),
    "held_twice": ("shared_race", "race: held_twice", (1,), (64,), lambda: (torch.randn(64), torch.empty(64))),
    "absent": ("missing_lanes", "lanes: absent", (1,), (32,), lambda: (torch.randn(32), torch.zeros(32))),
}


@pytest.mark.parametrize("name", CASES)
def test_the_honest_kernel_is_clean(name: str) -> None:
    _, _, grid, block, arguments = CASES[name]
    report = launch(cuda_ptx(SOURCE), name, grid, block, *arguments(), checks=True, counts=True, patience=2.0)
    assert report.ok, [str(f) for f in report.faults]


@pytest.mark.parametrize("name", CASES)
def test_the_defect_is_found_on_its_line(name: str) -> None:
    kind, mark, grid, block, arguments = CASES[name]
    report = launch(cuda_ptx(SOURCE, "sm_80", "-DDEFECT"), name, grid, block, *arguments(), checks=True, patience=0.5)
    found = {(f.kind, f.location.outermost.line) for f in report.faults if f.location}
    lines = [n for n, line in enumerate(SOURCE.splitlines(), 1) if mark in line]
    assert any((kind, n) in found for n in lines), [str(f) for f in report.faults]


def test_a_fault_is_a_sentence_with_place_thread_and_allocation() -> None:
    x, o = torch.randn(200), torch.empty(200)
    report = launch(cuda_ptx(SOURCE, "sm_80", "-DDEFECT"), "edge", (2,), (128,), x, o, 200, checks=True)
    text = str(report.faults[0])
    assert f"k.cu:{line_of(SOURCE, 'bounds: edge')}" in text
    assert "block (1, 0, 0), thread (71, 0, 0)" in text
    assert "0 bytes past the end of argument 0" in text


def test_counts_of_sectors_banks_and_instructions() -> None:
    source = r"""
__global__ void strided(const float* x, float* o, int s) {
    __shared__ float t[1024];
    t[threadIdx.x * s] = x[threadIdx.x * s];
    __syncthreads();
    o[threadIdx.x] = t[threadIdx.x * s];
}
"""
    for stride, sectors, passes in ((1, 4, 1), (2, 8, 2), (8, 32, 8)):
        report = launch(
            cuda_ptx(source), "strided", (1,), (32,), torch.randn(1024), torch.empty(32), stride, checks=True, counts=True
        )
        assert report.ok
        of = {c.instruction: c for c in report.counts if c.requests}
        assert of["ld.global.f32"].units == sectors
        assert of["ld.global.f32"].least_units == 4
        assert of["st.shared.f32"].units == passes
        assert of["ld.shared.f32"].units == passes
        assert report.by_opcode()["bar.sync"] == 1
