"""No torch headers at all: nvcc by subprocess, a C interface by ctypes, pointers by data_ptr, the stream as a number."""

import ctypes
import hashlib
import os
import subprocess
import tempfile

import torch
import torch.nn as nn

CODE = r"""
#include <cuda_runtime.h>
#include <cstdio>
#define TILE 16
template <bool RELU>
__global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
  __shared__ float a[TILE][TILE + 1], b[TILE][TILE + 1];
  const int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
  float acc = 0.f;
  for (int k0 = 0; k0 < K; k0 += TILE) {
    a[threadIdx.y][threadIdx.x] = row < M && k0 + threadIdx.x < K ? A[row * K + k0 + threadIdx.x] : 0.f;
    b[threadIdx.y][threadIdx.x] = col < N && k0 + threadIdx.y < K ? B[(k0 + threadIdx.y) * N + col] : 0.f;
    __syncthreads();
    for (int k = 0; k < TILE; k++) acc = __fmaf_rn(a[threadIdx.y][k], b[k][threadIdx.x], acc);
    __syncthreads();
  }
  if (row < M && col < N) C[row * N + col] = RELU ? fmaxf(acc, 0.f) : acc;
}
extern "C" int launch_gemm(const float* A, const float* B, float* C, int M, int N, int K, bool relu, cudaStream_t stream) {
  dim3 grid((N + TILE - 1) / TILE, (M + TILE - 1) / TILE), block(TILE, TILE);
  if (relu) gemm<true><<<grid, block, 0, stream>>>(A, B, C, M, N, K);
  else gemm<false><<<grid, block, 0, stream>>>(A, B, C, M, N, K);
  cudaError_t e = cudaGetLastError();
  if (e != cudaSuccess) fprintf(stderr, "launch: %s\n", cudaGetErrorString(e));
  return (int)e;
}
"""


def build():
    major, minor = torch.cuda.get_device_capability()
    folder = os.path.join(tempfile.gettempdir(), "gemm_" + hashlib.md5(CODE.encode()).hexdigest())
    os.makedirs(folder, exist_ok=True)
    library = os.path.join(folder, "gemm.so")
    if not os.path.exists(library):
        with open(os.path.join(folder, "gemm.cu"), "w") as f:
            f.write(CODE)
        command = f"nvcc -O3 -arch=sm_{major}{minor} --shared -Xcompiler -fPIC -o {library} {folder}/gemm.cu"
        subprocess.check_call(command, shell=True)
    return ctypes.CDLL(library)


lib = build()
lib.launch_gemm.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int] * 3 + [ctypes.c_bool, ctypes.c_void_p]
lib.launch_gemm.restype = ctypes.c_int


class Model(nn.Module):
    def forward(self, a, b):
        return torch.relu(a @ b)


class ModelNew(nn.Module):
    def forward(self, a, b):
        assert a.is_cuda and b.is_cuda
        out = torch.empty(a.shape[0], b.shape[1], device=a.device, dtype=a.dtype)
        code = lib.launch_gemm(a.data_ptr(), b.data_ptr(), out.data_ptr(), a.shape[0], b.shape[1], a.shape[1], True, torch.cuda.current_stream().cuda_stream)
        assert code == 0
        return out


def get_inputs():
    return [torch.randn(37, 50), torch.randn(50, 29)]


def get_init_inputs():
    return []
