"""A prefix sum by doubling distances in two shared buffers."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void scan(const float* x, float* y, int n) {
  extern __shared__ float tmp[];
  int t = threadIdx.x;
  int pout = 0, pin = 1;
  tmp[t] = t < n ? x[blockIdx.x * n + t] : 0.f;
  __syncthreads();
  for (int o = 1; o < blockDim.x; o *= 2) {
    pout = 1 - pout; pin = 1 - pout;
    if (t >= o) tmp[pout * blockDim.x + t] = tmp[pin * blockDim.x + t] + tmp[pin * blockDim.x + t - o];
    else tmp[pout * blockDim.x + t] = tmp[pin * blockDim.x + t];
    __syncthreads();
  }
  if (t < n) y[blockIdx.x * n + t] = tmp[pout * blockDim.x + t];
}
torch::Tensor run(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.size(1);
  int threads = 1; while (threads < n) threads *= 2;
  scan<<<x.size(0), threads, 2 * threads * sizeof(float)>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""
cpp_src = "torch::Tensor run(torch::Tensor x);"
mod = load_inline(name="prefix_sum", cpp_sources=cpp_src, cuda_sources=cuda_src, functions=['run'], verbose=False)


class Model(nn.Module):
    def forward(self, x):
        return torch.cumsum(x, 1)


class ModelNew(nn.Module):
    def forward(self, x):
        return mod.run(x)


def get_inputs():
    return [torch.randn(6, 100)]
