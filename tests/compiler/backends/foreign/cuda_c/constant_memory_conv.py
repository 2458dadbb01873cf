"""A one-dimensional convolution with taps in constant memory and a dynamic shared tile above 48 KB."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/types.h>
#include <cuda_runtime.h>
#include <stdexcept>
#include <string>

#define MAX_TAPS 64
__constant__ float taps[MAX_TAPS];
__device__ int launches_seen = 0;

inline void check(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(std::string("cuda: ") + cudaGetErrorString(code));
}

template <unsigned int BLOCK, unsigned int PER_THREAD>
__global__ void conv1d(const float* __restrict__ in, float* __restrict__ out, unsigned n, unsigned width) {
  extern __shared__ __align__(16) unsigned char raw[];
  float* tile = reinterpret_cast<float*>(raw);
  const unsigned first = blockIdx.x * BLOCK * PER_THREAD;
  const unsigned length = BLOCK * PER_THREAD + width - 1;
  const float* line = in + blockIdx.y * (size_t)n;
  for (unsigned i = threadIdx.x; i < length; i += BLOCK) tile[i] = first + i < n ? line[first + i] : 0.0f;
  __syncthreads();
  float sums[PER_THREAD] = {};
#pragma unroll 1
  for (unsigned t = 0; t < width; ++t) {
    const float tap = taps[t];
#pragma unroll
    for (unsigned k = 0; k < PER_THREAD; ++k) sums[k] += tap * tile[threadIdx.x + k * BLOCK + t];
  }
#pragma unroll
  for (unsigned k = 0; k < PER_THREAD; ++k) {
    const unsigned i = first + threadIdx.x + k * BLOCK;
    if (i < n - width + 1) out[blockIdx.y * (size_t)(n - width + 1) + i] = sums[k];
  }
  if (threadIdx.x == 0 && blockIdx.x == 0 && blockIdx.y == 0) atomicAdd(&launches_seen, 1);
}

torch::Tensor conv(torch::Tensor x, torch::Tensor weight) {
  x = x.contiguous();
  const unsigned n = x.size(1), width = weight.numel();
  check(cudaMemcpyToSymbol(taps, weight.contiguous().data_ptr<float>(), width * sizeof(float), 0, cudaMemcpyDeviceToDevice));
  auto out = torch::empty({x.size(0), (int64_t)(n - width + 1)}, x.options());
  constexpr unsigned kBlock = 128, kPer = 4;
  auto kernel = conv1d<kBlock, kPer>;
  const size_t bytes = 64 * 1024;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
  dim3 grid((n + kBlock * kPer - 1) / (kBlock * kPer), x.size(0));
  void* arguments[] = {nullptr};
  (void)arguments;
  kernel<<<grid, kBlock, bytes>>>(x.data_ptr<float>(), out.data_ptr<float>(), n, width);
  check(cudaPeekAtLastError());
  check(cudaDeviceSynchronize());
  return out;
}
"""
ext = load_inline("conv_constant", ["torch::Tensor conv(torch::Tensor x, torch::Tensor weight);"], cuda_sources=[source], functions=["conv"])


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width))

    def forward(self, x):
        return torch.nn.functional.conv1d(x[:, None], self.weight[None, None])[:, 0]


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width))

    def forward(self, x):
        return ext.conv(x, self.weight)


def get_inputs():
    return [torch.randn(3, 1300)]


def get_init_inputs():
    return [11]
