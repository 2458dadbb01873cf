"""What a role is given to read: skills, worked examples and lessons for one ask, chosen once and journalled.

In: the brief and the stage. Out: a `Library`. With knowledge switched off, lessons are neither read nor written: so a run can be
measured with and without them (skills stay: they are part of the product, not of its memory).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kernelwright.agents.brief import Brief
from kernelwright.agents.knowledge import lessons, shelf, skills
from kernelwright.agents.knowledge.skills import Stage
from kernelwright.agents.roles import Library
from kernelwright.run.attempts import Attempt
from kernelwright.run.workbench import Workbench

if TYPE_CHECKING:
    from kernelwright.run.journal import Journal
    from kernelwright.store import Store

EXAMPLES = 2
LESSONS: dict[str, tuple[tuple[lessons.LessonKind, int], ...]] = {
    "design": (("sketch", 2),),
    "code": (("kernel", 1),),
    "patch": (("fix", 2),),
    "improve": (),
    "search": (("kernel", 2),),
}
"""For each stage, which lessons are shown, and how many."""


@dataclass
class Librarian:
    """Chooses for one run. `store` is None where there is no memory; `learning` is the switch."""

    bench: Workbench
    journal: Journal
    store: Store | None = None
    learning: bool = True
    _skills: list[skills.Skill] | None = None
    _told: set[str] = field(default_factory=set)

    def library(self, brief: Brief, stage: Stage, words: str = "") -> Library:
        """What to show for one ask; the choice goes into the journal the first time that it is made."""
        known = self.skills(brief)
        query = words or brief.words
        families = (*brief.families, brief.target.kind)
        chosen = skills.choose(known, language=brief.dsl, families=families, stage=stage, words=query)
        wanted = skills.choose(known, language=brief.dsl, families=families, stage="code", words=brief.words, limit=1 << 30)
        examples = skills.nearest_examples(wanted, brief.words, EXAMPLES) if stage == "code" else []
        recalled = self._lessons(brief, stage, query)
        if stage not in self._told:
            self._told.add(stage)
            shown = [f"{one.skill.name} ({one.reason})" for one in chosen]
            more = [f"example of {one.skill}" for one in examples] + [f"{one.kind}: {one.reason}" for one in recalled]
            self.journal.step(
                "choose", f"what the team reads to {stage}", families=list(brief.families), skills=shown, more=more
            )
        return Library(chosen, examples, recalled)

    def skills(self, brief: Brief) -> list[skills.Skill]:
        """All skills of the language and of the targets."""
        if self._skills is None:
            self._skills = shelf.in_use(brief.dsl)
        return self._skills

    def search(self, brief: Brief, words: str) -> list[lessons.Recalled]:
        """Kernels of earlier runs of this family, for a model that looks for itself."""
        return self._lessons(brief, "search", words)

    def learn_win(self, brief: Brief, attempt: Attempt) -> None:
        """A kernel that beat what was there."""
        if self.store is not None and self.learning:
            timing = attempt.verdict.timing
            lessons.keep_win(
                self.store,
                families=brief.families,
                dsl=brief.dsl,
                target=brief.target.name,
                task=brief.task.name,
                words=brief.words,
                sketch=attempt.sketch,
                kernel=attempt.kernel.source,
                speedup=timing.speedup if timing else None,
                by_hand=attempt.by_hand,
            )

    def learn_fix(self, brief: Brief, failure: str, patch: str) -> None:
        """A failure and what removed it."""
        if self.store is not None and self.learning:
            lessons.keep_fix(
                self.store, families=brief.families, dsl=brief.dsl, target=brief.target.name, failure=failure, patch=patch
            )

    def _lessons(self, brief: Brief, stage: str, words: str) -> list[lessons.Recalled]:
        if self.store is None or not self.learning:
            return []
        store = self.store

        def look() -> dict[str, Any]:
            found = [
                one.as_json()
                for kind, count in LESSONS[stage]
                for one in lessons.recall(
                    store, kind, words=words, families=brief.families, dsl=brief.dsl, target=brief.target.name, limit=count
                )
            ]
            return {"lessons": found}

        kept = self.bench.finding("lessons", {"stage": stage, "words": words}, look)
        return [lessons.Recalled(**one) for one in kept["lessons"]]
