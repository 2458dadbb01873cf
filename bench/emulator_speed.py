"""How fast the CUDA emulator runs three kernels that everybody writes, with all its checks on, beside a first emulator without them.

    python bench/emulator_speed.py --out bench/results/emulator_speed.json

A tiled product of 512, a register-tiled product of 1024 and a softmax of 1024 rows by warp shuffles. The times to be held against are
those of a plain header that ran the same kernels and checked nothing: 1.0, 0.73 and 0.4 s on two Zen 3 cores. Best of several
runs, wall clock and processor time: on a busy machine only the latter says something.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import json
import os
import tempfile
import time
from pathlib import Path

import torch

from kernelwright.compiler.backends.cuda_c.emulator import build as emulator
from kernelwright.compiler.backends.cuda_c.emulator.library import MEMORY, Emulated
from kernelwright.target import Target

PLAIN = {"tiled matmul 512": 1.0, "register-tiled matmul 1024": 0.73, "shuffle softmax 1024x1000": 0.4}
"""Seconds of the emulator without checks."""
SOURCE = r"""
#include <cuda_runtime.h>
#include <cfloat>
#define T 16
__global__ void tiled(const float* a, const float* b, float* c, int n) {
  __shared__ float left[T][T], right[T][T];
  const int row = blockIdx.y * T + threadIdx.y, column = blockIdx.x * T + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; k += T) {
    left[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
    __syncthreads();
    for (int i = 0; i < T; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
// 64x64 of the result to a block of 8x8 threads, 8x8 to a thread
__global__ void registers(const float* a, const float* b, float* c, int n) {
  __shared__ float left[16][64], right[16][64];
  const int tx = threadIdx.x % 8, ty = threadIdx.x / 8, row0 = blockIdx.y * 64, column0 = blockIdx.x * 64;
  float sum[8][8] = {};
  for (int k = 0; k < n; k += 16) {
    for (int e = threadIdx.x; e < 1024; e += 64) {
      left[e % 16][e / 16] = a[(row0 + e / 16) * n + k + e % 16];
      right[e / 64][e % 64] = b[(k + e / 64) * n + column0 + e % 64];
    }
    __syncthreads();
    for (int i = 0; i < 16; ++i) {
      float x[8], y[8];
      for (int j = 0; j < 8; ++j) x[j] = left[i][ty * 8 + j], y[j] = right[i][tx * 8 + j];
#pragma unroll
      for (int p = 0; p < 8; ++p)
#pragma unroll
        for (int q = 0; q < 8; ++q) sum[p][q] += x[p] * y[q];
    }
    __syncthreads();
  }
  for (int p = 0; p < 8; ++p)
    for (int q = 0; q < 8; ++q) c[(row0 + ty * 8 + p) * n + column0 + tx * 8 + q] = sum[p][q];
}
__global__ void softmax(const float* x, float* y, int n) {
  __shared__ float part[8];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  x += size_t(blockIdx.x) * n, y += size_t(blockIdx.x) * n;
  float top = -FLT_MAX;
  for (int i = threadIdx.x; i < n; i += blockDim.x) top = fmaxf(top, x[i]);
  for (int d = 16; d; d /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, d));
  if (lane == 0) part[warp] = top;
  __syncthreads();
  top = part[lane % 8];
  for (int d = 4; d; d /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, d));
  __syncthreads();
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += expf(x[i] - top);
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  if (lane == 0) part[warp] = sum;
  __syncthreads();
  sum = part[lane % 8];
  for (int d = 4; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = expf(x[i] - top) / sum;
}
extern "C" void run_tiled(const float* a, const float* b, float* c, int n) { tiled<<<dim3(n / T, n / T), dim3(T, T)>>>(a, b, c, n); }
extern "C" void run_registers(const float* a, const float* b, float* c, int n) { registers<<<dim3(n / 64, n / 64), 64>>>(a, b, c, n); }
extern "C" void run_softmax(const float* x, float* y, int rows, int n) { softmax<<<rows, 256>>>(x, y, n); }
"""


def measured(library: Emulated, repeats: int) -> list[dict[str, object]]:
    """Each kernel, checked against torch, then its best run."""
    rows = []
    for name, function, size in (("tiled matmul 512", "run_tiled", 512), ("register-tiled matmul 1024", "run_registers", 1024)):
        a, b, c = torch.randn(size, size), torch.randn(size, size), torch.zeros(size, size)
        rows.append(timed(name, getattr(library, function), (a, b, c), (size,), repeats))
        torch.testing.assert_close(c, a @ b, rtol=1e-3, atol=1e-3)
    x, y = torch.randn(1024, 1000), torch.zeros(1024, 1000)
    rows.append(timed("shuffle softmax 1024x1000", library.run_softmax, (x, y), (1024, 1000), repeats))
    torch.testing.assert_close(y, torch.softmax(x, 1))
    return rows


def timed(
    name: str, function: object, tensors: tuple[torch.Tensor, ...], sizes: tuple[int, ...], repeats: int
) -> dict[str, object]:
    for tensor in tensors:
        MEMORY.add(tensor.data_ptr(), tensor.data_ptr(), tensor.numel() * tensor.element_size(), "a tensor")
    wall, processor = [], []
    for _ in range(repeats):
        began, worked = time.perf_counter(), time.process_time()
        function(*(ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors), *sizes)  # type: ignore[operator]
        wall.append(time.perf_counter() - began)
        processor.append(time.process_time() - worked)
    best, work = round(min(wall), 3), round(min(processor), 3)
    return {"kernel": name, "seconds": best, "processor_seconds": work, "unchecked_seconds": PLAIN[name]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        built = emulator.build(SOURCE, Path(work) / "kernel.so", folder=Path(work))
        rows = measured(Emulated(str(built)), options.repeats)
    result = {
        "date": datetime.date.today().isoformat(),
        "machine": f"{Target.host().title}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}",
        "kernels": rows,
    }
    for row in rows:
        print(
            f"{row['kernel']:28} {row['seconds']:6} s, {row['processor_seconds']} s of processors (unchecked: {row['unchecked_seconds']} s)"
        )
    if options.out:
        options.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
