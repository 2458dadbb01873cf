"""What a kernel computes, told: formulas that a reader knows, and PyTorch code that was run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from kernelwright.cli import main

SOFTMAX = """
import torch, triton
import triton.language as tl

@triton.jit
def softmax_kernel(out, inp, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(inp + row * stride + cols, mask=cols < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out + row * stride + cols, e / tl.sum(e, axis=0), mask=cols < n)

def softmax(x):
    out = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](out, x, x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out

if __name__ == "__main__":
    print(softmax(torch.randn(4, 4, device="cuda")))
"""


def test_a_softmax_is_told_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "softmax.py"
    path.write_text(SOFTMAX)
    assert main.run(["explain", str(path), "--inputs", "f32[6,50]", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["formulas"] == [
        "s0[i] = max[j < 50] x[i, j]    for i < 6",
        "s1[i] = sum[j < 50] exp(x[i, j] - s0[i])    for i < 6",
        "out[i, j] = exp(x[i, j] - s0[i]) / s1[i]    for i < 6, j < 50",
    ]
    room: dict[str, object] = {}
    exec(told["pytorch"], room)
    x = torch.randn(6, 50)
    torch.testing.assert_close(room["softmax"](x), torch.softmax(x, 1))  # type: ignore[operator]


def test_a_file_that_does_not_parse_is_refused_at_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.py"
    path.write_text(SOFTMAX.replace("out = torch.empty_like(x)", "out = torch.empty_like(x"))
    assert main.run(["explain", str(path), "--inputs", "f32[6,50]"]) == 2
    assert "broken.py:14: this is not Python" in capsys.readouterr().err


def test_a_kernel_of_ours_is_told_by_its_sketch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "ours.py"
    path.write_text('SKETCH = """\nsketch("double")\nreturns("y")\n"""\n')
    assert main.run(["explain", str(path)]) == 0
    assert capsys.readouterr().out == 'sketch("double")\nreturns("y")\n'
