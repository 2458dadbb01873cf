"""Row means and variances by cub's block reduction."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cub/cub.cuh>
#include <cuda_runtime.h>

template <typename T, int kThreads>
__global__ __launch_bounds__(kThreads) void layer_norm_kernel(
    const T* __restrict__ in, const T* __restrict__ gamma, const T* __restrict__ beta, T* __restrict__ out, const int cols, const float eps) {
  using BlockReduce = cub::BlockReduce<float, kThreads>;
  __shared__ typename BlockReduce::TempStorage temp_storage;
  __shared__ float s_mean, s_rstd;
  const T* row = in + static_cast<size_t>(blockIdx.x) * cols;
  T* dst = out + static_cast<size_t>(blockIdx.x) * cols;
  float sum = 0.f;
  for (int c = threadIdx.x; c < cols; c += kThreads) sum += static_cast<float>(row[c]);
  float total = BlockReduce(temp_storage).Sum(sum);
  if (threadIdx.x == 0) s_mean = total / cols;
  __syncthreads();
  float sq = 0.f;
  for (int c = threadIdx.x; c < cols; c += kThreads) {
    const float d = static_cast<float>(row[c]) - s_mean;
    sq += d * d;
  }
  float var = BlockReduce(temp_storage).Reduce(sq, cub::Sum());
  if (threadIdx.x == 0) s_rstd = rsqrtf(var / cols + eps);
  __syncthreads();
  for (int c = threadIdx.x; c < cols; c += kThreads)
    dst[c] = static_cast<T>((static_cast<float>(row[c]) - s_mean) * s_rstd * static_cast<float>(gamma[c]) + static_cast<float>(beta[c]));
}

torch::Tensor layer_norm_forward(torch::Tensor x, torch::Tensor gamma, torch::Tensor beta, double eps) {
  const at::cuda::OptionalCUDAGuard device_guard(device_of(x));
  auto out = torch::empty_like(x);
  const int cols = x.size(-1);
  const int64_t rows = x.numel() / cols;
  constexpr int threads = 128;
  const auto stream = at::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::ScalarType::Half, at::ScalarType::BFloat16, x.scalar_type(), "layer_norm_forward", [&] {
    layer_norm_kernel<scalar_t, threads><<<rows, threads, 0, stream>>>(
        x.const_data_ptr<scalar_t>(), gamma.const_data_ptr<scalar_t>(), beta.const_data_ptr<scalar_t>(), out.mutable_data_ptr<scalar_t>(), cols, static_cast<float>(eps));
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}
"""
cpp_src = "torch::Tensor layer_norm_forward(torch::Tensor x, torch::Tensor gamma, torch::Tensor beta, double eps);"
ext = load_inline(name="ln_cub", cpp_sources=[cpp_src], cuda_sources=[cuda_src], functions=["layer_norm_forward"], verbose=False,
                  extra_cuda_cflags=["-O3", "--use_fast_math"])


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ln = nn.LayerNorm(width)

    def forward(self, x):
        return self.ln(x)


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ln = nn.LayerNorm(width)

    def forward(self, x):
        return ext.layer_norm_forward(x.contiguous(), self.ln.weight, self.ln.bias, self.ln.eps)


def get_inputs():
    return [torch.randn(4, 5, 200)]


def get_init_inputs():
    return [200]
