import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda.h>
#include <cuda_runtime.h>

template <int BLOCK>
__device__ float block_sum(float v, float* buffer) {
    int tid = threadIdx.x;
    buffer[tid] = v;
    __syncthreads();
    #pragma unroll
    for (int s = BLOCK / 2; s > 0; s /= 2) {
        if (tid < s) buffer[tid] += buffer[tid + s];
        __syncthreads();
    }
    float r = buffer[0];
    __syncthreads();
    return r;
}
template <int BLOCK>
__global__ void layernorm(const float* x, const float* gamma, const float* beta, float* y, int n, float eps) {
    __shared__ float buffer[BLOCK];
    const float* row = x + (long long)blockIdx.x * n;
    float s = 0.f;
    for (int i = threadIdx.x; i < n; i += BLOCK) s += row[i];
    const float mean = block_sum<BLOCK>(s, buffer) / n;
    float q = 0.f;
    for (int i = threadIdx.x; i < n; i += BLOCK) {
        float d = row[i] - mean;
        q += d * d;
    }
    const float inv = rsqrtf(block_sum<BLOCK>(q, buffer) / n + eps);
    for (int i = threadIdx.x; i < n; i += BLOCK)
        y[blockIdx.x * n + i] = (row[i] - mean) * inv * gamma[i] + beta[i];
}
torch::Tensor layer_norm(torch::Tensor x, torch::Tensor g, torch::Tensor b, double eps) {
    auto y = torch::empty_like(x);
    int n = g.numel();
    layernorm<128><<<x.numel() / n, 128>>>(x.data_ptr<float>(), g.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), n, (float)eps);
    return y;
}
"""

cpp_source = "torch::Tensor layer_norm(torch::Tensor x, torch::Tensor g, torch::Tensor b, double eps);"

extension = load_inline(
    name="layernorm_block_ext", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["layer_norm"], verbose=False
)


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.ln = nn.LayerNorm(n)

    def forward(self, x):
        return self.ln(x)


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.ln = nn.LayerNorm(n)

    def forward(self, x):
        return extension.layer_norm(x.contiguous(), self.ln.weight, self.ln.bias, self.ln.eps)


def get_inputs():
    return [torch.randn(6, 10, 200)]


def get_init_inputs():
    return [200]
