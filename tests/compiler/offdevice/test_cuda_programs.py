"""CUDA programs as people write them, compiled whole by nvcc and run on the machine in software."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kernelwright.cli.main import main

pytestmark = pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")

PROGRAM = r"""
#include <cuda_runtime.h>
#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>
#include <vector>
#define CHECK(call) do { cudaError_t e = (call); \
    if (e != cudaSuccess) { printf("%s: %s\n", #call, cudaGetErrorString(e)); exit(7); } } while (0)
#define LAUNCH(kernel, grid, block, ...) kernel<<<grid, block, 128 * sizeof(float)>>>(__VA_ARGS__)
__constant__ float scale[2];
__device__ int counter;
__managed__ int hits;
struct Pair { const float* a; const float* b; };
template <typename T> __global__ void axpy(Pair p, T* out, int n) {
    extern __shared__ float tile[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? p.a[i] : 0.f;
    __syncthreads();
    if (i < n) { out[i] = scale[1] * tile[threadIdx.x] + p.b[i]; atomicAdd(&counter, 1); }
    if (i == 0) hits = 5;
}
__global__ void everybody(int* sums) {
    auto grid = cooperative_groups::this_grid();
    if (threadIdx.x == 0) sums[blockIdx.x] = blockIdx.x;
    grid.sync();
    if (grid.thread_rank() == 0) for (unsigned b = 1; b < gridDim.x; b++) sums[0] += sums[b];
}
int main(int argc, char** argv) {
    const int n = 1000;
    std::vector<float> x(n), y(n, 1.f);
    for (int i = 0; i < n; i++) x[i] = i;
    const float factors[2] = {0.f, 2.f};
    CHECK(cudaMemcpyToSymbol(scale, factors, sizeof factors));
    float *a, *b, *c;
    CHECK(cudaMalloc(&a, n * sizeof(float))); CHECK(cudaMalloc(&b, n * sizeof(float))); CHECK(cudaMalloc(&c, n * sizeof(float)));
    cudaStream_t stream; CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMemcpyAsync(a, x.data(), n * sizeof(float), cudaMemcpyHostToDevice, stream));
    CHECK(cudaMemcpyAsync(b, y.data(), n * sizeof(float), cudaMemcpyHostToDevice, stream));
    cudaEvent_t from, to; cudaEventCreate(&from); cudaEventCreate(&to); cudaEventRecord(from);
    LAUNCH(axpy<float>, (n + 127) / 128, 128, Pair{a, b}, c, n);
    CHECK(cudaGetLastError()); CHECK(cudaDeviceSynchronize());
    cudaEventRecord(to); float ms = -1; CHECK(cudaEventElapsedTime(&ms, from, to));
    int count = 0, blocks = 0, size = 0, least = 0;
    CHECK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
    CHECK(cudaMemcpy(y.data(), c, n * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaOccupancyMaxPotentialBlockSize(&least, &size, axpy<float>));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, axpy<float>, 128, 0));
    int* sums; CHECK(cudaMalloc(&sums, 8 * sizeof(int)));
    void* arguments[] = {&sums};
    CHECK(cudaLaunchCooperativeKernel((void*)everybody, dim3(8), dim3(64), arguments, 0, stream));
    int total = 0; CHECK(cudaMemcpy(&total, sums, sizeof total, cudaMemcpyDeviceToHost));
    cudaDeviceProp properties; cudaGetDeviceProperties(&properties, 0);
    axpy<float><<<1, 2048>>>(Pair{a, b}, c, n);
    cudaError_t error = cudaGetLastError();
    printf("%g %d %d %d %d.%d %d %d %s\n", y[999], count, total, hits, properties.major, properties.minor,
           ms >= 0 && blocks > 0 && size > 0, argc, cudaGetErrorName(error));
    cudaFree(a); cudaFree(b); cudaFree(c); cudaFree(sums);
    return argc > 2 ? atoi(argv[2]) : 0;
}
"""

WRONG = r"""
#include <cstdio>
__global__ void shift(float* x, int n) {
    int i = threadIdx.x;
    if (i <= n)
        x[i] = 1.f;
}
int main() {
    float *x, host[96];
    cudaMalloc((void**)&x, 64 * sizeof(float));
    shift<<<1, 128>>>(x, 64);
    printf("%d\n", cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost) != cudaSuccess);
}
"""


def _run(tmp_path: Path, source: str, *words: str) -> int:
    file = tmp_path / "program.cu"
    file.write_text(source)
    with pytest.raises(SystemExit) as left:
        main(["run", str(file), *words])
    return int(left.value.code or 0)


def test_a_program_runs_as_it_is(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Templates, structures as arguments, launches in macros, symbols, managed memory, cooperative grids, errors of launches."""
    assert _run(tmp_path, PROGRAM, "--check", "--", "x", "3") == 3
    told = capfd.readouterr()
    assert told.out.strip() == "1999 1000 28 5 8.0 1 3 cudaErrorInvalidConfiguration"
    assert "no errors, 2 launches" in told.err


def test_errors_have_the_authors_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """An access past the end, and a copy of the host that reads further than the allocation."""
    assert _run(tmp_path, WRONG, "--check") == 1
    told = capfd.readouterr()
    assert "program.cu:6" in told.err
    assert "host_out_of_bounds" in told.err
    assert told.out.strip() == "1"


def test_what_does_not_compile_is_one_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The compiler's line; a function of CUDA that the runtime lacks, by its name."""
    assert _run(tmp_path, "int main() { return undeclared; }") == 2
    assert 'program.cu(1): error: identifier "undeclared" is undefined' in capfd.readouterr().err
    lacking = "#include <cuda_runtime.h>\nint main() { cudaGraph_t g; return cudaGraphCreate(&g, 0); }"
    assert _run(tmp_path, lacking) == 2
    assert "cudaGraphCreate" in capfd.readouterr().err
