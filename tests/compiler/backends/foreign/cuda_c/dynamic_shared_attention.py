"""Attention with running maximum, dynamic shared memory beyond 48 KB, attribute set by the host."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/types.h>
#include <torch/extension.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <limits>

__global__ void flash_fwd(const float* Q, const float* K, const float* V, const int N, const int d, const int Tc, const int Tr,
                          const int Bc, const int Br, const float scale, float* l, float* m, float* O) {
  int tx = threadIdx.x, bx = blockIdx.x, by = blockIdx.y;
  int qkv = (bx * gridDim.y * N * d) + (by * N * d), lm = (bx * gridDim.y * N) + (by * N);
  extern __shared__ float sram[];
  int tile = Bc * d;
  float* Qi = sram;
  float* Kj = &sram[tile];
  float* Vj = &sram[tile * 2];
  float* S = &sram[tile * 3];
  for (int j = 0; j < Tc; j++) {
    for (int x = 0; x < d; x++) {
      Kj[(tx * d) + x] = K[qkv + (tile * j) + (tx * d) + x];
      Vj[(tx * d) + x] = V[qkv + (tile * j) + (tx * d) + x];
    }
    __syncthreads();
    for (int i = 0; i < Tr; i++) {
      for (int x = 0; x < d; x++) Qi[(tx * d) + x] = Q[qkv + (tile * i) + (tx * d) + x];
      float row_m_prev = m[lm + (Br * i) + tx], row_l_prev = l[lm + (Br * i) + tx];
      float row_m = -INFINITY;
      for (int y = 0; y < Bc; y++) {
        float sum = 0;
        for (int x = 0; x < d; x++) sum += Qi[(tx * d) + x] * Kj[(y * d) + x];
        sum *= scale;
        S[(Bc * tx) + y] = sum;
        if (sum > row_m) row_m = sum;
      }
      float row_l = 0;
      for (int y = 0; y < Bc; y++) {
        S[(Bc * tx) + y] = __expf(S[(Bc * tx) + y] - row_m);
        row_l += S[(Bc * tx) + y];
      }
      float m_new = max(row_m_prev, row_m);
      float l_new = (__expf(row_m_prev - m_new) * row_l_prev) + (__expf(row_m - m_new) * row_l);
      for (int x = 0; x < d; x++) {
        float pv = 0;
        for (int y = 0; y < Bc; y++) pv += S[(Bc * tx) + y] * Vj[(y * d) + x];
        O[qkv + (tile * i) + (tx * d) + x] = (1 / l_new) * ((row_l_prev * __expf(row_m_prev - m_new) * O[qkv + (tile * i) + (tx * d) + x]) + (__expf(row_m - m_new) * pv));
      }
      m[lm + (Br * i) + tx] = m_new;
      l[lm + (Br * i) + tx] = l_new;
    }
    __syncthreads();
  }
}

torch::Tensor flash(torch::Tensor Q, torch::Tensor K, torch::Tensor V) {
  const int Bc = 32, Br = 32;
  const int B = Q.size(0), nh = Q.size(1), N = Q.size(2), d = Q.size(3);
  const int Tc = ceil((float)N / Bc), Tr = ceil((float)N / Br);
  const float scale = 1.0 / sqrt(d);
  auto O = torch::zeros_like(Q);
  auto l = torch::zeros({B, nh, N});
  auto m = torch::full({B, nh, N}, -INFINITY);
  torch::Device device(torch::kCUDA);
  l = l.to(device); m = m.to(device);
  const int sram_size = (3 * Bc * d * sizeof(float)) + (Bc * Br * sizeof(float));
  int max_sram_size;
  cudaDeviceGetAttribute(&max_sram_size, cudaDevAttrMaxSharedMemoryPerBlock, 0);
  if (sram_size > max_sram_size) cudaFuncSetAttribute(flash_fwd, cudaFuncAttributeMaxDynamicSharedMemorySize, sram_size);
  dim3 grid_dim(B, nh);
  dim3 block_dim(Bc);
  flash_fwd<<<grid_dim, block_dim, sram_size>>>(Q.data_ptr<float>(), K.data_ptr<float>(), V.data_ptr<float>(), N, d, Tc, Tr, Bc, Br, scale,
                                                l.data_ptr<float>(), m.data_ptr<float>(), O.data_ptr<float>());
  return O;
}
"""


class Model(nn.Module):
    def forward(self, q, k, v):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.ext = load_inline(name="flash_minimal", cpp_sources="torch::Tensor flash(torch::Tensor Q, torch::Tensor K, torch::Tensor V);",
                               cuda_sources=SOURCE, functions=["flash"], extra_cuda_cflags=["-O2"])

    def forward(self, q, k, v):
        return self.ext.flash(q, k, v)


def get_inputs():
    return [torch.randn(1, 2, 64, 128) for _ in range(3)]


def get_init_inputs():
    return []
