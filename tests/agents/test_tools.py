"""A model that calls tools before it answers, beside one that does not: both go the same way, and every call is a step of the run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from material import BROKEN, CHEAT, KERNEL, MISDESIGNED, SKETCH, block
from scripted import Calls, Script, serving
from test_team import CODE, DESIGN, Stage, drafter, judge, kinds, stage

from kernelwright.agents.models import Limits

__all__ = ["drafter", "judge", "stage"]

pytest.importorskip("pydantic_ai", reason="the extra llm is not installed")


def calls(*wanted: tuple[str, dict[str, str]]) -> Calls:
    return Calls(wanted)


def test_a_designer_that_looks_first_needs_one_answer_where_another_needs_two(stage: Stage) -> None:
    with serving([block(MISDESIGNED), block(SKETCH)]) as plain:
        _, without = stage.run(plain)
    looking = [calls(("run_sketch", {"sketch": MISDESIGNED})), calls(("run_sketch", {"sketch": SKETCH})), block(SKETCH)]
    with serving(looking) as script:
        result, record = stage.run(script)
    assert result.verdict.ok
    assert [kind for kind in kinds(without) if "design" in kind] == ["design", "repair_design"]
    assert [kind for kind in kinds(record) if "design" in kind] == ["design"]
    assert [kind for kind in kinds(record) if kind == "tools"] == ["tools", "tools"]
    assert script.offered[0] == ["check_sketch", "run_sketch", "read_skill", "search_kernels"], "nothing is timed in this job"
    assert "the sketch is misdesigned" in script.asks[1]
    assert "expected" in script.asks[1]
    assert "agrees with the reference; the rules lower it" in script.asks[2]
    steps = [step for step in record.steps if step.kind == "tools"]
    assert all(step.facts["tokens_out"] >= 0 and step.result for step in steps)
    assert "run_sketch" in steps[0].reason


def test_a_coder_builds_and_runs_before_it_answers_and_a_resumed_run_does_nothing_twice(stage: Stage) -> None:
    answers = [
        calls(("build_and_run", {"kernel": BROKEN}), ("read_skill", {"name": ""})),
        calls(("build_and_run", {"kernel": KERNEL})),
        block(KERNEL),
    ]
    with serving(answers) as script:
        result, record = stage.run(script, effort=CODE)
        asked = len(script.asks)
        again, _ = stage.run(script, effort=CODE, resume=record.id)
        assert len(script.asks) == asked
    assert result.verdict.ok
    assert again.draft.kernel == result.draft.kernel
    assert "was not declared" in script.asks[1]
    assert "right in" in script.asks[2]
    assert result.tried == 1, "what a tool found is no verdict of the run"


def test_tools_are_recorded_and_replayed(stage: Stage, tmp_path: Path) -> None:
    file = tmp_path / "conversation.jsonl"
    with serving([calls(("check_sketch", {"sketch": SKETCH})), block(SKETCH)]) as script:
        first, _ = stage.run(script, record=file)
    replayed, record = stage.run(Script([]), replay=file)
    assert replayed.draft.kernel == first.draft.kernel
    assert "tools" in kinds(record)


def test_calls_that_make_no_sense_are_answered_and_those_without_end_are_not(stage: Stage) -> None:
    effort = replace(DESIGN, tool_calls=2)
    wild = calls(("delete_everything", {}), ("check_sketch", {"wrong": "x"}), ("check_sketch", {"sketch": "("}))
    with serving([wild, wild, wild, block(SKETCH)]) as script:
        result, record = stage.run(script, effort=effort)
    assert result.verdict.ok
    assert "there is no tool 'delete_everything'" in script.asks[1]
    assert "check_sketch needs sketch" in script.asks[1]
    assert "not done: nothing more may be spent" in script.asks[1]
    assert [step.facts.get("status") for step in record.steps if step.kind == "design"] == ["unreadable", "right"]


def test_a_tool_accepts_no_cheat_and_knows_no_expected_values(stage: Stage) -> None:
    with serving([calls(("build_and_run", {"kernel": CHEAT})), block(KERNEL)]) as script:
        result, _ = stage.run(script, effort=CODE)
    assert result.verdict.ok
    assert "cheating" in script.asks[1]


def test_whoever_wants_no_tools_switches_them_off(stage: Stage) -> None:
    with serving([block(SKETCH)]) as script:
        stage.run(script, limits=Limits(retries=0, timeout_s=60, tools=False))
    assert script.offered == [[]]


def test_a_coder_races_its_kernel_against_the_best_before_it_answers(stage: Stage) -> None:
    looking = calls(("time_against_best", {"kernel": KERNEL}), ("profile", {"kernel": KERNEL}))
    with serving([block(SKETCH), looking, block(KERNEL), "no better design: none"]) as script:
        stage.run(script, timing=True, effort=replace(DESIGN, improvements=1, renewals=0))
    assert "it is correct and" in script.asks[2]
    assert "as fast as the best" in script.asks[2]
    assert "GCC vectorised" in script.asks[2]
