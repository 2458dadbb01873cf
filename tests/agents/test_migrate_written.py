"""A kernel that no lifter reads, migrated by models: they see the source and the refusal, and the judge decides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from material import KERNEL, MALFORMED, SKETCH, TASK, ZEROS, block
from scripted import Line, serving

from kernelwright.cli.main import run

pytest.importorskip("pydantic_ai", reason="the extra llm is not installed")

SOURCE = "import tilelang\n\n\nclass ModelNew:\n    pass  # an algorithm of its own\n"


def migrated(folder: Path, answers: list[Line], *more: str) -> tuple[int, list[str]]:
    (folder / "kernel.py").write_text(SOURCE)
    (folder / "task.py").write_text(TASK)
    with serving(answers) as script:
        arguments = ["--to", "cpp", "--model", script.url, "--no-timing", "--out", str(folder / "out"), "--json", *more]
        return run(["migrate", str(folder / "kernel.py"), *arguments]), script.asks


@pytest.mark.parametrize(
    ("answers", "kind"),
    [([block(SKETCH)], "designer"), pytest.param([block(MALFORMED)] * 2 + [block(KERNEL)], "coder", marks=pytest.mark.slow)],
)
def test_models_write_what_cannot_be_lifted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], answers: list[Line], kind: str
) -> None:
    code, asks = migrated(tmp_path, answers, "--task", str(tmp_path / "task.py"))
    told = json.loads(capsys.readouterr().out)
    assert code == 0, told
    assert told["verdict"]["status"] == "correct"
    assert told["schedule"] == kind
    assert all("an algorithm of its own" in ask and "is not callable" in ask for ask in asks)
    assert "models wrote the kernel anew" in (tmp_path / "out" / "migration.md").read_text()


@pytest.mark.slow
def test_a_models_wrong_kernel_is_no_migration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _ = migrated(tmp_path, [block(MALFORMED), block(MALFORMED), block(ZEROS)], "--task", str(tmp_path / "task.py"))
    told = json.loads(capsys.readouterr().out)
    assert code == 1
    assert told["verdict"]["status"] != "correct"


@pytest.mark.slow
def test_without_a_task_nobody_could_tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, asks = migrated(tmp_path, [block(KERNEL)], "--inputs", "f32[16,64]")
    assert code == 2
    assert "--task" in json.loads(capsys.readouterr().out)["error"]
    assert asks == []
