"""`kernelwright task`: a description for people, one object for scripts, one sentence for bad files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelwright.cli.task import task_command
from kernelwright.cli.task_new import STARTER
from kernelwright.core.errors import ConfigError, TaskError

SMALL = STARTER.replace("1024, 512", "16, 32").replace("return [512]", "return [32]")


def test_the_starter_can_be_written_and_described(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.py"
    assert task_command("new", str(path)) == 0
    assert path.read_text() == STARTER
    with pytest.raises(ConfigError, match="exists already"):
        task_command("new", str(path))
    path.write_text(SMALL)
    capsys.readouterr()
    assert task_command(str(path), as_json=True) == 0
    described = json.loads(capsys.readouterr().out)
    assert described["task"] == "mine"
    assert described["outputs"] == "float32[16, 32]"
    assert described["flags"] == []
    assert "seed" not in described
    assert task_command(str(path)) == 0
    assert "float32[16, 32]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("import os; os._exit(0)", "ended its process"),
        ("import os; os.abort()", "ended its process"),
    ],
)
def test_a_file_that_goes_wrong_costs_one_sentence(line: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text(SMALL + f"\nprint('noise')\n{line}\n")
    with pytest.raises(TaskError, match=sentence):
        task_command(str(path), as_json=True)
