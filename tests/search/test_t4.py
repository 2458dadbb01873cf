"""Measurements as T4 JSON, and two kernels compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelwright.cli.main import run
from kernelwright.cli.progress import standing_lines
from kernelwright.run.observer import Standing
from kernelwright.store import Store


def test_a_search_is_exported_as_t4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = {"what": "design 1 with T 8", "values": {"T": 8}, "seconds": 0.002, "rounds": 5, "fault": "", "relative": 0.9}
    failed = {"what": "design 2", "values": {"T": 4}, "seconds": None, "rounds": 0, "fault": "it does not build"}
    with Store.open(str(tmp_path)) as store:
        opened = store.begin({"command": "generate", "task": "x", "dsl": "cpp"})
        opened.step("heat", "two variants", {}, None, {"places": [place, failed]})
        opened.finish("done", None)
        name = opened.id
    assert run(["show", name, "--t4", "--store", str(tmp_path)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema_version"] == "1.0.0"
    first, second = told["results"]
    assert first["configuration"] == {"design": "design 1", "T": 8}
    assert first["measurements"] == [{"name": "time", "value": 2.0, "unit": "ms"}]
    assert (first["invalidity"], second["invalidity"]) == ("correct", "compile")
    assert first["correctness"] == 0


def test_two_kernels_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = tmp_path / "one.py", tmp_path / "other.py"
    one.write_text("OPTIONS = {'fetch': 0}\nclass ModelNew: pass\n")
    other.write_text("class ModelNew: x = 1\n")
    assert run(["diff", str(one), str(one)]) == 0
    assert run(["diff", str(one), str(other)]) == 1
    told = capsys.readouterr().out
    assert "coder fetch 0" in told
    assert "+class ModelNew: x = 1" in told


def test_the_live_view_says_how_a_search_stands() -> None:
    lines = standing_lines(Standing((1.0, 1.2), ("island 1: 1.20x",), ("design 1 with T 8",), 20.0, 60.0, 9, 0.5))
    assert "1.20x" in lines[0]
    assert "▁█" in lines[0]
    assert "40 s left" in lines[1]
    assert lines[-1] == "  > design 1 with T 8"
    assert standing_lines(None) == []
