"""The conversation that docs/agents.md shows: its answers, given again in the same order, lead the team the same way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scripted import serving

from kernelwright.cli.main import run

pytest.importorskip("pydantic_ai", reason="the extra llm is not installed")

FOLDER = Path(__file__).parents[2] / "docs" / "transcript"


def test_the_recorded_answers_lead_to_a_correct_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    lines = [json.loads(line) for line in (FOLDER / "conversation.jsonl").read_text().splitlines()]
    assert [line["ask"]["role"] for line in lines] == ["designer", "designer", "coder"]
    with serving([line["answer"]["text"] for line in lines]) as script:
        flags = ["--model", script.url, "--no-compile", "--out", str(tmp_path / "out"), "--json"]
        assert run(["generate", str(FOLDER / "clip_norm.py"), *flags]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"]["status"] == "correct"
    steps = [json.loads(line)["step"] for line in (tmp_path / "out" / "journal.jsonl").read_text().splitlines()]
    designed = ["start", "seed", "choose", "design", "repair_design", "judged"]
    assert steps[: len(designed)] == designed
    # A machine whose caches hold the task may come near the roofline at once: then the Coder is not asked any more. Where its change is a
    # gain it is asked to go on, and the script has nothing new to say.
    rest = steps[len(designed) :]
    assert rest[-1] == "done"
    assert rest[0] in ("stop", "choose")
    assert ("improve" in rest) == (len(script.asks) > 2)
