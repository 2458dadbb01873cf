"""Softmax of scaled rows with a tree reduction in shared memory, threads as a template parameter."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

#include <cfloat>
template <int THREADS>
__global__ void softmax_kernel(const float* x, float* y, int cols, float scale) {
  __shared__ float red[THREADS];
  const float* row = x + blockIdx.x * cols;
  float m = -FLT_MAX;
  for (int i = threadIdx.x; i < cols; i += THREADS) m = fmaxf(m, row[i] * scale);
  red[threadIdx.x] = m;
  __syncthreads();
  #pragma unroll
  for (int s = THREADS / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) red[threadIdx.x] = fmaxf(red[threadIdx.x], red[threadIdx.x + s]);
    __syncthreads();
  }
  m = red[0];
  __syncthreads();
  float sum = 0.f;
  for (int i = threadIdx.x; i < cols; i += THREADS) { float e = __expf(row[i] * scale - m); y[blockIdx.x * cols + i] = e; sum += e; }
  red[threadIdx.x] = sum;
  __syncthreads();
  for (int s = THREADS / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) red[threadIdx.x] += red[threadIdx.x + s];
    __syncthreads();
  }
  float inv = 1.f / red[0];
  for (int i = threadIdx.x; i < cols; i += THREADS) y[blockIdx.x * cols + i] *= inv;
}
torch::Tensor run(torch::Tensor x, double scale) {
  auto y = torch::empty_like(x);
  int cols = x.size(-1), rows = x.numel() / cols;
  softmax_kernel<128><<<rows, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), cols, (float)scale);
  return y;
}
"""
cpp_src = "torch::Tensor run(torch::Tensor x, double scale);"
mod = load_inline(name="softmax_masked", cpp_sources=cpp_src, cuda_sources=cuda_src, functions=['run'], verbose=False)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 0.3
    def forward(self, x):
        return torch.softmax(x * self.scale, -1)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = 0.3
    def forward(self, x):
        return mod.run(x, self.scale)


def get_inputs():
    return [torch.randn(5, 7, 203)]
