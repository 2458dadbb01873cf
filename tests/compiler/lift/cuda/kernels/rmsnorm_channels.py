import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda.h>
#include <cuda_runtime.h>

__global__ void rms_norm(const float* x, float* y, int batch, int features, int inner, float eps) {
    int idx = blockIdx.x * blockDim.x + threadIdx.x;
    if (idx < batch * inner) {
        int b = idx / inner;
        int p = idx % inner;
        float ss = 0.0f;
        for (int c = 0; c < features; c++) {
            float v = x[b * features * inner + c * inner + p];
            ss += v * v;
        }
        float r = sqrtf(ss / features + eps);
        for (int c = 0; c < features; c++) {
            int k = (b * features + c) * inner + p;
            y[k] = x[k] / r;
        }
    }
}
torch::Tensor rms(torch::Tensor x, float eps) {
    auto y = torch::empty_like(x);
    int batch = x.size(0), features = x.size(1);
    int inner = x.numel() / (batch * features);
    rms_norm<<<(batch * inner + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), batch, features, inner, eps);
    return y;
}
"""

cpp_source = "torch::Tensor rms(torch::Tensor x, float eps);"

extension = load_inline(
    name="rmsnorm_channels_ext", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["rms"], verbose=False
)


class Model(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        return x / torch.sqrt(torch.mean(x**2, dim=1, keepdim=True) + self.eps)


class ModelNew(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        return extension.rms(x, self.eps)


def get_inputs():
    return [torch.randn(3, 20, 9, 11)]


def get_init_inputs():
    return [1e-5]
