"""Lifted kernels lowered to C++ and judged against their tasks; and what is refused, with its line and reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.compiler.language import language
from kernelwright.compiler.lift import lift
from kernelwright.core.errors import CannotLift
from kernelwright.core.task import Task
from kernelwright.core.task.load import load_task
from kernelwright.judge import Judge
from kernelwright.run.drafts import state_of

HERE = Path(__file__).parent
JUDGED = (
    "vector_add", "softmax_rows", "matmul_grouped", "layernorm", "flash_attention", "rmsnorm", "swiglu", "mean_two_kernels",
    "atomic_sum", "embedding", "argmax_rows", "cumsum_rows", "transpose", "cross_entropy", "rope", "int8_matmul", "bmm_bias_gelu",
    "groupnorm", "conv_im2col",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", JUDGED)
def test_lowered_to_cpp_it_is_correct(name: str) -> None:
    path = HERE / "kernels" / f"{name}.py"
    task = Task.from_path(HERE / "tasks" / f"{name}.py")
    lifted = lift(path.read_text(), "triton", task, path=str(path))
    kernel = language("cpp").lower(lifted.sketch, state=state_of(load_task(task)))
    with Judge(threads=1) as judge:
        verdict = judge.verify(task, kernel, timing=False)
    assert verdict.status.value == "correct", verdict.reason


HEAD = """import torch
import triton
import triton.language as tl

def get_inputs():
    return [torch.randn(64)]

"""
LAUNCH = """
class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(1,)](x, y, BLOCK=64)
        return y
"""
REFUSED = {
    "writes to its input": (
        "@triton.jit\ndef kernel(x, y, BLOCK: tl.constexpr):\n    i = tl.arange(0, BLOCK)\n    tl.store(x + i, tl.load(x + i) + 1)\n"
        + LAUNCH,
        "belongs to the caller", 11,
    ),
    "its own way to combine": (
        "@triton.jit\ndef f(a, b):\n    return a * 2 + b\n\n@triton.jit\ndef kernel(x, y, BLOCK: tl.constexpr):\n"
        "    i = tl.arange(0, BLOCK)\n    tl.store(y + i, tl.associative_scan(tl.load(x + i), 0, f))\n" + LAUNCH,
        "not associative", 15,
    ),
    "a counter that grows by data": (
        "@triton.jit\ndef kernel(x, y, BLOCK: tl.constexpr):\n    i = tl.arange(0, BLOCK)\n    k = 0\n    s = 0.0\n"
        "    while k < 64:\n        v = tl.load(x + k)\n        s += v\n        k += 1 + (v > 0).to(tl.int32)\n    tl.store(y + i, s + i)\n"
        + LAUNCH,
        "counter does not move by the same amount", 13,
    ),
    "while over data": (
        "@triton.jit\ndef kernel(x, y, BLOCK: tl.constexpr):\n    i = tl.arange(0, BLOCK)\n    v = tl.load(x + i)\n"
        "    while tl.sum(v, 0) > 1.0:\n        v = v * 0.5\n    tl.store(y + i, v)\n" + LAUNCH,
        "a while loop", 12,
    ),
    "torch computes": (
        "@triton.jit\ndef kernel(x, y, BLOCK: tl.constexpr):\n    i = tl.arange(0, BLOCK)\n    tl.store(y + i, tl.load(x + i))\n"
        + LAUNCH.replace("return y", "return torch.softmax(y, 0)"),
        "aten._softmax", 17,
    ),
    "looks at numbers": (
        "@triton.jit\ndef kernel(x, y, BLOCK: tl.constexpr):\n    i = tl.arange(0, BLOCK)\n    tl.store(y + i, tl.load(x + i))\n"
        + LAUNCH.replace("y = torch", "if x[0].item() > 0:\n            x = -x\n        y = torch"),
        "looks at the numbers", 15,
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n == "its own way to combine" else pytest.mark.slow) for n in REFUSED]
)
def test_refused_with_line_and_reason(name: str) -> None:
    body, reason, line = REFUSED[name]
    with pytest.raises(CannotLift, match=reason) as refusal:
        lift(HEAD + body, "triton", path="foreign.py")
    assert refusal.value.line == line, refusal.value
