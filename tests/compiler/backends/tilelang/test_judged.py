"""TileLang kernels before the judge, on a machine without a GPU: an honest one passes, seeded bugs do not, and the verdict says how."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernelwright.compiler.language import language
from kernelwright.compiler.offdevice.nvcc import NVCC
from kernelwright.core.task import Task
from kernelwright.judge import Judge, Status, Verdict
from kernelwright.sketch.parse import parse

pytest.importorskip("tilelang", reason="the extra tilelang is not installed")

TASK = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(70, 40, bias=False, dtype=torch.float16)

    def forward(self, x):
        return torch.relu(self.linear(x)).sum(dim=1)

def get_inputs():
    return [torch.randn(33, 70, dtype=torch.float16)]

def get_init_inputs():
    return []
"""

KERNEL = """
import torch
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def linear_sum(M, N, K, bm=32, bn=64, bk=32):
    @T.prim_func
    def main(X: T.Tensor((M, K), "float16"), W: T.Tensor((N, K), "float16"), Y: T.Tensor((M,), "float16")):
        with T.Kernel(T.ceildiv(M, bm), threads=128) as by:
            x = T.alloc_shared((bm, bk), "float16")
            w = T.alloc_shared((bn, bk), "float16")
            acc = T.alloc_fragment((bm, bn), "float32")
            total = T.alloc_fragment((bm,), "float32")
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, bk), num_stages=2):
                T.copy(X[by * bm, k * bk], x)
                T.copy(W[0, k * bk], w)
                T.gemm(x, w, acc, transpose_B=True)
            for i, j in T.Parallel(bm, bn):
                acc[i, j] = T.max(acc[i, j], 0)
            T.reduce_sum(acc, total, dim=1)
            T.copy(total, Y[by * bm])

    return main


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(70, 40, bias=False, dtype=torch.float16)

    def forward(self, x):
        assert x.is_cuda and torch.cuda.is_available()
        return linear_sum(x.shape[0], 40, 70)(x.contiguous(), self.linear.weight)
"""

BUGS = {
    "an accumulator that was not cleared": ("            T.clear(acc)\n", ""),
    "a loop that is one step short": ("T.Pipelined(T.ceildiv(K, bk),", "T.Pipelined(T.ceildiv(K, bk) - 1,"),
    "a wrong stride": ("X[by * bm, k * bk]", "X[by * (bm - 1), k * bk]"),
    "an index beyond shared memory": ("acc[i, j] = T.max(acc[i, j], 0)", "acc[i, j] = T.max(acc[i, j], 0) + x[i + 1, 0]"),
}

TOP = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.topk(x, 8, dim=1).values

def get_inputs():
    return [torch.randn(6, 488)]

def get_init_inputs():
    return []
"""
TOP_SKETCH = """
x = tensor([6, 488], f32, role="input", source="0")
y = tensor([6, 8], f32, role="output")

@kernel
def sort():
    for i in parallel(0, 6):
        row = load(x[i, 0:488])
        store(y[i, 0:8], take(row, arg_sort(row, axis=0, descending=True)[0:8], axis=0))

returns("y")
"""


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(threads=1) as judge:
        yield judge


def verdict(judge: Judge, kernel: str, target: str = "a100", task: str = TASK) -> Verdict:
    found = judge.verify(Task.from_source(task, path="task.py"), kernel, target=target, budget_s=0.2)
    assert found.execution == ("emulator" if NVCC else "interpreter")
    assert found.timing is None
    return found


def test_a_file_written_for_a_gpu_runs_unchanged_and_is_compiled_for_its_target(judge: Judge) -> None:
    found = verdict(judge, KERNEL)
    assert found.status is Status.correct, found.reason
    assert found.compiled_for is not None
    if NVCC is not None:
        assert "executed as compiled for sm_80 with no device" in found.warnings
        assert not any("left out" in warning for warning in found.warnings)
        figures = found.compiled_for["a100"]
        assert (figures.registers or 0) > 0
        assert figures.spills == 0
        assert (figures.shared_memory or 0) >= 2 * (32 + 64) * 32 * 2
        assert 0 < (figures.occupancy or 0) <= 1
        assert figures.kernels[0].threads == 128
        assert figures.kernels[0].blocks == 2


@pytest.mark.skipif(NVCC is None, reason="nvcc is not installed")
def test_a_product_of_fp32_tiles_is_tf32_on_the_device_and_here(judge: Judge) -> None:
    kernel, task = (text.replace("float16", "float32") for text in (KERNEL, TASK))
    found = verdict(judge, kernel, task=task)
    assert found.status is Status.wrong_values, found.reason


@pytest.mark.parametrize("bug", BUGS)
def test_seeded_bugs_are_never_correct(judge: Judge, bug: str) -> None:
    before, after = BUGS[bug]
    assert before in KERNEL
    found = verdict(judge, KERNEL.replace(before, after))
    refused = (Status.build_failed,) if "beyond shared" in bug else ()  # TileLang sees this one itself
    assert found.status in (Status.wrong_values, Status.crashed, *refused), found.reason


@pytest.mark.skipif(NVCC is None, reason="nvcc is not installed")
def test_a_block_that_does_not_fit_on_the_target_fails_to_build(judge: Judge) -> None:
    kernel = KERNEL.replace(
        "            T.clear(acc)\n",
        '            T.clear(acc)\n            large = T.alloc_shared((256, 1024), "float32")\n            T.clear(large)\n',
    ).replace("T.max(acc[i, j], 0)", "T.max(acc[i, j] + large[i, j], 0)")
    found = verdict(judge, kernel)
    assert found.status is Status.build_failed, found.reason
    assert "shared memory" in found.reason


def test_torch_in_place_of_a_kernel_is_no_tilelang_kernel(judge: Judge) -> None:
    kernel = KERNEL.replace(
        "return linear_sum(x.shape[0], 40, 70)(x.contiguous(), self.linear.weight)",
        "return (x @ self.linear.weight.T).relu().sum(1)",
    )
    assert verdict(judge, kernel).status is Status.cheating


@pytest.mark.slow
def test_a_sort_of_rows_that_are_no_whole_warps_is_lowered(judge: Judge) -> None:
    """TileLang refuses a barrier under a condition that divides a warp."""
    kernel = language("tilelang").lower(parse(TOP_SKETCH))
    found = judge.verify(Task.from_source(TOP, path="task.py"), kernel, dsl="tilelang", target="a100", budget_s=0.2)
    assert found.status is Status.correct, found.reason
