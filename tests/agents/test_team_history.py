"""What the team makes of its own history: failed improvements are repaired and told, bad answers lead to other questions, a kernel by hand
carries no sketch. Speeds are scripted here (a test asserts no time): the judge is real, what it measured is replaced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from material import KERNEL, MALFORMED, SKETCH, TASK, block
from scripted import Script, serving
from test_team import CODE, DESIGN, Stage, drafter, judge, kinds, stage

from kernelwright.core.effort import PRESETS, Effort
from kernelwright.core.kernel import Kernel
from kernelwright.core.verdict import Status, Timing, Verdict
from kernelwright.run.attempts import Attempt
from kernelwright.run.proof import check_text
from kernelwright.run.workbench import Workbench

__all__ = ["drafter", "judge", "stage"]

pytest.importorskip("pydantic_ai", reason="the extra llm is not installed")

IMPROVE = replace(PRESETS["quick"], drafts=1, measured=1, judge_seconds=0.5, designs=2, repairs=1, patches=1, improvements=2)
CARRYING = KERNEL + "\n\nSKETCH = r'''\n" + SKETCH + "'''\n"


def patched(number: int, wrong: bool = False) -> str:
    """A kernel that is marked with a number; a wrong one does not compile."""
    line = "    double total = 0.0;"
    fault = "    this does not compile\n" if wrong else ""
    return block(KERNEL.replace(line, f"    // idea {number}\n{fault}{line}"), f"Idea {number}.")


@pytest.fixture
def speeds(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Gives correct kernels the speed of the highest idea that they carry; the judge's own verdict otherwise."""
    told: dict[str, float] = {}
    real = Workbench.judged

    def judged(self: Workbench, kernel: Kernel) -> Verdict:
        verdict = real(self, kernel)
        if not verdict.ok:
            return verdict
        speed = next((told[mark] for mark in reversed(told) if mark in kernel.source), 1.0)
        timing = Timing(
            kernel_ms=1.0, eager_ms=speed, compile_ms=None, speedup=speed, speedup_low=speed, speedup_high=speed, roofline_ms=0.1,
            roofline_fraction=0.1, noise=0.01, rounds=7, threads=2,
        )  # fmt: skip
        return verdict.model_copy(update={"timing": timing})

    monkeypatch.setattr(Workbench, "judged", judged)
    return lambda **speed: told.update({mark.replace("_", " "): value for mark, value in speed.items()})


def run(stage: Stage, script: Script, effort: Effort) -> list[str]:
    _, record = stage.run(script, TASK, effort)
    return [kind for kind in kinds(record) if kind not in ("choose", "judged", "start", "seed")]


@pytest.mark.slow
def test_a_failed_improvement_is_repaired_and_mentioned_and_a_gain_renews_what_may_be_tried(
    stage: Stage, speeds: Callable[..., None]
) -> None:
    """The Coder's second idea does not compile and its patch neither; the third is told of it; the fourth, a gain, is gone on from."""
    speeds(idea_1=3.0, idea_3=2.5, idea_4=6.0, idea_5=5.0, idea_6=5.0)
    answers = [
        block(SKETCH), patched(1), patched(2, wrong=True), patched(7, wrong=True), patched(3), "no better design: it streams",
    ]  # fmt: skip
    with serving(answers) as script:
        steps = run(stage, script, IMPROVE)
    assert steps == ["design", "improve", "improve", "patch", "improve", "design", "stop", "final"]
    assert "idea 1" not in script.asks[1]
    repair, third, declined = script.asks[3], script.asks[4], script.asks[5]
    assert "The judge rejected this kernel" in repair
    assert "this does not compile" in repair
    assert "An Example" not in repair
    assert "memory bandwidth" in repair, "the Coder has the sheet of the hardware"
    assert "Idea 2." in third, "the failed attempt is told to the next one"
    assert "build_failed" in third
    assert "written by hand by the Coder from design 1, whose own lowering reaches 1.00x eager" in declined
    assert "3.00x eager" in declined


