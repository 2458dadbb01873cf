"""Linear layer: tiles as template constants, dynamic shared memory beyond 48 KB with its attribute set, two buffers."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = """
#include <torch/extension.h>
#include <cuda.h>
#include <cuda_runtime.h>

#define CHECK_CUDA(x) TORCH_CHECK(x.device().is_cuda(), #x " must be a CUDA tensor")
#define CHECK_CONTIGUOUS(x) TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")
#define CHECK_INPUT(x) CHECK_CUDA(x); CHECK_CONTIGUOUS(x)

template <int BM, int BN, int BK, int TM, int TN>
__global__ void gemm_bias_relu(const float* __restrict__ A, const float* __restrict__ W, const float* __restrict__ bias,
                               float* __restrict__ C, int M, int N, int K) {
  constexpr int THREADS = (BM / TM) * (BN / TN);
  extern __shared__ __align__(16) unsigned char smem_raw[];
  float* As = reinterpret_cast<float*>(smem_raw);       // [2][BK][BM]
  float* Bs = As + 2 * BK * BM;                         // [2][BK][BN]
  const int tid = threadIdx.x;
  const int tx = tid % (BN / TN), ty = tid / (BN / TN);
  const int m0 = blockIdx.y * BM, n0 = blockIdx.x * BN;
  float acc[TM][TN] = {};

  auto load_tile = [&](int buf, int k0) {
    for (int i = tid; i < BM * BK; i += THREADS) {
      const int m = i / BK, k = i % BK;
      As[(buf * BK + k) * BM + m] = (m0 + m < M && k0 + k < K) ? A[(m0 + m) * K + k0 + k] : 0.f;
    }
    for (int i = tid; i < BN * BK; i += THREADS) {
      const int n = i / BK, k = i % BK;
      Bs[(buf * BK + k) * BN + n] = (n0 + n < N && k0 + k < K) ? W[(n0 + n) * K + k0 + k] : 0.f;
    }
  };

  load_tile(0, 0);
  __syncthreads();
  int buf = 0;
  for (int k0 = 0; k0 < K; k0 += BK) {
    if (k0 + BK < K) load_tile(buf ^ 1, k0 + BK);
#pragma unroll
    for (int k = 0; k < BK; ++k) {
      float a[TM], b[TN];
#pragma unroll
      for (int i = 0; i < TM; ++i) a[i] = As[(buf * BK + k) * BM + ty * TM + i];
#pragma unroll
      for (int j = 0; j < TN; ++j) b[j] = Bs[(buf * BK + k) * BN + tx * TN + j];
#pragma unroll
      for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j) acc[i][j] += a[i] * b[j];
    }
    __syncthreads();
    buf ^= 1;
  }
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    const int m = m0 + ty * TM + i;
    if (m >= M) continue;
#pragma unroll
    for (int j = 0; j < TN; ++j) {
      const int n = n0 + tx * TN + j;
      if (n < N) C[m * N + n] = fmaxf(acc[i][j] + bias[n], 0.f);
    }
  }
}

torch::Tensor linear_relu_cuda(torch::Tensor x, torch::Tensor weight, c10::optional<torch::Tensor> bias) {
  CHECK_INPUT(x);
  CHECK_INPUT(weight);
  const auto M = x.size(0), K = x.size(1), N = weight.size(0);
  auto opts = torch::TensorOptions().dtype(x.dtype()).device(x.device()).requires_grad(false);
  torch::Tensor out = torch::empty({M, N}, opts);
  torch::Tensor b = bias.has_value() ? bias.value().contiguous() : torch::zeros({N}, opts);
  constexpr int BM = 64, BN = 64, BK = 64, TM = 4, TN = 4;
  constexpr size_t smem = 2 * BK * (BM + BN) * sizeof(float);  // 64 KB
  auto kernel = gemm_bias_relu<BM, BN, BK, TM, TN>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(smem));
  cudaFuncSetAttribute((const void*)kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
  const dim3 grid((N + BN - 1) / BN, (M + BM - 1) / BM);
  kernel<<<grid, (BM / TM) * (BN / TN), smem>>>(x.data_ptr<float>(), weight.data_ptr<float>(), b.data_ptr<float>(),
                                               out.data_ptr<float>(), (int)M, (int)N, (int)K);
  return out;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("linear_relu", &linear_relu_cuda, "linear + relu (CUDA)", py::arg("x"), py::arg("weight"), py::arg("bias") = py::none());
}
"""

_ext = None


def ext():
    global _ext
    if _ext is None:
        _ext = load_inline(name="linear_relu_big", cpp_sources="", cuda_sources=cuda_source, with_cuda=True, extra_cuda_cflags=["-O3", "-std=c++17"])
    return _ext


class Model(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.fc = nn.Linear(i, o)

    def forward(self, x):
        return torch.relu(self.fc(x))


class ModelNew(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.fc = nn.Linear(i, o)

    def forward(self, x):
        return ext().linear_relu(x.contiguous(), self.fc.weight.contiguous(), bias=self.fc.bias)


def get_inputs():
    return [torch.randn(70, 100)]


def get_init_inputs():
    return [100, 50]
