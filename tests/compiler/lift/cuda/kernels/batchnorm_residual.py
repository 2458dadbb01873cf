"""Batch norm at inference with a residual and ReLU6, channels by division."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void bn_relu_add(const float* x, const float* res, const float* mean, const float* var, const float* g, const float* b, float* y, int C, int HW, int total, float eps) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += blockDim.x * gridDim.x) {
    int c = (i / HW) % C;
    float inv = rsqrtf(var[c] + eps);
    float v = (x[i] - mean[c]) * inv * g[c] + b[c] + res[i];
    y[i] = fminf(fmaxf(v, 0.f), 6.f);
  }
}
torch::Tensor run(torch::Tensor x, torch::Tensor res, torch::Tensor mean, torch::Tensor var, torch::Tensor g, torch::Tensor b, double eps) {
  auto y = torch::empty_like(x);
  int total = x.numel();
  bn_relu_add<<<3, 128>>>(x.data_ptr<float>(), res.data_ptr<float>(), mean.data_ptr<float>(), var.data_ptr<float>(), g.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), x.size(1), x.size(2) * x.size(3), total, eps);
  return y;
}
"""
cpp_src = "torch::Tensor run(torch::Tensor x, torch::Tensor res, torch::Tensor mean, torch::Tensor var, torch::Tensor g, torch::Tensor b, double eps);"
mod = load_inline(name="batchnorm_infer", cpp_sources=cpp_src, cuda_sources=cuda_src, functions=['run'], verbose=False)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm2d(6)
    def forward(self, x, r):
        return F.relu6(self.bn(x) + r)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm2d(6)
    def forward(self, x, r):
        return mod.run(x, r, self.bn.running_mean, self.bn.running_var, self.bn.weight, self.bn.bias, self.bn.eps)


def get_inputs():
    return [torch.randn(3, 6, 7, 5), torch.randn(3, 6, 7, 5)]
