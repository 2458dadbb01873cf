"""Triton and CUDA-C kernels of somebody else, migrated: lifted, judged beside their sources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelwright.cli.main import run

SOFTMAX = """
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(out_ptr, in_ptr, in_stride, out_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(in_ptr + row * in_stride + cols, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * out_stride + cols, e / tl.sum(e, axis=0), mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](y, x, x.stride(0), y.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
"""

TASK = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(64, 200)]
"""


@pytest.mark.slow
def test_a_triton_kernel_becomes_cpp_and_is_timed_against_eager(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kernel.py").write_text(SOFTMAX)
    (tmp_path / "task.py").write_text(TASK)
    out = tmp_path / "out"
    arguments = ["--to", "cpp", "--task", str(tmp_path / "task.py"), "--no-compile", "--out", str(out), "--json"]
    assert run(["migrate", str(tmp_path / "kernel.py"), *arguments]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["source_verdict"]["execution"] == "emulator"
    assert told["verdict"]["timing"]["eager_ms"] > 0
    assert "PyTorch eager" in (out / "migration.md").read_text()


def test_a_kernel_that_no_lifter_reads_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kernel.py").write_text("import tilelang\n\n\nclass ModelNew:\n    pass\n")
    code = run(["migrate", str(tmp_path / "kernel.py"), "--to", "cpp", "--inputs", "f32[4]", "--json"])
    assert code == 2
    assert "lift" in json.loads(capsys.readouterr().out)["error"]


CUDA = Path(__file__).parents[2] / "compiler/lift/cuda/kernels"


@pytest.mark.slow
def test_a_cuda_kernel_becomes_cpp_without_a_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--to", "cpp", "--inputs", "f32[33,70]", "--out", str(tmp_path), "--json"]
    assert run(["migrate", str(CUDA / "relu_float4.py"), *arguments]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"]["status"] == "correct"
    assert told["source_verdict"]["execution"] == "emulator"


def test_a_cuda_kernel_that_cannot_be_lifted_is_one_sentence_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (CUDA / "sum_middle_axis.py").read_text()
    kernel = tmp_path / "kernel.py"
    kernel.write_text(text.replace("for (int i = 0; i < D1; ++i) {", "for (int i = 0; acc < 3.f && i < D1; ++i) {"))
    assert run(["migrate", str(kernel), "--to", "cpp", "--out", str(tmp_path / "out"), "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    line = next(k for k, said in enumerate(kernel.read_text().splitlines(), 1) if "acc < 3.f" in said)
    assert f"kernel.py:{line}: " in error
