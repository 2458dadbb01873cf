"""runs, show and resume as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="the store needs SQLAlchemy (pip install 'kernelwright[store]')")

from kernelwright.cli import main
from kernelwright.store import Store


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with one run that got somewhere, named by the configuration; wide output, so that lines are not folded."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERNELWRIGHT_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("COLUMNS", "200")
    with Store.open(tmp_path / "store") as store:
        run = store.begin({"command": "generate", "task": "softmax", "dsl": "cpp", "model": "told"}, run_id="20260101-abc")
        prompt, sketch, kernel = (store.put(text) for text in (b"Please design.", b"a sketch", b"a kernel"))
        paid = {"role": "designer", "tokens_in": 900, "tokens_out": 100, "cost_usd": 0.25, "recalled": False}
        run.step("design", "nothing was tried yet", {"prompt": prompt}, sketch, paid)
        run.step(
            "judged", "first of its kind", {"sketch": sketch, "kernel": kernel}, None, {"status": "correct", "speedup": 1.25}
        )
        run.step("judged", "[brackets] stay", {"kernel": kernel}, None, {"status": "wrong_values"})
        run.step("judged", "better", {"sketch": sketch}, None, {"status": "correct", "speedup": 2.5})
        run.finish("done", kernel)
    return tmp_path


def test_runs_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["runs"]) == 0
    shown = capsys.readouterr().out
    for words in ("20260101-abc", "done", "softmax", "cpp", "2.50x", "$0.2500"):
        assert words in shown
    assert main.run(["runs", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["runs"]
    assert (row["run"], row["status"], row["speedup"], row["steps"], row["cost_usd"]) == ("20260101-abc", "done", 2.5, 4, 0.25)


def test_show_is_a_tree_with_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["show", "2026"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "softmax" in lines[0]
    assert "1 calls, 900 + 100 tokens, $0.2500" in lines[1]
    assert "1.25x at" in lines[2]
    assert "2.50x at" in lines[2]
    indent = {number: next(line for line in lines if f"─ {number} " in line).index(f"─ {number} ") for number in (1, 2, 3, 4)}
    assert indent[2] == indent[4] > indent[1] == indent[3]
    assert any("1 design  nothing was tried yet  (900 + 100 tokens, $0.2500)" in line for line in lines)
    assert any("[brackets] stay" in line for line in lines)


def test_show_as_json_has_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["show", "20260101-abc", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["status"] == "done"
    assert [step["parent"] for step in report["steps"]] == [None, 1, None, 1]
    assert [best["speedup"] for best in report["best_over_time"]] == [1.25, 2.5]
    assert report["spent"] == {"calls": 1, "tokens_in": 900, "tokens_out": 100, "cost_usd": 0.25, "unpriced": 0}


def test_show_prints_what_a_step_was_given_and_what_came_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["show", "2026", "--step", "1"]) == 0
    shown = capsys.readouterr().out
    for words in ("prompt", "Please design.", "result", "a sketch"):
        assert words in shown
    assert main.run(["show", "2026", "--step", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["texts"] == {"prompt": "Please design.", "result": "a sketch"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "nobody"], "there is no run 'nobody'"),
        (["show", "2026", "--step", "9"], "has no step 9; it has 4"),
        (["resume", "nobody"], "there is no run 'nobody'"),
        (["runs", "--store", "nosuch://x"], "cannot be opened"),
    ],
)
def test_what_is_not_there_is_one_sentence(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([*arguments, "--json"]) == 2
    said = capsys.readouterr()
    assert words in json.loads(said.out)["error"]


def test_prune_says_what_it_forgot(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    assert main.run(["runs", "--prune", "30"]) == 0
    assert capsys.readouterr().out.startswith("forgot 0 runs")
    assert main.run(["runs", "--prune", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == 1
    assert main.run(["runs"]) == 0
    assert "no runs yet" in capsys.readouterr().out
