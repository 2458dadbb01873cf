"""SiLU times another tensor by float4, with a scalar tail."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__device__ inline float4 f(float4 a, float4 b) {
  float4 r;
  r.x = a.x / (1.f + expf(-a.x)) * b.x; r.y = a.y / (1.f + expf(-a.y)) * b.y;
  r.z = a.z / (1.f + expf(-a.z)) * b.z; r.w = a.w / (1.f + expf(-a.w)) * b.w;
  return r;
}
__global__ void silu_mul(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int n) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (i + 3 < n) {
    float4 va = *reinterpret_cast<const float4*>(a + i);
    float4 vb = __ldg(reinterpret_cast<const float4*>(b + i));
    *reinterpret_cast<float4*>(c + i) = f(va, vb);
  } else {
    for (; i < n; ++i) c[i] = a[i] / (1.f + expf(-a[i])) * b[i];
  }
}
torch::Tensor run(torch::Tensor a, torch::Tensor b) {
  auto c = torch::empty_like(a);
  int n = a.numel();
  const int threads = 256;
  silu_mul<<<(n / 4 + threads) / threads, threads>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), n);
  return c;
}
"""
cpp_src = "torch::Tensor run(torch::Tensor a, torch::Tensor b);"
mod = load_inline(name="elementwise_vec_tail", cpp_sources=cpp_src, cuda_sources=cuda_src, functions=['run'], verbose=False)


class Model(nn.Module):
    def forward(self, a, b):
        return F.silu(a) * b


class ModelNew(nn.Module):
    def forward(self, a, b):
        return mod.run(a, b)


def get_inputs():
    return [torch.randn(31, 33), torch.randn(31, 33)]
