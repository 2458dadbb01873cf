"""Seeded bugs: what a GPU lets pass, or answers with a hang, is told with kernel, line and thread."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import pytest
import torch

from kernelwright.core.errors import GpuError
from tests.compiler.backends.cuda_c.machine import call, device, library, needs_nvcc

SUM = r"""
__global__ void NAME(const float* x, float* y, int n) {
  __shared__ float s[256];
  int t = threadIdx.x;
  s[t] = t < n ? x[t] : 0.f;
  __syncthreads();
  for (int k = 128; k > 0; k >>= 1) {
    if (t < k) s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0) y[0] = s[0];
}
extern "C" void run_NAME(const float* x, float* y, int n) { NAME<<<1, 256>>>(x, y, n); }
"""
BUGS = {
    "right": ("", ""),
    "off_by_one": ("t < n ?", "t <= n ?"),
    "no_first_barrier": ("  __syncthreads();\n  for", "  for"),
    "no_second_barrier": ("    __syncthreads();\n  }", "  }"),
    "uninitialised": ("s[t] = t < n ? x[t] : 0.f;", "if (t < n) s[t] = x[t];"),
    "divergent": ("s[t] += s[t + k];\n    __syncthreads();", "{ s[t] += s[t + k]; __syncthreads(); }"),
    "wrong_stride": ("s[t + k]", "s[t + 2 * k]"),
    "wrong_place": ("y[0] = s[0]", "y[1] = s[0]"),
}
MORE = r"""
#include <cooperative_groups.h>
__global__ void lost_lane(float* y) {
  float v = threadIdx.x;
  if (threadIdx.x < 16) v += __shfl_down_sync(0xffffffffu, v, 8); else __syncthreads();
  y[threadIdx.x] = v;
}
__global__ void no_accumulator(const float* x, float* y) {
  float sum;
  for (int k = 0; k < 8; ++k) sum += x[k];
  y[0] = sum;
}
__global__ void guarded_exit(const float* x, float* y, int n) {
  __shared__ float s[64];
  int t = threadIdx.x;
  if (t >= n) return;
  s[t] = x[t];
  __syncthreads();
  y[t] = s[n - 1 - t];
}
__global__ void within_a_warp(const float* x, float* y) {
  __shared__ float s[32];
  int t = threadIdx.x;
  s[t] = x[t];
  __syncwarp();
  y[t] = s[31 - t];
}
__global__ void meeting(float* parts, float* y, int absent) {
  if (int(blockIdx.x) == absent) return;
  if (threadIdx.x == 0) parts[blockIdx.x] = blockIdx.x + 1;
  cooperative_groups::this_grid().sync();
  float sum = 0;
  for (int b = 0; b < int(gridDim.x); ++b) sum += parts[b];
  y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
extern "C" void run_meeting(float* parts, float* y, int absent) {
  void* arguments[] = {&parts, &y, &absent};
  cudaLaunchCooperativeKernel((void*)meeting, dim3(6), dim3(40), arguments, 0, 0);
}
extern "C" void run_lost_lane(float* y) { lost_lane<<<1, 32>>>(y); }
extern "C" void run_no_accumulator(const float* x, float* y) { no_accumulator<<<1, 1>>>(x, y); }
extern "C" void run_guarded_exit(const float* x, float* y, int n) { guarded_exit<<<1, 64>>>(x, y, n); }
extern "C" void run_within_a_warp(const float* x, float* y) { within_a_warp<<<1, 32>>>(x, y); }
"""

pytestmark = needs_nvcc


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """All kernels in one build."""
    texts = [
        SUM.replace(old, new).replace("NAME", name) if old else SUM.replace("NAME", name) for name, (old, new) in BUGS.items()
    ]
    folder: Path = tmp_path_factory.mktemp("checks")
    return library("".join(texts) + MORE, folder)


def test_the_right_kernel_passes(kernels: ctypes.CDLL) -> None:
    x, y = torch.randn(200), torch.zeros(1)
    call(kernels.run_right, x, y, 200)
    assert torch.allclose(y[0], x.sum(), atol=1e-4)


@pytest.mark.parametrize(
    ("bug", "word", "thread"),
    [
        ("off_by_one", "out_of_bounds", "thread (200, 0, 0)"),
        ("no_first_barrier", "uninitialised", "thread (0, 0, 0)"),
        ("no_second_barrier", "shared_race", "thread ("),
        ("uninitialised", "uninitialised", "thread (72, 0, 0)"),
        ("divergent", "divergent_barrier", "thread ("),
        ("wrong_stride", "shared_out_of_bounds", "thread (0, 0, 0)"),
        ("wrong_place", "out_of_bounds", "thread (0, 0, 0)"),
    ],
)
def test_seeded_bugs(kernels: ctypes.CDLL, bug: str, word: str, thread: str) -> None:
    x, y = torch.randn(200), torch.zeros(1)
    with pytest.raises(GpuError, match=word) as caught:
        call(kernels[f"run_{bug}"], x, y, 200)
    assert re.search(rf"kernel\.cu:\d+: \w*{bug}\w*, block", str(caught.value))
    assert thread in str(caught.value)
    call(kernels.run_right, x, y, 200)  # a failure ends with its call


def test_lanes_that_never_come(kernels: ctypes.CDLL) -> None:
    with pytest.raises(GpuError, match=r"deadlock|missing_lanes|divergent_barrier"):
        call(kernels.run_lost_lane, torch.zeros(128))


def test_uninitialised_registers_hold_garbage(kernels: ctypes.CDLL) -> None:
    x, y = torch.ones(8), torch.zeros(1)
    call(kernels.run_no_accumulator, x, y)
    assert not torch.allclose(y, torch.tensor([8.0]))


def test_an_early_exit_is_no_divergence(kernels: ctypes.CDLL) -> None:
    x, y = torch.randn(40), torch.zeros(40)
    call(kernels.run_guarded_exit, x, y, 40)
    assert torch.equal(y, x.flip(0))


def test_a_warp_needs_no_block_barrier(kernels: ctypes.CDLL) -> None:
    x, y = torch.randn(32), torch.zeros(32)
    call(kernels.run_within_a_warp, x, y)
    assert torch.equal(y, x.flip(0))


def test_memory_of_the_host_is_refused(kernels: ctypes.CDLL) -> None:
    x, y = torch.randn(200), torch.zeros(1)
    kernels.run_right(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), 200)
    with pytest.raises(GpuError, match="out_of_bounds"):
        device().raise_pending()


def test_a_grid_that_meets(kernels: ctypes.CDLL) -> None:
    parts, y = torch.zeros(6), torch.zeros(240)
    call(kernels.run_meeting, parts, y, -1)
    assert torch.equal(y, torch.full((240,), 21.0))
    with pytest.raises(GpuError, match="deadlock"):
        call(kernels.run_meeting, parts, y, 2)
