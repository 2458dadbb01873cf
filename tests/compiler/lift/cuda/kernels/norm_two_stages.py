"""A norm in two stages of block reductions by shuffles, grid-stride."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__inline__ __device__ float warpReduceSum(float v) {
  for (int o = warpSize / 2; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);
  return v;
}
__inline__ __device__ float blockReduceSum(float v) {
  static __shared__ float shared[32];
  int lane = threadIdx.x % warpSize, wid = threadIdx.x / warpSize;
  v = warpReduceSum(v);
  if (lane == 0) shared[wid] = v;
  __syncthreads();
  v = (threadIdx.x < blockDim.x / warpSize) ? shared[lane] : 0.f;
  if (wid == 0) v = warpReduceSum(v);
  return v;
}
__global__ void reduce_stage1(const float* in, float* out, int n) {
  float sum = 0.f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) sum += in[i] * in[i];
  sum = blockReduceSum(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
__global__ void reduce_stage2(const float* in, float* out, int n) {
  float sum = threadIdx.x < n ? in[threadIdx.x] : 0.f;
  sum = blockReduceSum(sum);
  if (threadIdx.x == 0) out[0] = sqrtf(sum);
}
torch::Tensor run(torch::Tensor x) {
  int n = x.numel();
  int threads = 128, blocks = std::min((n + threads - 1) / threads, 64);
  auto part = torch::empty({blocks}, x.options());
  auto out = torch::empty({}, x.options());
  reduce_stage1<<<blocks, threads>>>(x.data_ptr<float>(), part.data_ptr<float>(), n);
  reduce_stage2<<<1, 64>>>(part.data_ptr<float>(), out.data_ptr<float>(), blocks);
  return out;
}
"""
cpp_src = "torch::Tensor run(torch::Tensor x);"
mod = load_inline(name="block_reduce", cpp_sources=cpp_src, cuda_sources=cuda_src, functions=['run'], verbose=False)


class Model(nn.Module):
    def forward(self, x):
        return torch.linalg.norm(x)


class ModelNew(nn.Module):
    def forward(self, x):
        return mod.run(x)


def get_inputs():
    return [torch.randn(37, 91)]
