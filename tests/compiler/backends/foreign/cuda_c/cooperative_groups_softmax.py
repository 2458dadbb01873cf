"""Softmax, a tile of 32 threads a row, with cooperative groups' reductions and a launch by cudaLaunchKernel."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

src = r"""
#include <torch/extension.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_runtime.h>
#include <float.h>

namespace cg = cooperative_groups;

__global__ void softmax_rows(const float* x, float* y, int rows, int cols) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  const int row = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
  if (row >= rows) return;
  const float* in = x + row * cols;
  float m = -FLT_MAX;
  for (int c = warp.thread_rank(); c < cols; c += warp.size()) m = fmaxf(m, __ldg(in + c));
  m = cg::reduce(warp, m, cg::greater<float>{});
  float s = 0.0f;
  for (int c = warp.thread_rank(); c < cols; c += warp.size()) s += __expf(in[c] - m);
  s = cg::reduce(warp, s, cg::plus<float>());
  for (int offset = 16; offset > 0; offset >>= 1) m = fmaxf(m, warp.shfl_xor(m, offset));
  const float inv = __fdividef(1.0f, s);
  for (int c = warp.thread_rank(); c < cols; c += 32) __stcs(&y[row * cols + c], __expf(in[c] - m) * inv);
}

torch::Tensor softmax_cuda(torch::Tensor x) {
  auto y = torch::zeros_like(x);
  int rows = x.size(0), cols = x.size(1);
  const float* xp = x.data_ptr<float>();
  float* yp = y.data_ptr<float>();
  dim3 grid((rows + 3) / 4), block(128);
  void* args[] = {(void*)&xp, (void*)&yp, (void*)&rows, (void*)&cols};
  cudaLaunchKernel((void*)softmax_rows, grid, block, args, 0, 0);
  cudaDeviceSynchronize();
  return y;
}
"""
fused = load_inline(name="cg_softmax", cpp_sources="torch::Tensor softmax_cuda(torch::Tensor x);", cuda_sources=src, functions=["softmax_cuda"])


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)


class ModelNew(nn.Module):
    def forward(self, x):
        out = fused.softmax_cuda(x)
        torch.cuda.synchronize()
        return out


def get_inputs():
    return [torch.randn(10, 77)]


def get_init_inputs():
    return []
