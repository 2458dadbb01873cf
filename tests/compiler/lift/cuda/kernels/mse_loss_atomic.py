import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda.h>
#include <cuda_runtime.h>

__global__ void mse_kernel(const float* p, const float* t, float* total, int n) {
    __shared__ float cache[256];
    int tid = threadIdx.x;
    float s = 0.f;
    for (int i = blockIdx.x * blockDim.x + tid; i < n; i += gridDim.x * blockDim.x) {
        float d = p[i] - t[i];
        s += d * d;
    }
    cache[tid] = s;
    __syncthreads();
    for (int k = blockDim.x / 2; k > 32; k >>= 1) {
        if (tid < k) cache[tid] += cache[tid + k];
        __syncthreads();
    }
    if (tid < 32) {
        float v = cache[tid] + cache[tid + 32];
        for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);
        if (tid == 0) atomicAdd(total, v / n);
    }
}
torch::Tensor mse(torch::Tensor p, torch::Tensor t) {
    auto total = torch::zeros({}, p.options());
    int n = p.numel();
    mse_kernel<<<8, 256>>>(p.data_ptr<float>(), t.data_ptr<float>(), total.data_ptr<float>(), n);
    return total;
}
"""

cpp_source = "torch::Tensor mse(torch::Tensor p, torch::Tensor t);"

extension = load_inline(
    name="mse_loss_atomic_ext", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["mse"], verbose=False
)


class Model(nn.Module):
    def forward(self, a, b):
        return F.mse_loss(a, b)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return extension.mse(a, b)


def get_inputs():
    return [torch.randn(30, 100), torch.randn(30, 100)]


def get_init_inputs():
    return []
