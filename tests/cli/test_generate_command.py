"""`generate` from a task file to kernel.py, sketch.py and verdict.json, and what it says when it cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelwright.cli.main import run

TASK = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.gelu(x).mean(1)
def get_inputs():
    return [torch.randn(33, 70)]
"""


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "task.py").write_text(TASK)
    return tmp_path / "task.py"


def test_it_writes_a_kernel_that_verify_accepts(task: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = task.parent / "out"
    assert run(["generate", str(task), "--dsl", "cpp", "--no-timing", "--out", str(out), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"]["status"] == "correct"
    assert report["verdict"]["track"] == "pure"
    assert {"kernel", "sketch", "verdict", "run"} <= set(report)
    assert json.loads((out / "verdict.json").read_text()) == report["verdict"]
    assert run(["sketch", report["sketch"], "--check"]) == 0
    assert run(["verify", str(task), report["kernel"], "--no-timing"]) == 0


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        (["--model", "openai:x"], "there is no key; set OPENAI_API_KEY"),
        (["--model", "oracle"], "model 'oracle' is not understood"),
        (["--coder-model", "replay:none.jsonl"], "name one for the other too"),
        (["--dsl", "fortran"], "there is no language 'fortran'"),
        (["--target", "h100"], "run on this machine's CPU, not on h100"),
        (["--effort", "heroic"], "choose one of quick, standard, thorough"),
        (["--budget", "soon"], "is not a duration"),
    ],
)
def test_what_cannot_be_asked_for_is_one_sentence(
    task: Path, extra: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["generate", str(task), *extra]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said


def test_a_missing_task_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["generate", "nowhere.py"]) == 2
    assert "there is no such file" in capsys.readouterr().err
