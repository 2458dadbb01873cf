"""CUB's collectives in the emulator: the values, and the barrier that their storage needs before it is used again."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kernelwright.compiler.backends.cuda_c.emulator.library import Emulated, EmulatorError
from tests.compiler.backends.cuda_c.emulation import call, library, needs_gcc

SOURCE = r"""
#include <cub/cub.cuh>

template <bool BARRIER> __device__ void twice(const float* x, float* y) {
  typedef cub::BlockReduce<float, 64> Reduce;
  __shared__ typename Reduce::TempStorage storage;
  const float sum = Reduce(storage).Sum(x[threadIdx.x]);
  if (BARRIER) __syncthreads();
  const float most = Reduce(storage).Reduce(x[threadIdx.x], cub::Max());
  if (threadIdx.x == 0) { y[0] = sum; y[1] = most; }
}
__global__ void with_barrier(const float* x, float* y) { twice<true>(x, y); }
__global__ void without_barrier(const float* x, float* y) { twice<false>(x, y); }
extern "C" void run_with(const float* x, float* y) { with_barrier<<<1, 64>>>(x, y); }
extern "C" void run_without(const float* x, float* y) { without_barrier<<<1, 64>>>(x, y); }

__global__ void sorted(const float* x, float* y) {
  typedef cub::BlockRadixSort<float, 32, 2> Sort;
  __shared__ typename Sort::TempStorage storage;
  float keys[2] = {x[2 * threadIdx.x], x[2 * threadIdx.x + 1]};
  Sort(storage).SortDescending(keys);
  y[2 * threadIdx.x] = keys[0];
  y[2 * threadIdx.x + 1] = keys[1];
}
extern "C" void run_sorted(const float* x, float* y) { sorted<<<1, 32>>>(x, y); }
"""

pytestmark = needs_gcc


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Emulated:
    folder: Path = tmp_path_factory.mktemp("cub")
    return library(SOURCE, folder)


def test_the_first_thread_has_the_block_s_result(built: Emulated) -> None:
    x, y = torch.randn(64), torch.zeros(2)
    call(built.run_with, x, y)
    torch.testing.assert_close(y, torch.stack([x.sum(), x.max()]))


def test_storage_that_is_used_again_without_a_barrier_is_a_race(built: Emulated) -> None:
    with pytest.raises(EmulatorError, match="without_barrier"):
        call(built.run_without, torch.randn(64), torch.zeros(2))


def test_a_block_is_sorted(built: Emulated) -> None:
    x, y = torch.randn(64), torch.zeros(64)
    call(built.run_sorted, x, y)
    assert torch.equal(y, x.sort(descending=True).values)
