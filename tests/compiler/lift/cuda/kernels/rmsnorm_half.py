"""RMS norm of __half rows by one warp."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

#include <cuda_fp16.h>
__global__ void rms(const __half* x, const __half* w, __half* y, int n, float eps) {
  __shared__ float s_inv;
  const __half* r = x + blockIdx.x * n;
  float v = 0.f;
  for (int i = threadIdx.x; i < n; i += blockDim.x) { float f = __half2float(r[i]); v += f * f; }
  for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(0xffffffff, v, o);
  if (threadIdx.x == 0) s_inv = rsqrtf(v / n + eps);
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[blockIdx.x * n + i] = __float2half(__half2float(r[i]) * s_inv * __half2float(w[i]));
}
torch::Tensor run(torch::Tensor x, torch::Tensor w) {
  auto y = torch::empty_like(x);
  int n = x.size(-1);
  rms<<<x.numel() / n, 32>>>((const __half*)x.data_ptr<at::Half>(), reinterpret_cast<const __half*>(w.data_ptr<at::Half>()), (__half*)y.data_ptr<at::Half>(), n, 1e-5f);
  return y;
}
"""
cpp_src = "torch::Tensor run(torch::Tensor x, torch::Tensor w);"
mod = load_inline(name="rmsnorm_half2", cpp_sources=cpp_src, cuda_sources=cuda_src, functions=['run'], verbose=False)


class Model(nn.Module):
    def forward(self, x, w):
        f = x.float()
        return (f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + 1e-5) * w.float()).half()


class ModelNew(nn.Module):
    def forward(self, x, w):
        return mod.run(x, w)


def get_inputs():
    return [torch.randn(7, 90).half(), torch.rand(90).half()]