def test_a_coders_kernel_carries_no_sketch_and_no_prompt_shows_it_twice(stage: Stage, speeds: Callable[..., None]) -> None:
    speeds(idea_1=3.0)
    with serving([block(SKETCH), patched(1), block(CARRYING), "no better design: none"]) as script:
        _, record = stage.run(script, TASK, IMPROVE)
    assert "SKETCH = " not in script.asks[1], "the lowered file carries its sketch, the prompt does not show it"
    assert script.asks[1].count("def add_up():") == 1
    written = [step for step in record.steps if step.facts.get("author") == "coder"]
    assert len(written) >= 2
    for step in written:
        assert b"SKETCH" not in (stage.store.get(step.inputs["kernel"]) or b"SKETCH")


def test_the_sketch_beside_a_kernel_by_hand_says_that_the_code_has_left_it() -> None:
    kernel = Kernel.from_source(KERNEL, dsl="cpp")
    verdict = Verdict(status=Status.correct, reason="right")
    by_hand = Attempt(1, 1, "coder", SKETCH, kernel, verdict)
    assert by_hand.design_text.startswith("# The kernel was written by hand")
    assert check_text(by_hand.design_text) == ()
    assert Attempt(1, 1, "rules", SKETCH, kernel, verdict).design_text == SKETCH


def test_answers_that_cannot_be_used_lead_to_other_questions(stage: Stage) -> None:
    """The same bad answer three times: each question is another one, tells of it, and is not answered from memory."""
    bad = "```python\nreturns('y')"
    with serving([bad, bad, bad, block(KERNEL)]) as script:
        result, record = stage.run(script, effort=DESIGN)
    assert result.verdict.ok
    assert len(set(script.asks)) == len(script.asks) == 4
    assert "cut off" in script.asks[1]
    assert "Your last answer, data:" in script.asks[1]
    assert "This is the second time in a row" in script.asks[2]
    assert [step.kind for step in record.steps if step.facts.get("status") == "unreadable"] == ["design"] * 3
    assert "no answer of the Designer can be used" in next(step.reason for step in record.steps if step.kind == "code")
    assert not any(step.facts.get("recalled") for step in record.steps)


def test_a_patch_that_fits_nowhere_is_shown_the_nearest_lines(stage: Stage) -> None:
    broken = KERNEL.replace("double total = 0.0;", "double totl = 0.0;")
    off = "<<<<<<< SEARCH\n    double total = 0;\n=======\n    double total = 0.0;\n>>>>>>> REPLACE\n"
    fixed = "<<<<<<< SEARCH\n    double totl = 0.0;\n=======\n    double total = 0.0;\n>>>>>>> REPLACE\n"
    with serving([block(broken), off, fixed]) as script:
        result, _ = stage.run(script, effort=CODE)
    assert result.verdict.ok
    assert "does not occur in the file; the nearest lines are" in script.asks[2]
    assert script.asks[2].count("double totl = 0.0;") > script.asks[1].count("double totl = 0.0;")
    assert off.splitlines()[1] in script.asks[2], "the previous answer is shown"


def test_a_run_says_what_it_does_while_it_does_it(stage: Stage, tmp_path: Path) -> None:
    notes: list[str] = []
    stage.observer = replace(stage.observer, note=notes.append)
    with serving([block(SKETCH)]) as script:
        stage.run(script)
    assert notes[0].startswith("seed: ")
    assert any(line.startswith("design: ") for line in notes)
    assert any("correct: right in" in line for line in notes)
    assert notes[-1].startswith("stop: ")


def test_several_designs_are_asked_for_at_once_and_the_best_is_gone_on_from(stage: Stage, speeds: Callable[..., None]) -> None:
    def answer(prompt: str) -> str:
        if "fewest bytes" in prompt:
            return block(MALFORMED)
        if "another algorithm" in prompt:
            return "no better design: there is one algorithm"
        return block(SKETCH)

    effort = replace(IMPROVE, designs=3, designs_abreast=3, improvements=0)
    with serving([answer]) as script:
        result, record = stage.run(script, TASK, effort)
    assert result.verdict.ok
    assert [("asked for at the same time" in ask) for ask in script.asks] == [True, True, True, False], "one of three was none"
    designs = [(step.facts["status"], step.facts["design"]) for step in record.steps if step.kind == "design"]
    assert sorted(status for status, _ in designs[:3]) == ["declined", "malformed", "right"]
    assert [number for _, number in designs[:3]] == [1, 2, 3]
