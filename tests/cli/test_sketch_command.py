"""`kernelwright sketch`: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelwright.cli.main import run

TASK = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)

def get_inputs():
    return [torch.randn(6, 9)]

def get_init_inputs():
    return []
"""

SKETCH = """
x = tensor([6, 9], f32, role="input", source="0")
y = tensor([6, 9], f32, role="output")

@kernel
def softmax():
    for i in parallel(0, 6):
        e = exp(load(x[i, :]))
        store(y[i, :], e / reduce_sum(e, axis=0))

returns("y")
"""


@pytest.fixture
def task(tmp_path: Path) -> str:
    path = tmp_path / "task.py"
    path.write_text(TASK)
    return str(path)


@pytest.fixture
def sketch(tmp_path: Path) -> Path:
    path = tmp_path / "softmax.sketch.py"
    path.write_text(SKETCH)
    return path


def test_prints_a_sketch_that_reads_back(task: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sketch", task]) == 0
    written = tmp_path / "again.sketch.py"
    written.write_text(capsys.readouterr().out)
    assert run(["sketch", str(written), "--run", "--against", task]) == 0


def test_runs_against_the_reference(task: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sketch", task, "--run", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["faults"] == []
    assert report["run"]["agrees"] is True
    assert "@kernel" in report["sketch"]


def test_checks_a_sketch_written_by_hand(sketch: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sketch", str(sketch), "--check"]) == 0
    assert "in order" in capsys.readouterr().err
    sketch.write_text(SKETCH.replace("parallel(0, 6)", "parallel(0, 7)"))
    assert run(["sketch", str(sketch), "--check"]) == 1
    assert "softmax.sketch.py:8: load of x may leave axis 0" in capsys.readouterr().err


def test_a_sketch_that_computes_something_else_does_not_hold(
    sketch: Path, task: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sketch.write_text(SKETCH.replace("exp(load", "exp2(load"))
    assert run(["sketch", str(sketch), "--run", "--against", task, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["run"]["agrees"] is False


def test_what_cannot_be_understood(sketch: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["sketch", str(sketch), "--run"]) == 2
    assert "--against TASK" in capsys.readouterr().err
    assert run(["sketch", str(tmp_path / "missing.py")]) == 2
    sketch.write_text(SKETCH.replace("exp(load", "expo(load"))
    assert run(["sketch", str(sketch)]) == 2
    assert "did you mean exp" in capsys.readouterr().err
    sketch.write_text("x = (")
    assert run(["sketch", str(sketch)]) == 2


VARYING = SKETCH.replace("[6, 9]", "[n, 9]").replace("parallel(0, 6)", "parallel(0, n)")


def test_a_sketch_with_dynamic_sizes_is_proved_or_refuted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "softmax.sketch.py"
    path.write_text("n = size(6, dynamic=True, low=1, high=4096)\n" + VARYING)
    assert run(["sketch", str(path), "--check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["proof"]["statement"] == "proved for x[0] in 1..4096"
    path.write_text("n = size(6, dynamic=True, low=1)\n" + VARYING.replace("load(x[i, :])", "load(x[i * 2, :])"))
    assert run(["sketch", str(path), "--check"]) == 1
    told = capsys.readouterr().err
    assert "all sizes: refuted at x[0] = " in told
    assert "it does at n = " in told
