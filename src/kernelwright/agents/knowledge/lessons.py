"""What earlier runs have learnt: kernels that won, their sketches, and failure→fix pairs. In: the store. Out: a few, with the reason
for which each was chosen, to be shown to a role.

A lesson's text is what a model wrote or a compiler printed: prompts fence it as data like everything foreign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from kernelwright.agents.knowledge.families import akin

if TYPE_CHECKING:
    from kernelwright.store import Store

LessonKind = Literal["kernel", "sketch", "fix"]
CANDIDATES = 24
"""Lessons that are looked at for those of the family."""
LONGEST = 12_000
"""Characters of a lesson that is shown; a longer kernel teaches less than it costs."""


@dataclass(frozen=True)
class Recalled:
    """A lesson as it is shown."""

    kind: str
    text: str
    reason: str

    def as_json(self) -> dict[str, str]:
        return {"kind": self.kind, "text": self.text, "reason": self.reason}


def keep_win(
    store: Store,
    *,
    families: Sequence[str],
    dsl: str,
    target: str,
    task: str,
    words: str,
    sketch: str,
    kernel: str,
    speedup: float | None,
    by_hand: bool = False,
) -> None:
    """A kernel that beat what was there, with its design (which is of no language). One by hand has left its design behind: the speed
    is the kernel's alone, and no design is kept with it."""
    fast = f"{speedup:.2f}x eager" if speedup else "accepted by the judge"
    about = f"{task} on {target}, {fast}" + (", written by hand" if by_hand else "")
    if kernel and len(kernel) <= LONGEST:
        _learn(store, "kernel", families, dsl, target, about, words, kernel)
    if sketch and not by_hand and len(sketch) <= LONGEST:
        _learn(store, "sketch", families, "", target, about, words, sketch)


def keep_fix(store: Store, *, families: Sequence[str], dsl: str, target: str, failure: str, patch: str) -> None:
    """A failure and the change after which it was gone."""
    text = f"The failure:\n{failure.strip()}\n\nThe change after which it was gone:\n{patch.strip()}"
    if len(text) <= LONGEST:
        _learn(store, "fix", families, dsl, target, "a failure and its fix", failure, text)


def recall(
    store: Store, kind: LessonKind, *, words: str, families: Sequence[str], dsl: str, target: str, limit: int
) -> list[Recalled]:
    """The lessons nearest to a task, best first, each from another task. A kernel or a design of another family teaches nothing about
    this one, however alike the words are; what fixed a failure belongs to the failure."""
    found = store.lessons(words, " ".join(families), dsl if kind != "sketch" else None, target, CANDIDATES, kind=kind)
    chosen: dict[str, Recalled] = {}
    for one in found:
        shared = akin(families, one.family.split())
        if kind != "fix" and not shared:
            continue
        about = one.text.splitlines()[0]
        reason = f"{about}; shares family {', '.join(shared)}" if shared else f"{about}; {one.family}"
        source = about.split(" on ")[0] if kind != "fix" else one.text
        chosen.setdefault(source, Recalled(kind, str(one.payload.get("text", "")), reason))
    return list(chosen.values())[:limit]


def _learn(
    store: Store, kind: LessonKind, families: Sequence[str], dsl: str, target: str, about: str, words: str, payload: str
) -> None:
    from kernelwright.store import Lesson

    store.learn(Lesson(kind, " ".join(families), dsl, target, f"{about}\n{words[:4000]}", {"text": payload}))
