"""`kernelwright show --table`: the table for people and programs; and what the live view keeps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelwright.agents.conductor.check import usable
from kernelwright.agents.conductor.table import OURS
from kernelwright.cli.main import run
from kernelwright.cli.progress import View
from kernelwright.core.errors import ConfigError

BAD = '[[row]]\nname = "only"\nwhen = { move = "seed" }\nthen = "design"\nbecause = "."\n'


def test_the_table_is_printed_with_its_facts(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "--table"]) == 0
    told = capsys.readouterr().out
    assert "near_the_roof" in told
    assert "whether the Designer has said" in told
    assert "no dead ends" in told
    assert run(["show", "--table", "--mermaid"]) == 0
    assert capsys.readouterr().out.startswith("flowchart LR")


def test_another_table_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.toml").write_text(BAD)
    assert run(["show", str(tmp_path / "mine.toml"), "--table", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["dead_ends"]
    with pytest.raises(ConfigError, match="no row of row answers"):
        usable(str(tmp_path / "mine.toml"))
    (tmp_path / "copy.toml").write_text(OURS.read_text())
    monkeypatch.setenv("KERNELWRIGHT_CONDUCTOR", str(tmp_path / "copy.toml"))
    assert run(["show", "--table", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["path"].endswith("copy.toml")


def test_a_run_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "--json"]) == 2
    assert "--table" in json.loads(capsys.readouterr().out)["error"]


def test_the_live_view_keeps_moves_and_verdicts_on_the_screen() -> None:
    view = View("softmax")
    assert view.kept("design: the built-in mind is the seed").plain.endswith("design: the built-in mind is the seed")
    assert "green" in str(view.kept("  correct: right in 9 trials; 1.5x eager").spans)
    assert "red" in str(view.kept("  wrong_values: the last row").spans)
