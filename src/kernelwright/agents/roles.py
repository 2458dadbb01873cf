"""The LLM minds of Designer, Coder and adviser: what each is asked. In: the brief, the state of the run, what knowledge offers.
Out: an `Ask`, rendered from a prompt file. Nothing is called here, and nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kernelwright import sketch as sketch_room
from kernelwright.agents import distil
from kernelwright.agents.brief import Brief
from kernelwright.agents.knowledge.lessons import Recalled
from kernelwright.agents.knowledge.skills import Chosen, Example
from kernelwright.agents.models.ask import Ask, Form
from kernelwright.agents.prompts import fence, numbered, render
from kernelwright.run.attempts import Attempt

MAX_TOKENS = 16_384
ADVICE_TOKENS = 512
TITLES = {
    "cpp": "C++ (g++, OpenMP, SIMD; a C ABI called by ctypes)",
    "triton": "Triton",
    "tilelang": "TileLang",
    "cuda_c": "CUDA C++",
}
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


def design(brief: Brief, library: Library, seed: Attempt | None, best: Attempt | None, attempts: str) -> Ask:
    """A new design."""
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
            seed=_existing(seed, best),
            attempts=attempts,
            skills="\n\n".join([library.skill_text, *library.lesson_text("sketch")]),
            sketch_language=sketch_language(),
        ),
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
    return _patch(brief, library, last, "Repair", situation, found, "the mistake is")


def improve(brief: Brief, library: Library, last: Attempt, bounds: str) -> Ask:
    """A correct kernel, to be made faster."""
    found = fence("\n".join([distil.speed(last.verdict), bounds]).strip(), "The verdict")
    situation = "The judge accepts this kernel. Make it faster without changing what it computes."
    return _patch(brief, library, last, "Speed up", situation, found, "bounds its speed, and what you change")


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
            design=_design(last.sketch, last.sketch_right),
            kernel=fence(last.kernel.source, "The kernel file", "python"),
            verdict=found,
            skills=library.skill_text,
            examples=library.example_text,
        ),
    )


def advice(brief: Brief, best: Attempt | None, last: Attempt) -> Ask:
    """Where the Conductor's table says unclear."""
    return _ask(
        brief,
        "conductor",
        "advice",
        render(
            "advice",
            task=brief.source,
            facts=brief.facts_text,
            best=_existing(None, best),
            design=_design(last.sketch, last.sketch_right),
            verdict=fence(distil.speed(last.verdict), "Its verdict"),
        ),
        ADVICE_TOKENS,
    )


def again(ask: Ask, reason: str) -> Ask:
    """The same question after an answer that could not be used, with the reason."""
    user = f"{ask.user}\n## Your last answer could not be used\n\n{reason}\n"
    return Ask(ask.role, ask.system, user, ask.form, ask.attempt, ask.max_tokens, ask.temperature)


def read_advice(text: str) -> str:
    """The advised word; anything else counts as redesign, which is what the table does without advice."""
    word = text.strip().lstrip("`*# ").split(":")[0].strip("`* \n").lower()
    return word if word in ("improve", "redesign", "stop") else "redesign"


def _patch(brief: Brief, library: Library, last: Attempt, purpose: str, situation: str, found: str, explain: str) -> Ask:
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
            design=_design(last.sketch, last.sketch_right),
            kernel=fence(last.kernel.source, "The kernel file", "python"),
            verdict=found,
            skills=library.skill_text,
            fixes="\n\n".join(library.lesson_text("fix")),
            explain=explain,
            again="",
        ),
    )


def _ask(brief: Brief, role: str, form: Form, user: str, max_tokens: int = MAX_TOKENS) -> Ask:
    system = render("system", role=role.capitalize(), language=_title(brief), hardware=brief.hardware)
    return Ask(role, system, user, form, max_tokens=max_tokens)


def _title(brief: Brief) -> str:
    return TITLES.get(brief.dsl, brief.dsl)


def _design(sketch: str, right: bool | None) -> str:
    if not sketch:
        return "No sketch of this task has worked: work from the reference itself."
    known = (
        "which was run against the reference and is right" if right else "which checks, but was not run against the reference"
    )
    return fence(sketch, f"The sketch, {known}", "python")


def _existing(seed: Attempt | None, best: Attempt | None) -> str:
    """The built-in design, and the best one if it is another."""
    parts = []
    for label, one in (("The built-in design", seed), ("The best design so far", best)):
        if one is None or (one is seed and label != "The built-in design") or not one.sketch:
            continue
        fared = distil.speed(one.verdict) if one.verdict.ok else distil.failure(one.verdict, one.kernel.source)
        parts.append(fence(one.sketch, label, "python") + "\n\n" + fence(fared, "What the judge said of its kernel"))
    return "\n\n".join(parts) or "The built-in mind has no kernel for this task, and none has been accepted yet."
