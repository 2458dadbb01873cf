"""`verify` from files to exit code, through the real judge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelwright.cli.main import run
from kernelwright.core.verdict import Verdict

EXAMPLES = Path(__file__).parents[2] / "examples"
TASK = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2 + 1
def get_inputs():
    return [torch.randn(64, 33)]
def get_init_inputs():
    return []
"""
RIGHT = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape)
        data = [v * 2 + 1 for v in x.flatten().tolist()]
        out.copy_(torch.tensor(data).reshape(x.shape))
        return out
"""
WRONG = RIGHT.replace("v * 2 + 1", "v * 2")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "task.py").write_text(TASK)
    (tmp_path / "right.py").write_text(RIGHT)
    (tmp_path / "wrong.py").write_text(WRONG)
    return tmp_path


def test_a_right_kernel_is_0_and_a_wrong_one_1(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(files / "task.py"), str(files / "right.py"), "--no-timing", "--json"]) == 0
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["status"] == "correct"
    assert verdict["timing"] is None
    assert run(["verify", str(files / "task.py"), str(files / "wrong.py"), "--no-timing"]) == 1
    assert "wrong_values" in capsys.readouterr().out


def test_every_setting_reaches_the_judge(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, object] = {}

    class Listening:
        def __init__(self, **how: object) -> None:
            given.update(how)

        def __enter__(self) -> Listening:
            return self

        def __exit__(self, *_: object) -> None:
            return

        def verify(self, task: object, kernel: object, **how: object) -> Verdict:
            given.update(how)
            return Verdict(status="correct", reason="right")

    monkeypatch.setattr("kernelwright.judge.verify.Judge", Listening)
    for name, value in {"THREADS": "3", "CLOCK_SECONDS": "1.5", "TRACK": "hybrid", "TIMING": "0", "COMPILE": "0"}.items():
        monkeypatch.setenv(f"KERNELWRIGHT_{name}", value)
    assert run(["verify", str(files / "task.py"), str(files / "right.py"), "--json"]) == 0
    expected = {"threads": 3, "budget_s": 1.5, "track": "hybrid", "timing": False, "compile_contender": False}
    assert given == {**expected, "target": "cpu", "confined": False}


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        (["--dsl", "cobol"], "there is no language 'cobol'"),
        (["--track", "fast"], "'pure' or 'hybrid'"),
        (["--target", "h100"], "python kernels run on the CPU, not on NVIDIA H100"),
        (["--target", "h1"], "there is no target 'h1'"),
    ],
)
def test_a_request_that_cannot_be_met_is_2(
    files: Path, extra: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["verify", str(files / "task.py"), str(files / "right.py"), *extra]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.slow
def test_the_example_of_make_demo_is_correct_and_timed(capsys: pytest.CaptureFixture[str]) -> None:
    task, kernel = EXAMPLES / "tasks" / "softmax.py", EXAMPLES / "kernels" / "softmax_cpp.py"
    assert run(["verify", str(task), str(kernel), "--json", "--no-compile"]) == 0
    timing = json.loads(capsys.readouterr().out)["timing"]
    assert timing["speedup_low"] <= timing["speedup"] <= timing["speedup_high"]
