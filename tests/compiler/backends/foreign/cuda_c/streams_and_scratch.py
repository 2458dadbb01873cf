"""A variance over everything in two passes: scratch from cudaMalloc, the current stream, device properties, error checks."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_src = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime.h>
#include <algorithm>
#include <vector>

#define CUDA_CHECK(call)                                                                     \
  do {                                                                                       \
    cudaError_t status_ = (call);                                                            \
    TORCH_CHECK(status_ == cudaSuccess, "CUDA error: ", cudaGetErrorString(status_), " at ", __FILE__, ":", __LINE__); \
  } while (0)

constexpr int kThreads = 256;

__inline__ __device__ double warpReduce(double v) {
  for (int offset = warpSize / 2; offset > 0; offset >>= 1) v += __shfl_down_sync(0xFFFFFFFF, v, offset);
  return v;
}

__global__ void partial_moments(const float* x, double* partial, size_t n) {
  __shared__ double sums[kThreads / 32], squares[kThreads / 32];
  double s = 0.0, q = 0.0;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    const double v = x[i];
    s += v;
    q += v * v;
  }
  s = warpReduce(s);
  q = warpReduce(q);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  if (lane == 0) { sums[warp] = s; squares[warp] = q; }
  __syncthreads();
  if (warp == 0) {
    s = lane < kThreads / 32 ? sums[lane] : 0.0;
    q = lane < kThreads / 32 ? squares[lane] : 0.0;
    s = warpReduce(s);
    q = warpReduce(q);
    if (lane == 0) { partial[2 * blockIdx.x] = s; partial[2 * blockIdx.x + 1] = q; }
  }
}

__global__ void finish(const double* partial, int blocks, size_t n, float* out) {
  double s = 0, q = 0;
  for (int b = 0; b < blocks; ++b) { s += partial[2 * b]; q += partial[2 * b + 1]; }
  *out = static_cast<float>((q - s * s / n) / (n - 1));
}

at::Tensor variance(const at::Tensor& input) {
  TORCH_CHECK(input.is_cuda(), "input must be a CUDA tensor");
  TORCH_CHECK(input.is_contiguous(), "input must be contiguous");
  TORCH_CHECK(input.scalar_type() == at::kFloat, "only float32");
  const at::cuda::OptionalCUDAGuard device_guard(device_of(input));
  cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  cudaDeviceProp* prop = at::cuda::getCurrentDeviceProperties();
  int per_sm = 0;
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, partial_moments, kThreads, 0));
  const size_t n = input.numel();
  const int blocks = std::max(1, std::min<int>((n + kThreads - 1) / kThreads, std::min(8, prop->multiProcessorCount * std::max(per_sm, 1))));
  auto out = at::empty({}, input.options());
  double* scratch = nullptr;
  CUDA_CHECK(cudaMalloc(&scratch, 2 * blocks * sizeof(double)));
  CUDA_CHECK(cudaMemsetAsync(scratch, 0, 2 * blocks * sizeof(double), stream));
  partial_moments<<<blocks, kThreads, 0, stream>>>(input.data_ptr<float>(), scratch, n);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  finish<<<1, 1, 0, stream>>>(scratch, blocks, n, out.mutable_data_ptr<float>());
  C10_CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CUDA_CHECK(cudaFree(scratch));
  return out;
}
"""
cpp_src = "#include <torch/extension.h>\nat::Tensor variance(const at::Tensor& input);"
module = load_inline(
    name="variance_ext", cpp_sources=[cpp_src], cuda_sources=[cuda_src], functions=["variance"],
    extra_cuda_cflags=["-O3", "--use_fast_math", "-lineinfo", "-gencode=arch=compute_80,code=sm_80"], with_cuda=True, verbose=True,
)


class Model(nn.Module):
    def forward(self, x):
        return x.var()


class ModelNew(nn.Module):
    def forward(self, x):
        with torch.cuda.stream(torch.cuda.current_stream()):
            result = module.variance(x.contiguous().cuda(non_blocking=True))
        torch.cuda.synchronize()
        return result


def get_inputs():
    return [torch.randn(37, 129) + 3.0]


def get_init_inputs():
    return []
