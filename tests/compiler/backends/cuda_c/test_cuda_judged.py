"""CUDA-C kernels before the judge, on a machine without a GPU: honest ones pass, seeded bugs do not, and the verdict says how."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelwright.compiler.backends.cuda_c import builds
from kernelwright.core.errors import GpuError
from kernelwright.core.task import Task
from kernelwright.judge import Judge, Status, Verdict

EXAMPLE = (Path(__file__).parents[4] / "examples" / "kernels" / "softmax_cuda.py").read_text()
SOFTMAX = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)

def get_inputs():
    return [torch.randn(6, 300)]

def get_init_inputs():
    return []
"""
ROW_SUMS = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.sum(torch.relu(x), dim=1)

def get_inputs():
    return [torch.randn(9, 70)]

def get_init_inputs():
    return []
"""
INLINE = r'''
import torch
from torch.utils.cpp_extension import load_inline

source = """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>

template <typename scalar_t>
__global__ void row_sums(const scalar_t* __restrict__ x, scalar_t* __restrict__ y, int columns) {
  extern __shared__ float part[];
  const int t = threadIdx.x;
  float sum = 0;
  for (int c = t; c < columns; c += blockDim.x) {
    const float v = static_cast<float>(x[blockIdx.x * columns + c]);
    sum += v > 0 ? v : 0;
  }
  part[t] = sum;
  __syncthreads();
  for (int k = blockDim.x / 2; k > 0; k /= 2) {
    if (t < k) part[t] += part[t + k];
    __syncthreads();
  }
  if (t == 0) y[blockIdx.x] = part[0];
}

torch::Tensor relu_row_sums(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda(), "x must be a CUDA tensor");
  auto y = torch::empty({x.size(0)}, x.options());
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "relu_row_sums", ([&] {
    row_sums<scalar_t><<<x.size(0), 256, 256 * sizeof(float), at::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.size(1));
  }));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
"""
extension = load_inline(
    name="relu_row_sums", cpp_sources="torch::Tensor relu_row_sums(torch::Tensor x);", cuda_sources=source,
    functions=["relu_row_sums"], extra_cuda_cflags=["-O3"],
)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return extension.relu_row_sums(x.contiguous())
'''
STRANGERS = Path(__file__).parents[1] / "foreign" / "cuda_c"
LINEAR_GELU = """
import torch

class Model(torch.nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.linear = torch.nn.Linear(k, n)

    def forward(self, x):
        return torch.nn.functional.gelu(self.linear(x))

def get_inputs():
    return [torch.randn(9, 20)]

def get_init_inputs():
    return [20, 13]
"""
BUGS = {
    "a barrier that was removed": ("part[t + k];\n    __syncthreads();", "part[t + k];"),
    "a bound that is one off": ("c < columns", "c <= columns"),
    "a wrong stride": ("blockIdx.x * columns", "blockIdx.x * (columns + 1)"),
    "an accumulator that starts with garbage": ("float sum = 0;", "float sum;"),
    "a divergent barrier": ("part[t + k];\n    __syncthreads();", "{ part[t] += 0; __syncthreads(); }"),
}


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(threads=1) as judge:
        yield judge


def verdict(judge: Judge, task: str, kernel: str) -> Verdict:
    return judge.verify(Task.from_source(task, path="task.py"), kernel, target="a100", budget_s=0.2, timing=False)


def test_a_file_that_calls_nvcc(judge: Judge) -> None:
    found = verdict(judge, SOFTMAX, EXAMPLE)
    assert found.status is Status.correct, found.reason
    assert found.execution == "emulator"
    assert found.timing is None


@pytest.mark.slow
def test_a_file_that_uses_load_inline(judge: Judge) -> None:
    found = verdict(judge, ROW_SUMS, INLINE)
    assert found.status is Status.correct, found.reason


@pytest.mark.slow
@pytest.mark.parametrize("bug", sorted(BUGS))
def test_seeded_bugs(judge: Judge, bug: str) -> None:
    old, new = BUGS[bug]
    assert old in INLINE
    found = verdict(judge, ROW_SUMS, INLINE.replace(old, new))
    assert found.status is not Status.correct


@pytest.mark.slow
def test_a_product_by_cublas_is_a_librarys(judge: Judge) -> None:
    kernel = (STRANGERS / "cublas_linear.py").read_text()
    found = verdict(judge, LINEAR_GELU, kernel)
    assert found.status is Status.cheating
    assert "cublasSgemm" in found.reason
    task = Task.from_source(LINEAR_GELU, path="task.py")
    allowed = judge.verify(task, kernel, target="a100", budget_s=0.2, timing=False, track="hybrid")
    assert allowed.status is Status.correct, allowed.reason
    assert allowed.library_calls == ("cublas::cublasSgemm",)


def test_without_nvcc_the_reason_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builds, "_device", None)
    with pytest.raises(GpuError, match=r"pip install 'kernelwright\[cuda\]'"):
        builds.build([Path("kernel.cu")], Path("kernel.so"))
