"""Layer norm, one warp for a row, dispatched by type."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) v += __shfl_xor_sync(0xffffffffu, v, mask, 32);
  return v;
}
template <typename scalar_t>
__global__ void layernorm(const scalar_t* __restrict__ x, const scalar_t* __restrict__ g, const scalar_t* __restrict__ b, scalar_t* __restrict__ y, int rows, int n, float eps) {
  int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  int lane = threadIdx.x & 31;
  if (warp >= rows) return;
  const scalar_t* r = x + (int64_t)warp * n;
  float s = 0.f;
  for (int i = lane; i < n; i += 32) s += static_cast<float>(r[i]);
  float mean = warp_sum(s) / n;
  float v = 0.f;
  for (int i = lane; i < n; i += 32) { float d = static_cast<float>(r[i]) - mean; v += d * d; }
  float rstd = rsqrtf(warp_sum(v) / n + eps);
  for (int i = lane; i < n; i += 32) y[(int64_t)warp * n + i] = static_cast<scalar_t>((static_cast<float>(r[i]) - mean) * rstd * g[i] + b[i]);
}
torch::Tensor run(torch::Tensor x, torch::Tensor g, torch::Tensor b, double eps) {
  auto y = torch::empty_like(x);
  int n = x.size(-1), rows = x.numel() / n;
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "layernorm", ([&] {
    layernorm<scalar_t><<<(rows * 32 + 127) / 128, 128>>>(x.data_ptr<scalar_t>(), g.data_ptr<scalar_t>(), b.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), rows, n, (float)eps);
  }));
  return y;
}
"""
cpp_src = "torch::Tensor run(torch::Tensor x, torch::Tensor g, torch::Tensor b, double eps);"
mod = load_inline(name="layernorm_warp", cpp_sources=cpp_src, cuda_sources=cuda_src, functions=['run'], verbose=False)


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.ln = nn.LayerNorm(n)
    def forward(self, x):
        return self.ln(x)


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.ln = nn.LayerNorm(n)
    def forward(self, x):
        return mod.run(x.contiguous(), self.ln.weight, self.ln.bias, self.ln.eps)


def get_inputs():
    return [torch.randn(4, 9, 150)]
def get_init_inputs():
    return [150]
