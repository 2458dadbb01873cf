"""Skills out of finished runs, and the shelf on which they stand."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from material import BROKEN, KERNEL, TASK, ZEROS

pytest.importorskip("sqlalchemy", reason="the extra store is not installed")

from kernelwright.agents.knowledge import shelf
from kernelwright.agents.knowledge.skills import read
from kernelwright.cli.main import run
from kernelwright.store import Store

FASTER = KERNEL.replace("double total = 0.0;", "double total = 0.0;  // two sums")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


def finished(store: Store, best: str = FASTER) -> None:
    """A run as the team writes it: a kernel that did not build, the patch, an improvement."""
    record = store.begin({"command": "generate", "task": "branch", "dsl": "cpp"})

    def put(text: str) -> str:
        return store.put(text.encode())

    def judged(kernel: str, status: str, speedup: float | None) -> None:
        facts = {"status": status, "speedup": speedup, "author": "coder"}
        record.step(
            "judged", "it does not build: totl" if status != "correct" else "right", {"kernel": put(kernel)}, None, facts
        )

    record.step("start", "branch", {"task": put(TASK)}, None, {})
    record.step("choose", "what is read", {}, None, {"families": ["index", "loss", "pointwise"]})
    record.step("code", "written", {}, put(BROKEN), {})
    judged(BROKEN, "build_failed", None)
    record.step("patch", "patched", {"kernel": put(BROKEN)}, put(KERNEL), {})
    judged(KERNEL, "correct", 1.5)
    record.step("improve", "improved", {"kernel": put(KERNEL)}, put(best), {})
    judged(best, "correct", 3.0)
    record.finish("done", put(best))


def learn(folder: Path, capsys: pytest.CaptureFixture[str], *more: str) -> list[dict[str, object]]:
    assert run(["learn", "--store", str(folder / "store"), "--json", *more]) == 0
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)["proposals"]
    return found


@pytest.mark.slow
def test_a_run_teaches_its_gain_and_its_fix_and_the_judge_accepts_the_example(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Store.open(home / "store") as store:
        finished(store)
    (told,) = learn(home, capsys, "--dry-run")
    assert not shelf.own_folder().exists()
    (told,) = learn(home, capsys)
    assert told["accepted"], told["reason"]
    skill = read(shelf.own_folder() / "learnt_loss_cpp.md")
    assert (skill.language, skill.families, skill.version) == ("cpp", ("loss",), 1)
    assert skill.provenance
    assert "for branch 2.00x as fast" in skill.text
    assert "Failure: it does not build: totl" in skill.text
    assert "// two sums" in skill.examples[0].kernel
    (told,) = learn(home, capsys)
    assert told["version"] == 2
    assert "learnt_loss_cpp" in [one.name for one in shelf.in_use("cpp")]
    assert run(["skills", "disable", "learnt_loss_cpp", "--json"]) == 0
    assert "learnt_loss_cpp" not in [one.name for one in shelf.in_use("cpp")]
    assert run(["skills", "enable", "cpp/learnt_loss_cpp", "--json"]) == 0
    assert "learnt_loss_cpp" in [one.name for one in shelf.in_use("cpp")]


def test_what_the_judge_rejects_is_not_kept(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store.open(home / "store") as store:
        finished(store, best=ZEROS)
    (told,) = learn(home, capsys)
    assert told["accepted"] is False
    assert not (shelf.own_folder() / "learnt_loss_cpp.md").exists()


def test_a_users_skill_replaces_ours_and_is_compared_with_it(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours = shelf.find("cpp/softmax").path
    (home / "pack").mkdir()
    (home / "pack" / "softmax.md").write_text(ours.read_text() + "\n- One more thing.\n")
    assert run(["skills", "install", str(home / "pack"), "--json"]) == 0
    capsys.readouterr()
    assert shelf.find("cpp/softmax").origin == "yours"
    assert run(["skills", "diff", "cpp/softmax"]) == 0
    assert "+- One more thing." in capsys.readouterr().out
    assert run(["skills", "list", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["skills"]) > 20
    assert run(["skills", "show", "no such thing", "--json"]) == 2
