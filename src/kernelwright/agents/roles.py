"""The LLM minds of Designer, Coder and adviser: what each is asked. In: the brief, the state of the run, what knowledge offers.
Out: an `Ask`, rendered from a prompt file. Nothing is called here, and nothing is decided here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from kernelwright import sketch as sketch_room
from kernelwright.agents import distil, showing
from kernelwright.agents.brief import Brief
from kernelwright.agents.excerpt import shown_kernel
from kernelwright.agents.knowledge.lessons import Recalled
from kernelwright.agents.knowledge.skills import Chosen, Example
from kernelwright.agents.models.ask import Ask, Form
from kernelwright.agents.prompts import fence, numbered, render
from kernelwright.compiler.language import language
from kernelwright.run.attempts import Attempt

MAX_TOKENS = 16_384
ADVICE_TOKENS = 512
END = 1500
"""Characters of the beginning and of the end of an answer that could not be used, as it is shown to its author."""
ORDINALS = {2: "second", 3: "third"}
PLAINLY: dict[Form, str] = {
    "sketch": "Write nothing but one block that begins with a line ```python, holds the whole sketch, and ends with a line ```.",
    "kernel": "Write nothing but one block that begins with a line ```python, holds the whole kernel file with its class ModelNew, "
    "and ends with a line ```.",
    "patch": "Write nothing but the whole new kernel file in one block that begins with a line ```python and ends with a line ```.",
    "task": "Write nothing but one block that begins with a line ```python, holds the whole task file, and ends with a line ```.",
    "advice": "Write one word.",
}
"""The form of an answer in the fewest words, for whom the longer ones did not help."""
APPROACHES = (
    "the one that you expect to be fastest.",
    "the one that moves the fewest bytes, whatever that costs in arithmetic.",
    "another algorithm than the reference's, with fewer operations or fewer dependent steps.",
)
TEMPERATURES: tuple[float | None, ...] = (None, 0.7, 1.0)
"""Of designs that are asked for at once; None is what the model's maker chose."""
LANGUAGE_REFERENCE = Path(sketch_room.__file__).with_name("language.md")


@dataclass(frozen=True)
class Library:
    """What knowledge chose for one ask."""

    skills: Sequence[Chosen] = ()
    examples: Sequence[Example] = ()
    lessons: Sequence[Recalled] = ()

    @property
    def skill_text(self) -> str:
        return "\n\n".join(f"### {one.skill.title}\n\n{one.skill.text.strip()}" for one in self.skills)

    @property
    def example_text(self) -> str:
        worked = [
            fence(one.task, "A task", "python") + "\n\n" + fence(one.kernel, "A kernel that the judge accepts", "python")
            for one in self.examples
        ]
        return "\n\n".join([*worked, *self.lesson_text("kernel")])

    def lesson_text(self, kind: str) -> list[str]:
        return [fence(one.text, f"From an earlier run ({one.reason})") for one in self.lessons if one.kind == kind]


@cache
def sketch_language() -> str:
    """The reference of the Sketch language, as shipped."""
    return LANGUAGE_REFERENCE.read_text()


def design(
    brief: Brief,
    library: Library,
    seed: Attempt | None,
    best: Attempt | None,
    tried: Sequence[Attempt] = (),
    approach: str = "",
) -> Ask:
    """A new design. `approach` tells apart those that are asked for at the same time."""
    return _ask(
        brief,
        "designer",
        "sketch",
        render(
            "designer",
            track=brief.track,
            task=brief.source,
            facts=brief.facts_text,
            target=brief.sheet,
            pytorch=brief.pytorch_text,
            seed=showing.exists(seed, best, tried),
            attempts=showing.worth_showing(tried, best),
            skills="\n\n".join([library.skill_text, *library.lesson_text("sketch")]),
            sketch_language=sketch_language(),
            approach=approach,
        ),
    )


def approach(number: int, count: int) -> str:
    """What tells one of several designs that are asked for at once from the others."""
    return (
        f"- This is one of {count} designs that are asked for at the same time. Yours: {APPROACHES[number % len(APPROACHES)]}"
    )


def repair_design(brief: Brief, sketch: str, complaint: str, faults: Sequence[str]) -> Ask:
    """A design that does not check or computes something else."""
    return _ask(
        brief,
        "designer",
        "sketch",
        render(
            "designer-repair",
            track=brief.track,
            complaint=complaint,
            task=brief.source,
            facts=brief.facts_text,
            sketch=fence(numbered(sketch), "The sketch"),
            faults=fence("\n".join(faults), "The faults"),
            sketch_language=sketch_language(),
        ),
    )


def code(brief: Brief, library: Library, sketch: str, right: bool | None) -> Ask:
    """A kernel from a design, or from the task itself where no design worked."""
    return _ask(
        brief,
        "coder",
        "kernel",
        render(
            "coder",
            language=_title(brief),
            track=brief.track,
            task=brief.source,
            facts=brief.facts_text,
            design=_design(sketch, right),
            target=brief.sheet,
            skills=library.skill_text,
            examples=library.example_text,
        ),
    )


def patch(brief: Brief, library: Library, last: Attempt, seen: str = "") -> Ask:
    """Repairs of a kernel that was rejected; `seen` are the sketch's own values at the first element that differs."""
    situation = "The judge rejected this kernel."
    if last.sketch_right and last.verdict.mismatch is not None:
        situation = "The judge rejected this kernel. Its design is right (it was run against the reference): the mistake is in the code."
    found = fence(distil.failure(last.verdict, last.kernel.source), "The verdict")
    if seen:
        found += "\n\n" + fence(seen, "What the sketch computes there, on other inputs of the task")
    return _patch(brief, library, last, "Repair", situation, found, "the mistake is", pointed=lines(found))


