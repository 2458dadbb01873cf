"""Global average pooling, then a linear layer with tanh: two kernels with memory between them."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void gap(const float* x, float* y, int hw) {
  int nc = blockIdx.x;
  float s = 0.f;
  for (int i = threadIdx.x; i < hw; i += blockDim.x) s += x[nc * hw + i];
  __shared__ float sm[64];
  sm[threadIdx.x] = s;
  __syncthreads();
  for (unsigned int k = blockDim.x / 2; k > 0; k /= 2) {
    if (threadIdx.x < k) sm[threadIdx.x] += sm[threadIdx.x + k];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[nc] = sm[0] / (float)hw;
}
__global__ void fc(const float* x, const float* w, const float* b, float* y, int n, int in, int out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n * out) return;
  int r = i / out, c = i % out;
  float acc = b[c];
  for (int k = 0; k < in; k++) acc += x[r * in + k] * w[c * in + k];
  y[i] = tanhf(acc);
}
torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
  int n = x.size(0), c = x.size(1), hw = x.size(2) * x.size(3);
  auto t = torch::empty({n, c}, x.options());
  gap<<<n * c, 64>>>(x.data_ptr<float>(), t.data_ptr<float>(), hw);
  int o = w.size(0);
  auto y = torch::empty({n, o}, x.options());
  fc<<<(n * o + 63) / 64, 64>>>(t.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), n, c, o);
  return y;
}
"""
cpp_src = "torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b);"
mod = load_inline(name="avgpool_global", cpp_sources=cpp_src, cuda_sources=cuda_src, functions=['run'], verbose=False)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(10, 7)
    def forward(self, x):
        return torch.tanh(self.fc(x.mean((2, 3))))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(10, 7)
    def forward(self, x):
        return mod.run(x, self.fc.weight, self.fc.bias)


def get_inputs():
    return [torch.randn(5, 10, 9, 7)]
