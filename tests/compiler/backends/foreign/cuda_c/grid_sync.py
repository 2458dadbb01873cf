"""A cooperative launch: every block adds its part, the whole grid meets, then all divide by the total."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__global__ void normalise(const float* x, float* y, float* total, int n) {
  auto grid = cg::this_grid();
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  float part = 0.f;
  for (int i = grid.thread_rank(); i < n; i += grid.size()) part += x[i] * x[i];
  part = cg::reduce(warp, part, cg::plus<float>());
  if (warp.thread_rank() == 0) atomicAdd(total, part);
  grid.sync();
  const float scale = rsqrtf(*((volatile float*)total));
  for (int i = grid.thread_rank(); i < n; i += grid.size()) y[i] = x[i] * scale;
}

torch::Tensor l2(torch::Tensor x) {
  auto y = torch::empty_like(x);
  auto total = torch::zeros({1}, x.options());
  const float* xp = x.data_ptr<float>();
  float *yp = y.data_ptr<float>(), *tp = total.data_ptr<float>();
  int n = x.numel();
  void* args[] = {(void*)&xp, (void*)&yp, (void*)&tp, (void*)&n};
  cudaError_t err = cudaLaunchCooperativeKernel((void*)normalise, dim3(4), dim3(64), args, 0, at::cuda::getCurrentCUDAStream());
  TORCH_CHECK(err == cudaSuccess, cudaGetErrorString(err));
  return y;
}
"""
ext = load_inline(name="grid_sync", cpp_sources="torch::Tensor l2(torch::Tensor x);", cuda_sources=source, functions=["l2"])


class Model(nn.Module):
    def forward(self, x):
        return x / x.norm()


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.l2(x)


def get_inputs():
    return [torch.randn(9, 100)]


def get_init_inputs():
    return []
