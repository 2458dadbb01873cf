"""Attempts: what was tried in a run, which one is best, and which are worth showing to the next role."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from kernelwright.agents import distil
from kernelwright.agents.conductor import Author
from kernelwright.agents.prompts import fence
from kernelwright.core.verdict import Verdict

SHOWN = 2


@dataclass(frozen=True)
class Attempt:
    """One kernel that was judged. `number` is the step of the run; design 0 is the built-in one."""

    number: int
    design: int
    author: Author
    sketch: str
    kernel: str
    verdict: Verdict
    sketch_right: bool | None = None


def speed(verdict: Verdict) -> float | None:
    """A figure in which more is faster, comparable within a run: the paired ratio over eager, or off the device the prediction."""
    if not verdict.ok:
        return None
    if verdict.timing is not None:
        return verdict.timing.speedup
    predicted = [c.predicted_ms for c in (verdict.compiled_for or {}).values() if c.predicted_ms]
    return 1.0 / sum(predicted) if predicted else None


def better(a: Verdict, b: Verdict) -> bool:
    """Whether `a` is a better result than `b`: correct before fast."""
    if a.ok != b.ok:
        return a.ok
    mine, theirs = speed(a), speed(b)
    return mine is not None and theirs is not None and mine > theirs


def gain(new: Verdict, best: Verdict | None) -> float | None:
    """How much faster than the best so far; None where no speed is known. The first correct kernel counts as a gain of 1."""
    mine = speed(new)
    if mine is None:
        return None
    theirs = speed(best) if best is not None else None
    return mine / theirs if theirs else 1.0


def worth_showing(attempts: Sequence[Attempt], best: Attempt | None) -> str:
    """The most different designs and how they fared, for the Designer: what was tried must not be tried again."""
    others = [a for a in attempts if a.sketch and a is not best and (best is None or a.sketch != best.sketch)]
    unlike = sorted({a.sketch: a for a in others}.values(), key=lambda a: (not a.verdict.ok, _likeness(a, best), a.number))
    texts = []
    for attempt in unlike[:SHOWN]:
        fared = distil.speed(attempt.verdict) if attempt.verdict.ok else distil.failure(attempt.verdict, attempt.kernel)
        texts.append(fence(attempt.sketch, f"Design {attempt.design}", "python") + "\n\n" + fence(fared, "How it fared"))
    texts += [f"Design {a.design} was {a.verdict.status}." for a in unlike[SHOWN:]]
    return "\n\n".join(texts)


def _likeness(attempt: Attempt, best: Attempt | None) -> float:
    if best is None:
        return 0.0
    lines = difflib.SequenceMatcher(None, attempt.sketch.splitlines(), best.sketch.splitlines(), autojunk=False)
    return round(lines.quick_ratio(), 3)
