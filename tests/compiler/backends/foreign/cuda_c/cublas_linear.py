"""A linear layer: the product by cuBLAS on torch's own handle, bias and GELU by a kernel. Right, but the library's call is told."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cublas_v2.h>

#define CHECK_CUBLAS(x) do { cublasStatus_t s = (x); TORCH_CHECK(s == CUBLAS_STATUS_SUCCESS, "cublas failed: ", (int)s); } while (0)

__global__ void bias_gelu(float* y, const float* bias, int rows, int cols) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows * cols) return;
  float v = y[i] + bias[i % cols];
  y[i] = 0.5f * v * (1.f + erff(v * 0.70710678118f));
}

torch::Tensor linear_gelu(torch::Tensor x, torch::Tensor w, torch::Tensor b) {
  const int m = x.size(0), k = x.size(1), n = w.size(0);
  auto y = torch::empty({m, n}, x.options());
  cublasHandle_t handle = at::cuda::getCurrentCUDABlasHandle();
  const float one = 1.f, zero = 0.f;
  CHECK_CUBLAS(cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &one, w.data_ptr<float>(), k, x.data_ptr<float>(), k, &zero, y.data_ptr<float>(), n));
  bias_gelu<<<(m * n + 255) / 256, 256>>>(y.data_ptr<float>(), b.data_ptr<float>(), m, n);
  return y;
}
"""
ext = load_inline(name="cublas_linear", cpp_sources="torch::Tensor linear_gelu(torch::Tensor x, torch::Tensor w, torch::Tensor b);",
                  cuda_sources=source, functions=["linear_gelu"], extra_ldflags=["-lcublas"])


class Model(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.linear = nn.Linear(k, n)

    def forward(self, x):
        return torch.nn.functional.gelu(self.linear(x))


class ModelNew(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.linear = nn.Linear(k, n)

    def forward(self, x):
        return ext.linear_gelu(x.contiguous(), self.linear.weight, self.linear.bias)


def get_inputs():
    return [torch.randn(9, 20)]


def get_init_inputs():
    return [20, 13]