def improve(brief: Brief, library: Library, last: Attempt, bounds: str, tried: Sequence[Attempt] = ()) -> Ask:
    """A correct kernel, to be made faster; `tried` is what failed on it."""
    found = fence("\n".join([distil.speed(last.verdict, last.kernel.source), bounds]).strip(), "The verdict")
    situation = "The judge accepts this kernel. Make it faster without changing what it computes."
    explain = "bounds its speed, and what you change"
    return _patch(
        brief, library, last, "Speed up", situation, found, explain, showing.tried_on(tried, last.kernel.source), lines(bounds)
    )


def rewrite(brief: Brief, library: Library, failed: Sequence[Attempt]) -> Ask:
    """A kernel that patches did not save. The one who cheated is told so plainly."""
    last = failed[-1]
    situation = "Patches did not make this kernel right."
    if last.verdict.status == "cheating":
        situation = (
            "The judge rejected this kernel as cheating: it does not do the work it was asked to do. Write one that computes everything "
            "itself at every call, from the inputs it is given. A second kernel of that kind ends this line of work."
        )
    found = "\n\n".join(
        fence(distil.failure(a.verdict, a.kernel.source), f"Verdict {n}") for n, a in enumerate(failed[-3:], start=1)
    )
    return _ask(
        brief,
        "coder",
        "kernel",
        render(
            "coder-rewrite",
            situation=situation,
            track=brief.track,
            task=brief.source,
            facts=brief.facts_text,
            design=_design_of(last),
            target=brief.sheet,
            kernel=fence(shown_kernel(last.kernel.source), "The kernel file", "python"),
            verdict=found,
            skills=library.skill_text,
            examples=library.example_text,
        ),
    )


def advice(brief: Brief, best: Attempt | None, last: Attempt, tried: Sequence[Attempt], turns: Sequence[str]) -> Ask:
    """Where the Conductor's table says unclear: the adviser sees the whole history, a line for each turn."""
    return _ask(
        brief,
        "conductor",
        "advice",
        render(
            "advice",
            task=brief.source,
            facts=brief.facts_text,
            history=fence("\n".join(f"{number}. {turn}" for number, turn in enumerate(turns, start=1)), "What was done"),
            best=showing.exists(None, best, tried),
            design=_design_of(last),
            verdict=fence(distil.speed(last.verdict, last.kernel.source), "Its verdict"),
        ),
        ADVICE_TOKENS,
    )


def again(ask: Ask, reason: str, before: str = "", times: int = 1) -> Ask:
    """The same question after an answer that could not be used, with the reason and that answer; the second time in other words, and
    always as a new question, so that no memory answers it with what could not be used."""
    parts = [f"{ask.user}\n## Your last answer could not be used\n\n{reason}"]
    if before:
        parts.append(fence(_ends(before), "Your last answer"))
    if times > 1:
        parts.append(f"This is the {ORDINALS.get(times, 'next')} time in a row. {PLAINLY[ask.form]}")
    return replace(ask, user="\n\n".join(parts) + "\n", attempt=ask.attempt + times)


def read_advice(text: str) -> str:
    """The advised word; anything else counts as redesign, which is what the table does without advice."""
    word = text.strip().lstrip("`*# ").split(":")[0].strip("`* \n").lower()
    return word if word in ("improve", "best", "redesign", "stop") else "redesign"


def lines(told: str) -> tuple[int, ...]:
    """The lines of the native source that a text points at."""
    return tuple(
        int(number) for number in re.findall(r"\bline (\d+)\b|\.(?:cpp|cu):(\d+)", told) for number in number if number
    )


def _patch(
    brief: Brief,
    library: Library,
    last: Attempt,
    purpose: str,
    situation: str,
    found: str,
    explain: str,
    tried: str = "",
    pointed: tuple[int, ...] = (),
) -> Ask:
    return _ask(
        brief,
        "coder",
        "patch",
        render(
            "coder-patch",
            purpose=purpose,
            situation=situation,
            track=brief.track,
            task=brief.source,
            facts=brief.facts_text,
            target=brief.sheet,
            design=_design_of(last),
            kernel=fence(shown_kernel(last.kernel.source, pointed), "The kernel file", "python"),
            verdict=found,
            tried=tried,
            skills=library.skill_text,
            fixes="\n\n".join(library.lesson_text("fix")),
            explain=explain,
        ),
    )


def _ends(text: str) -> str:
    """The beginning and the end of a long answer."""
    return text if len(text) <= 2 * END else f"{text[:END]}\n… ({len(text) - 2 * END:,} characters left out) …\n{text[-END:]}"


def _ask(brief: Brief, role: str, form: Form, user: str, max_tokens: int = MAX_TOKENS) -> Ask:
    system = render("system", role=role.capitalize(), language=_title(brief), hardware=brief.hardware)
    return Ask(role, system, user, form, max_tokens=max_tokens)


def _title(brief: Brief) -> str:
    return language(brief.dsl).title or brief.dsl


def _design(sketch: str, right: bool | None) -> str:
    if not sketch:
        return "No sketch of this task has worked: work from the reference itself."
    known = (
        "which was run against the reference and is right" if right else "which checks, but was not run against the reference"
    )
    return fence(sketch, f"The sketch, {known}", "python")


def _design_of(attempt: Attempt) -> str:
    """The sketch beside a kernel: the kernel's own where rules made it, where it began where a Coder did."""
    if attempt.sketch and attempt.by_hand and attempt.base:
        return "The kernel was changed by hand since it was lowered from a sketch; the code below says what it does now."
    return _design(attempt.sketch, attempt.sketch_right)
