import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>
#include <cfloat>

__inline__ __device__ float warp_max(float v) {
  for (int offset = 16; offset > 0; offset >>= 1) v = fmaxf(v, __shfl_down_sync(0xffffffff, v, offset));
  return v;
}

template <typename T>
__inline__ __device__ T warp_sum(T v) {
  #pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

template <int THREADS>
__global__ void softmax_kernel(const float* __restrict__ x, float* __restrict__ y, int cols) {
  __shared__ float partial[32];
  __shared__ float row_max, row_sum;
  const int row = blockIdx.x;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  x += (size_t)row * cols;
  y += (size_t)row * cols;
  float m = -FLT_MAX;
  for (int i = threadIdx.x; i < cols; i += THREADS) m = fmaxf(m, x[i]);
  m = warp_max(m);
  if (lane == 0) partial[warp] = m;
  __syncthreads();
  if (warp == 0) {
    float v = lane < THREADS / 32 ? partial[lane] : -FLT_MAX;
    v = warp_max(v);
    if (lane == 0) row_max = v;
  }
  __syncthreads();
  float s = 0.f;
  for (int i = threadIdx.x; i < cols; i += THREADS) s += expf(x[i] - row_max);
  s = warp_sum(s);
  if (lane == 0) partial[warp] = s;
  __syncthreads();
  if (warp == 0) {
    float v = lane < THREADS / 32 ? partial[lane] : 0.f;
    v = warp_sum(v);
    if (lane == 0) row_sum = v;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < cols; i += THREADS) y[i] = expf(x[i] - row_max) / row_sum;
}

torch::Tensor softmax(torch::Tensor x) {
  auto y = torch::empty_like(x);
  softmax_kernel<128><<<x.size(0), 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(1));
  return y;
}
"""

module = load_inline("softmax_ext", "torch::Tensor softmax(torch::Tensor x);", SOURCE, functions=["softmax"])


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)


class ModelNew(nn.Module):
    def forward(self, x):
        return module.softmax(x.contiguous())


def get_inputs():
    return [torch.randn(37, 300)]


def get_init_inputs():
    return []
