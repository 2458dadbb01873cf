"""What finished runs teach, by rule: changes of a kernel that made it faster, failures and what removed them. In: run records with their
texts. Out: `Proposal`s, one for each family and language: a skill file with version and provenance.

Nothing is kept here. A proposal whose worked example the judge does not accept is none (`kernelwright learn` asks the judge).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kernelwright.agents.knowledge.families import COMMON
from kernelwright.agents.knowledge.skills import Example
from kernelwright.store import RunRecord, Step

WORTH = 1.05
"""A change must have made a kernel this much faster to be worth telling."""
GAINS, FIXES, LINES, LONGEST = 4, 4, 24, 9_000
Text = Callable[[str], str]


@dataclass
class Proposal:
    """A skill that finished runs speak for."""

    family: str
    dsl: str
    gains: list[tuple[float, str, str]] = field(default_factory=list)
    fixes: list[tuple[str, str]] = field(default_factory=list)
    example: Example | None = None
    speed: float = 0.0
    runs: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"learnt_{self.family}_{self.dsl}"

    def text(self, version: int) -> str:
        """The skill file."""
        lines = [
            "---",
            f"language: {self.dsl}",
            f"families: {self.family}",
            "stages: code, patch, improve",
            f"title: What earlier runs of this family have learnt ({self.family})",
            f"version: {version}",
            f"provenance: {' '.join(self.runs)}",
            "---",
            "",
        ]
        for gain, task, change in sorted(self.gains, reverse=True)[:GAINS]:
            lines += [f"Made a kernel for {task} {gain:.2f}x as fast:", "", "~~~diff", change, "~~~", ""]
        for error, change in self.fixes[:FIXES]:
            lines += [f"Failure: {error}", "", "~~~diff", change, "~~~", ""]
        if self.example is not None:
            lines += [
                f"## Worked example ({self.speed:.2f}x eager)",
                "",
                "```python task",
                self.example.task.strip(),
                "```",
                "",
            ]
            lines += ["```python kernel", self.example.kernel.strip(), "```", ""]
        return "\n".join(lines)


def propose(records: Iterable[RunRecord], text: Text) -> list[Proposal]:
    """The proposals of some runs; `text` is the content of a hash, "" where it is gone."""
    found: dict[tuple[str, str], Proposal] = {}
    for record in records:
        family = _family(record)
        dsl = str(record.job.get("dsl") or "")
        if record.status != "done" or not family or not dsl:
            continue
        one = found.setdefault((family, dsl), Proposal(family, dsl))
        if _learn(one, record, text):
            one.runs.append(record.id)
    return [one for one in found.values() if one.runs]


def _learn(one: Proposal, record: RunRecord, text: Text) -> bool:
    """Whether a run had something to teach."""
    known = len(one.gains) + len(one.fixes), one.speed
    task = str(record.job.get("task") or "")
    source = next((text(step.inputs["task"]) for step in record.steps if step.kind == "start" and "task" in step.inputs), "")
    verdicts: dict[str, Step] = {}
    written: Step | None = None
    for step in record.steps:
        if step.kind in ("patch", "improve", "improve_best") and step.result and "kernel" in step.inputs:
            written = step
        elif step.kind == "judged" and "kernel" in step.inputs:
            verdicts[step.inputs["kernel"]] = step
            if written is not None and written.result == step.inputs["kernel"]:
                _compare(one, task, verdicts.get(written.inputs["kernel"]), step, _change(text, written))
            _exemplify(one, source, step, text)
    return (len(one.gains) + len(one.fixes), one.speed) != known


def _compare(one: Proposal, task: str, before: Step | None, after: Step, change: str) -> None:
    if before is None or not change or after.facts.get("status") != "correct":
        return
    if before.facts.get("status") != "correct":
        one.fixes.append((before.reason[:300], change))
        return
    slow, fast = before.facts.get("speedup"), after.facts.get("speedup")
    if slow and fast and fast / slow >= WORTH:
        one.gains.append((fast / slow, task, change))


def _exemplify(one: Proposal, task: str, step: Step, text: Text) -> None:
    """The fastest kernel of a Coder that is short enough to be shown."""
    speed = float(step.facts.get("speedup") or 0.0)
    if step.facts.get("author") != "coder" or step.facts.get("status") != "correct" or speed <= max(1.0, one.speed):
        return
    kernel = text(step.inputs["kernel"])
    if task and kernel and len(kernel) + len(task) <= LONGEST and "```" not in kernel + task:
        one.example, one.speed = Example(one.name, task, kernel), speed


def _change(text: Text, step: Step) -> str:
    """The lines that changed, few enough to be read."""
    before, after = text(step.inputs["kernel"]), text(step.result or "")
    lines = [
        line
        for line in difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
        if line[:3] not in ("---", "+++")
    ]
    return "\n".join(lines) if before and after and len(lines) <= LINES else ""


def _family(record: RunRecord) -> str:
    """The most demanding family of the task, as the run's choice of skills tells it."""
    told = next((step.facts.get("families") for step in record.steps if step.kind == "choose"), None) or []
    return next((str(one) for one in told if one not in COMMON), str(told[0]) if told else "")
