"""Softmax over rows in CUDA-C: one block a row, warp shuffles, plain nvcc, C ABI, ctypes."""

import ctypes
import hashlib
import os
import subprocess
import tempfile

import torch
from torch import nn

SOURCE = r"""
#include <cuda_runtime.h>
#include <math.h>

__device__ float block_reduce(float v, bool maximum, float* part) {
  for (int o = 16; o > 0; o >>= 1) {
    const float other = __shfl_xor_sync(0xffffffffu, v, o);
    v = maximum ? fmaxf(v, other) : v + other;
  }
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
  __syncthreads();
  v = part[0];
  for (int k = 1; k < blockDim.x / 32; ++k) v = maximum ? fmaxf(v, part[k]) : v + part[k];
  __syncthreads();
  return v;
}

__global__ void softmax_rows(const float* __restrict__ x, float* __restrict__ y, int n) {
  __shared__ float part[32];
  const float* row = x + (size_t)blockIdx.x * n;
  float top = -INFINITY;
  for (int i = threadIdx.x; i < n; i += blockDim.x) top = fmaxf(top, row[i]);
  top = block_reduce(top, true, part);
  float sum = 0.0f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += expf(row[i] - top);
  sum = block_reduce(sum, false, part);
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[(size_t)blockIdx.x * n + i] = expf(row[i] - top) / sum;
}

extern "C" void run(const float* x, float* y, int m, int n) { softmax_rows<<<m, 256>>>(x, y, n); }
"""


def build(source):
    """nvcc once for each source; the library is kept in a cache folder."""
    key = hashlib.sha256(source.encode()).hexdigest()[:24]
    folder = os.path.join(os.environ.get("XDG_CACHE_HOME") or tempfile.gettempdir(), "kernelwright-cuda")
    library = os.path.join(folder, key + ".so")
    if not os.path.exists(library):
        os.makedirs(folder, exist_ok=True)
        text = os.path.join(folder, key + ".cu")
        with open(text, "w") as file:
            file.write(source)
        command = ["nvcc", "-O3", "-shared", "-Xcompiler", "-fPIC", "-arch=native", "-o", library, text]
        subprocess.run(command, check=True, capture_output=True, text=True)
    return ctypes.CDLL(library)


LIBRARY = build(SOURCE)
LIBRARY.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int]


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        LIBRARY.run(x.data_ptr(), y.data_ptr(), x.numel() // x.shape[-1], x.shape[-1])
        return y
