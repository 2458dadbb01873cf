"""Which attempts of a run are worth showing to the next role, and how they fared: attempts in, a text for a prompt out."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from kernelwright.agents import distil
from kernelwright.agents.prompts import fence
from kernelwright.run.attempts import Attempt

SHOWN = 2


def worth_showing(attempts: Sequence[Attempt], best: Attempt | None) -> str:
    """The most different designs and how they fared, for the Designer: what was tried must not be tried again."""
    others = [a for a in attempts if a.sketch and a is not best and (best is None or a.sketch != best.sketch)]
    unlike = sorted({a.sketch: a for a in others}.values(), key=lambda a: (not a.verdict.ok, _likeness(a, best), a.number))
    texts = []
    for attempt in unlike[:SHOWN]:
        fared = distil.speed(attempt.verdict) if attempt.verdict.ok else distil.failure(attempt.verdict, attempt.kernel.source)
        texts.append(fence(attempt.sketch, f"Design {attempt.design}", "python") + "\n\n" + fence(fared, "How it fared"))
    texts += [f"Design {a.design} was {a.verdict.status}." for a in unlike[SHOWN:]]
    return "\n\n".join(texts)


def _likeness(attempt: Attempt, best: Attempt | None) -> float:
    if best is None:
        return 0.0
    lines = difflib.SequenceMatcher(None, attempt.sketch.splitlines(), best.sketch.splitlines(), autojunk=False)
    return round(lines.quick_ratio(), 3)
