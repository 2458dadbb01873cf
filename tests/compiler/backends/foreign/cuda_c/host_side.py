"""Rows of a transposed slice scaled by a parameter: what host code does with tensors before and after a launch."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

src = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAGuard.h>

template <typename T>
__global__ void scale_rows(const T* __restrict__ x, const float* __restrict__ s, T* __restrict__ y, int rows, int cols) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows * cols) y[i] = static_cast<T>(static_cast<float>(x[i]) * s[i / cols]);
}

torch::Tensor scaled(torch::Tensor x, torch::Tensor s, int64_t keep) {
  TORCH_CHECK_EQ(x.dim(), 2);
  TORCH_CHECK_GT(keep, 0);
  const c10::cuda::CUDAGuard guard(x.device());
  auto part = x.slice(/*dim=*/1, /*start=*/0, /*end=*/keep).t().contiguous();
  auto shape = part.sizes().vec();
  auto y = torch::empty(shape, part.options().dtype(x.scalar_type()));
  const int n = part.numel();
  AT_DISPATCH_SWITCH(x.scalar_type(), "scaled",
    AT_DISPATCH_CASE(at::kFloat, [&] { scale_rows<scalar_t><<<(n + 63) / 64, 64>>>(part.data_ptr<scalar_t>(), s.data_ptr<float>(), y.data_ptr<scalar_t>(), part.size(0), part.size(1)); })
    AT_DISPATCH_CASE(at::kHalf, [&] { scale_rows<scalar_t><<<(n + 63) / 64, 64>>>(part.data_ptr<scalar_t>(), s.data_ptr<float>(), y.data_ptr<scalar_t>(), part.size(0), part.size(1)); }));
  return y.view({keep, -1});
}
"""
ext = load_inline(name="host_side", cpp_sources="torch::Tensor scaled(torch::Tensor x, torch::Tensor s, int64_t keep);", cuda_sources=src, functions=["scaled"])


class Model(nn.Module):
    def __init__(self, keep):
        super().__init__()
        self.s = nn.Parameter(torch.randn(keep))

    def forward(self, x):
        return x[:, : self.s.shape[0]].t() * self.s[:, None]


class ModelNew(nn.Module):
    def __init__(self, keep):
        super().__init__()
        self.s = nn.Parameter(torch.randn(keep))

    def forward(self, x):
        return ext.scaled(x, self.s, self.s.shape[0])


def get_inputs():
    return [torch.randn(11, 9)]


def get_init_inputs():
    return [5]
