"""A direct dilated convolution that skips what lies outside, and asks whether there is a bias."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void conv2d(const float* x, const float* w, const float* bias, float* y, int N, int C, int H, int W, int K, int R, int S, int P, int Q, int stride, int pad, int dil) {
  int q = blockIdx.x * blockDim.x + threadIdx.x;
  int p = blockIdx.y * blockDim.y + threadIdx.y;
  int k = blockIdx.z % K, n = blockIdx.z / K;
  if (q >= Q || p >= P) return;
  float acc = bias ? bias[k] : 0.f;
  for (int c = 0; c < C; ++c)
    for (int r = 0; r < R; ++r) {
      int h = p * stride - pad + r * dil;
      if (h < 0 || h >= H) continue;
      for (int s = 0; s < S; ++s) {
        int ww = q * stride - pad + s * dil;
        if (ww < 0 || ww >= W) continue;
        acc += x[((n * C + c) * H + h) * W + ww] * w[((k * C + c) * R + r) * S + s];
      }
    }
  y[((n * K + k) * P + p) * Q + q] = acc > 0.f ? acc : 0.2f * acc;
}
torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b, int64_t stride, int64_t pad, int64_t dil) {
  int N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3), K = w.size(0), R = w.size(2), S = w.size(3);
  int P = (H + 2 * pad - dil * (R - 1) - 1) / stride + 1, Q = (W + 2 * pad - dil * (S - 1) - 1) / stride + 1;
  auto y = torch::zeros({N, K, P, Q}, x.options());
  dim3 block(16, 8), grid((Q + 15) / 16, (P + 7) / 8, N * K);
  conv2d<<<grid, block>>>(x.data_ptr<float>(), w.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), N, C, H, W, K, R, S, P, Q, stride, pad, dil);
  return y;
}
"""
cpp_src = "torch::Tensor run(torch::Tensor x, torch::Tensor w, torch::Tensor b, int64_t stride, int64_t pad, int64_t dil);"
mod = load_inline(name="conv2d_direct", cpp_sources=cpp_src, cuda_sources=cuda_src, functions=['run'], verbose=False)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, padding=2, dilation=2)
    def forward(self, x):
        return F.leaky_relu(self.conv(x), 0.2)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, padding=2, dilation=2)
    def forward(self, x):
        return mod.run(x, self.conv.weight, self.conv.bias, 1, 2, 2)


def get_inputs():
    return [torch.randn(2, 3, 13, 19)]
