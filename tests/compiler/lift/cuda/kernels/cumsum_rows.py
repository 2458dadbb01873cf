import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda.h>
#include <cuda_runtime.h>

__global__ void cumsum_kernel(const float* x, float* y, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float running = 0.0f;
        for (int j = 0; j < cols; j++) {
            running += x[row * cols + j];
            y[row * cols + j] = running;
        }
    }
}
torch::Tensor cumsum(torch::Tensor x) {
    auto y = torch::empty_like(x);
    cumsum_kernel<<<(x.size(0) + 31) / 32, 32>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.size(0), x.size(1));
    return y;
}
"""

cpp_source = "torch::Tensor cumsum(torch::Tensor x);"

extension = load_inline(
    name="cumsum_rows_ext", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["cumsum"], verbose=False
)


class Model(nn.Module):
    def forward(self, x):
        return torch.cumsum(x, dim=1)


class ModelNew(nn.Module):
    def forward(self, x):
        return extension.cumsum(x)


def get_inputs():
    return [torch.randn(40, 100)]


def get_init_inputs():
    return []
