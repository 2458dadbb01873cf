"""A filter bank: taps in constant memory, several streams with events between them, memset and async copies, struct arguments."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>
#include <ATen/cuda/CUDAEvent.h>

#define CUDA_CHECK(call)                                                                            \
  do {                                                                                              \
    cudaError_t status_ = (call);                                                                   \
    if (status_ != cudaSuccess) AT_ERROR("CUDA error: ", cudaGetErrorString(status_));              \
  } while (0)

constexpr int MAX_TAPS = 64;
__constant__ float c_taps[MAX_TAPS];

struct Shape {
  int rows, cols, taps;
  __host__ __device__ __forceinline__ int padded() const { return cols + taps - 1; }
};

__global__ void filter(const float* __restrict__ in, float* __restrict__ out, const Shape s) {
  extern __shared__ float line[];
  const int row = blockIdx.y, start = blockIdx.x * blockDim.x;
  const int half = s.taps / 2;
  for (int i = threadIdx.x; i < blockDim.x + s.taps - 1; i += blockDim.x) {
    const int at = start + i - half;
    line[i] = (at >= 0 && at < s.cols) ? in[row * s.cols + at] : 0.f;
  }
  __syncthreads();
  const int col = start + threadIdx.x;
  if (col >= s.cols) return;
  float sum = 0.f;
#pragma unroll 4
  for (int t = 0; t < s.taps; ++t) sum += line[threadIdx.x + t] * c_taps[t];
  out[row * s.cols + col] = sum;
}

__global__ void add_squares(const float* a, float* total, int n) {
  __shared__ float part[128];
  float s = 0.f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) s += a[i] * a[i];
  part[threadIdx.x] = s;
  __syncthreads();
#pragma unroll
  for (int k = 64; k > 0; k /= 2) {
    if (threadIdx.x < k) part[threadIdx.x] += part[threadIdx.x + k];
    __syncthreads();
  }
  if (!threadIdx.x) atomicAdd(total, part[0]);
}

std::tuple<torch::Tensor, torch::Tensor> run(torch::Tensor x, torch::Tensor taps) {
  Shape s{(int)x.size(0), (int)x.size(1), (int)taps.numel()};
  auto y = torch::empty_like(x);
  auto total = torch::empty({1}, x.options());
  cudaStream_t main = c10::cuda::getCurrentCUDAStream().stream();
  cudaStream_t side;
  cudaEvent_t done;
  CUDA_CHECK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
  CUDA_CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  CUDA_CHECK(cudaMemcpyToSymbolAsync(c_taps, taps.data_ptr<float>(), taps.numel() * sizeof(float), 0, cudaMemcpyDeviceToDevice, main));
  CUDA_CHECK(cudaMemsetAsync(total.data_ptr(), 0, sizeof(float), main));
  const int threads = 128;
  filter<<<dim3((s.cols + threads - 1) / threads, s.rows), threads, (threads + s.taps - 1) * sizeof(float), main>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), s);
  CUDA_CHECK(cudaEventRecord(done, main));
  CUDA_CHECK(cudaStreamWaitEvent(side, done, 0));
  add_squares<<<4, 128, 0, side>>>(y.data_ptr<float>(), total.data_ptr<float>(), y.numel());
  CUDA_CHECK(cudaStreamSynchronize(side));
  CUDA_CHECK(cudaEventDestroy(done));
  CUDA_CHECK(cudaStreamDestroy(side));
  return std::make_tuple(y, total);
}
"""
ext = load_inline("bank", "std::tuple<torch::Tensor, torch::Tensor> run(torch::Tensor x, torch::Tensor taps);", cuda_src, functions=["run"])


class Model(nn.Module):
    def __init__(self, taps):
        super().__init__()
        self.register_buffer("taps", torch.linspace(-1, 1, taps))

    def forward(self, x):
        y = torch.nn.functional.conv1d(x[:, None], self.taps[None, None], padding=self.taps.numel() // 2)[:, 0]
        return y, y.square().sum().view(1)


class ModelNew(Model):
    def forward(self, x):
        return ext.run(x.contiguous(), self.taps)


def get_inputs():
    return [torch.randn(3, 300)]


def get_init_inputs():
    return [7]
