"""Triton kernels before the judge, on a machine without a GPU: honest ones pass, seeded bugs do not, and the verdict says how."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernelwright.core.job import JobSpec
from kernelwright.core.task import Task
from kernelwright.judge import Judge, Status, Verdict
from kernelwright.run.drafts import Drafter

pytest.importorskip("triton", reason="the extra triton is not installed")

TASK = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.sum(torch.exp(-x * x), dim=1)

def get_inputs():
    return [torch.randn(8, 100)]

def get_init_inputs():
    return []
"""

KERNEL = """
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

@triton.jit
def square(x):
    return x * x

@triton.autotune(configs=[triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def row_sum(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + at, mask=at < n, other=float("inf"))
        total += tl.exp(-square(x))
    tl.store(y_ptr + row, tl.sum(total, axis=0))

class ModelNew(torch.nn.Module):
    def forward(self, x):
        assert x.is_cuda and torch.cuda.is_available()
        x = x.contiguous()
        y = torch.empty(x.shape[0], device="cuda", dtype=x.dtype)
        with torch.cuda.device(x.device):
            row_sum[(x.shape[0],)](x, y, x.stride(0), x.shape[1])
        return y
"""

LOAD = 'mask=at < n, other=float("inf")'
BUGS = {
    "a mask that was forgotten": (f", {LOAD}", ""),
    "a mask that is one off": ("mask=at < n,", "mask=at < n - 1,"),
    "a wrong stride": ("row * stride", "row * (stride + 1)"),
    "a load without other": (LOAD, "mask=at < n"),
    "an accumulator that starts with garbage": ("tl.store(y_ptr + row,", "tl.atomic_add(y_ptr + row,"),
}
REVERSE_TWICE = """
import torch
import triton
import triton.language as tl

@triton.jit
def reverse_rows(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * n
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row + at, mask=at < n)
    tl.store(y_ptr + row + at, tl.exp(-x * x), mask=at < n)
    x = tl.load(y_ptr + row + at, mask=at < n)
    tl.store(y_ptr + row + at, x, mask=at < n)
    tl.debug_barrier()
    other = tl.load(y_ptr + row + n - 1 - at, mask=at < n, other=0.0)
    tl.debug_barrier()
    tl.store(y_ptr + row, tl.sum(other, axis=0))

class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        reverse_rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=128)
        return y[:, 0].contiguous()
"""
REFUSED = {
    "a block that is no power of two": ('{"BLOCK": 64}', '{"BLOCK": 96}'),
    "a tensor that stays on the host": ('device="cuda", ', ""),
}


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(threads=1) as judge:
        yield judge


def verdict(judge: Judge, kernel: str, task: str = TASK, target: str = "h100") -> Verdict:
    found = judge.verify(Task.from_source(task, path="task.py"), kernel, target=target, budget_s=0.2)
    assert found.execution == "emulator"
    assert found.timing is None
    return found


def test_a_file_written_for_a_gpu_runs_unchanged_and_is_compiled_for_its_targets(judge: Judge) -> None:
    found = verdict(judge, KERNEL, target="a100,mi300x")
    assert found.status is Status.correct, found.reason
    assert found.compiled_for is not None
    assert list(found.compiled_for) == ["a100", "mi300x"]
    for figures in found.compiled_for.values():
        assert figures.registers is not None
        assert figures.registers > 0
        assert figures.spills == 0
        assert 0 < (figures.occupancy or 0) <= 1
        assert figures.limiter
        assert (figures.predicted_ms or 0) > 0
    assert found.compiled_for["a100"].kernels[0].threads == 64
    assert any("autotuned" in warning for warning in found.warnings)
    assert "executed as compiled for sm_80 with no device" in found.warnings
    assert "emulator" in found.reason
    assert not any("left out" in warning for warning in found.warnings)


@pytest.mark.parametrize("bug", BUGS)
def test_seeded_bugs_are_never_correct(judge: Judge, bug: str) -> None:
    before, after = BUGS[bug]
    assert before in KERNEL
    found = verdict(judge, KERNEL.replace(before, after))
    assert found.status in (Status.wrong_values, Status.crashed), found.reason
    if found.status is Status.crashed:  # an access outside says of which tensor
        assert "the tensor x_ptr" in found.reason


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_gpu_would_refuse_is_refused(judge: Judge, case: str) -> None:
    before, after = REFUSED[case]
    assert before in KERNEL
    found = verdict(judge, KERNEL.replace(before, after))
    assert found.status in (Status.crashed, Status.build_failed), found.reason


