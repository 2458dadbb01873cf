import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/extension.h>
#include <cuda.h>
#include <cuda_runtime.h>

__global__ void conv2d(const float* __restrict__ x, const float* __restrict__ w, const float* __restrict__ b, float* __restrict__ y,
                       int N, int C, int H, int W, int O, int R, int S, int OH, int OW, int stride, int pad) {
    int ow = blockIdx.x * blockDim.x + threadIdx.x;
    int oh = blockIdx.y * blockDim.y + threadIdx.y;
    int no = blockIdx.z;
    int n = no / O, o = no % O;
    if (ow >= OW || oh >= OH) return;
    float acc = b != nullptr ? b[o] : 0.0f;
    for (int c = 0; c < C; ++c)
        for (int r = 0; r < R; ++r) {
            int ih = oh * stride + r - pad;
            if (ih < 0 || ih >= H) continue;
            for (int s = 0; s < S; ++s) {
                int iw = ow * stride + s - pad;
                if (iw < 0 || iw >= W) continue;
                acc += x[((n * C + c) * H + ih) * W + iw] * w[((o * C + c) * R + r) * S + s];
            }
        }
    y[((n * O + o) * OH + oh) * OW + ow] = fmaxf(acc, 0.f);
}
torch::Tensor conv_relu(torch::Tensor x, torch::Tensor w, torch::Tensor b, int stride, int pad) {
    int OH = (x.size(2) + 2 * pad - w.size(2)) / stride + 1, OW = (x.size(3) + 2 * pad - w.size(3)) / stride + 1;
    auto y = torch::empty({x.size(0), w.size(0), OH, OW}, x.options());
    dim3 block(16, 16), grid((OW + 15) / 16, (OH + 15) / 16, x.size(0) * w.size(0));
    conv2d<<<grid, block>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), x.size(0), x.size(1),
        x.size(2), x.size(3), w.size(0), w.size(2), w.size(3), OH, OW, stride, pad);
    return y;
}
"""

cpp_source = "torch::Tensor conv_relu(torch::Tensor x, torch::Tensor w, torch::Tensor b, int stride, int pad);"

extension = load_inline(
    name="conv2d_naive_ext", cpp_sources=cpp_source, cuda_sources=cuda_source, functions=["conv_relu"], verbose=False
)


class Model(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.conv = nn.Conv2d(n_in, n_out, 3, stride=1, padding=1)

    def forward(self, x):
        return F.relu(self.conv(x))


class ModelNew(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.conv = nn.Conv2d(n_in, n_out, 3, stride=1, padding=1)

    def forward(self, x):
        return extension.conv_relu(x, self.conv.weight, self.conv.bias, 1, 1)


def get_inputs():
    return [torch.randn(2, 5, 20, 19)]


def get_init_inputs():
    return [5, 12]
