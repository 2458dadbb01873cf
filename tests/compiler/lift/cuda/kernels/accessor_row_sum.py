import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>

template <typename scalar_t>
__global__ void weighted_rows(
    const torch::PackedTensorAccessor32<scalar_t, 3, torch::RestrictPtrTraits> x,
    const torch::PackedTensorAccessor32<scalar_t, 1, torch::RestrictPtrTraits> w,
    torch::PackedTensorAccessor32<scalar_t, 2, torch::RestrictPtrTraits> out) {
    const int b = blockIdx.y;
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= x.size(2)) return;
    scalar_t sum = 0;
    for (int r = 0; r < x.size(1); ++r) sum += x[b][r][c] * w[r];
    out[b][c] = sum;
}

torch::Tensor weighted(torch::Tensor x, torch::Tensor w) {
    auto out = torch::empty({x.size(0), x.size(2)}, x.options());
    const int threads = 32;
    const dim3 blocks((x.size(2) + threads - 1) / threads, x.size(0));
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "weighted", ([&] {
        weighted_rows<scalar_t><<<blocks, threads>>>(
            x.packed_accessor32<scalar_t, 3, torch::RestrictPtrTraits>(),
            w.packed_accessor32<scalar_t, 1, torch::RestrictPtrTraits>(),
            out.packed_accessor32<scalar_t, 2, torch::RestrictPtrTraits>());
    }));
    return out;
}
"""

cpp_source = "torch::Tensor weighted(torch::Tensor x, torch::Tensor w);"

extension = load_inline(
    name="accessor_row_sum_ext", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["weighted"], verbose=False
)


class Model(nn.Module):
    def forward(self, x, w):
        return (x * w[None, :, None]).sum(1)


class ModelNew(nn.Module):
    def forward(self, x, w):
        return extension.weighted(x, w)


def get_inputs():
    return [torch.randn(3, 7, 45), torch.randn(7)]


def get_init_inputs():
    return []