def test_what_the_compiler_refuses_fails_to_build(judge: Judge) -> None:
    kernel = KERNEL.replace("total += tl.exp(-square(x))", "total += tl.exp(-square(x)) + sum([0.0])")
    found = verdict(judge, kernel)
    assert found.status is Status.build_failed, found.reason
    assert found.build is not None
    assert "row_sum" in found.build.message + found.build.excerpt + found.reason


def test_what_this_triton_no_longer_has_is_told_as_such(judge: Judge) -> None:
    kernel = KERNEL.replace(
        'x = tl.load(x_ptr + row * stride + at, mask=at < n, other=float("inf"))',
        "x = tl.load(tl.make_block_ptr(x_ptr, (n,), (1,), (start,), (BLOCK,), (0,)))",
    )
    found = verdict(judge, kernel)
    assert found.status is Status.build_failed, found.reason
    assert "Block pointers have been removed" in found.reason


def test_a_barrier_that_was_removed(judge: Judge) -> None:
    """Triton places barriers for shared memory itself; what goes through global memory is the author's business."""
    found = verdict(judge, REVERSE_TWICE)
    assert found.status is Status.correct, found.reason
    found = verdict(judge, REVERSE_TWICE.replace("    tl.debug_barrier()\n", "", 1))
    assert found.status in (Status.crashed, Status.wrong_values)


def test_torch_in_place_of_a_kernel_is_no_triton_kernel(judge: Judge) -> None:
    head = "import torch\nimport triton\n\nclass ModelNew(torch.nn.Module):\n"
    kernel = f"{head}    def forward(self, x):\n        return x.new_zeros(x.shape[0])\n"
    found = verdict(judge, kernel)
    assert found.status is not Status.correct
    kernel = KERNEL.replace("return y\n", "return torch.exp(-x * x).sum(1)\n")
    assert verdict(judge, kernel).status is Status.cheating
    kernel = KERNEL.replace(
        "return y\n", "return torch.from_numpy(__import__('numpy').exp(-x.cpu().numpy() ** 2).sum(1)).cuda()\n"
    )
    found = verdict(judge, kernel)
    assert found.status is Status.cheating
    assert "numpy" in found.reason


def test_bf16_arithmetic_libdevice_and_any_combine_function(judge: Judge) -> None:
    task = TASK.replace("torch.sum(torch.exp(-x * x), dim=1)", "torch.tanh(x).cummax(dim=1).values").replace(
        "torch.randn(8, 100)", "torch.randn(4, 64, dtype=torch.bfloat16)"
    )
    kernel = """
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

@triton.jit
def higher(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)

@triton.jit
def running(x_ptr, y_ptr, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    x = libdevice.tanh(tl.load(x_ptr + at).to(tl.float32)).to(tl.bfloat16)
    tl.store(y_ptr + at, tl.associative_scan(x * 1.0, 0, higher))

class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        running[(x.shape[0],)](x, y, x.shape[1], num_warps=1)
        return y
"""
    found = verdict(judge, kernel, task)
    assert found.status is Status.correct, found.reason
    found = judge.verify(Task.from_source(task, path="task.py"), kernel, target="mi300x", budget_s=0.2)
    assert found.status is Status.correct, found.reason
    assert found.execution == "interpreter"
    assert any("bf16" in warning for warning in found.warnings)


LOSS = """
import torch

class Model(torch.nn.Module):
    def forward(self, x, y):
        return torch.nn.functional.smooth_l1_loss(x, y, beta=0.8)

def get_inputs():
    return [torch.randn(120, 248), torch.randn(120, 248)]

def get_init_inputs():
    return []
"""


def test_a_loop_with_two_operands_has_registers_enough(judge: Judge) -> None:
    """ptxas spilled for sm_90 with 32 elements a thread."""
    with Drafter() as drafter:
        kernel = drafter.drafts(JobSpec(Task.from_source(LOSS, path="task.py"), "triton"), 1)[0].kernel
    found = verdict(judge, kernel, LOSS)
    assert found.status is Status.correct, found.reason
    assert found.compiled_for is not None
    assert found.compiled_for["h100"].spills == 0
