"""What was tried in a run, told to the next role: attempts in, texts for a prompt out. A speed is told of the kernel that had it: a design
is shown with what became of its own lowering, a variant by hand as a variant by hand.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from kernelwright.agents import distil
from kernelwright.agents.excerpt import shown_kernel
from kernelwright.agents.prompts import fence
from kernelwright.run.attempts import Attempt, speed

SHOWN = 2
VARIANTS = 6
SAID = 1200
"""Characters of what a Coder said and changed, for one attempt."""


def fared(attempt: Attempt) -> str:
    """What the judge said of a kernel, distilled."""
    return (
        distil.speed(attempt.verdict, attempt.kernel.source)
        if attempt.verdict.ok
        else distil.failure(attempt.verdict, attempt.kernel.source)
    )


def exists(seed: Attempt | None, best: Attempt | None, tried: Sequence[Attempt]) -> str:
    """The built-in design, and the best kernel if it is another: its design, or where it was written by hand, that it was, what its
    author says, and its source."""
    parts = []
    if seed is not None and seed.sketch:
        parts.append(_designed("The built-in design", seed))
    if best is not None and best is not seed:
        if not best.by_hand:
            parts.append(_designed("The best design so far", best))
        else:
            own = next((a for a in tried if a.sketch == best.sketch and not a.by_hand and a.sketch), None)
            lowered = speed(own.verdict) if own is not None else None
            origin = f"from design {best.design}" if best.sketch else "from the task itself"
            alone = f", whose own lowering reaches {lowered:.2f}x eager" if lowered is not None else ""
            parts.append(
                f"The best kernel so far was written by hand by the Coder {origin}{alone}. No sketch describes it.\n\n"
                + fence(fared(best), "What the judge said of it")
                + (f"\n\n{fence(_cut(best.said), 'What its author said and changed last')}" if best.said else "")
                + f"\n\n{fence(shown_kernel(best.kernel.source), 'The best kernel', 'python')}"
            )
    return "\n\n".join(parts) or "The built-in mind has no kernel for this task, and none has been accepted yet."


def worth_showing(attempts: Sequence[Attempt], best: Attempt | None) -> str:
    """The most different designs and how they fared, and the variants by hand: what was tried must not be tried again."""
    designs = [a for a in attempts if a.sketch and not a.by_hand and a is not best and a.author != "builtin"]
    unlike = sorted({a.sketch: a for a in designs}.values(), key=lambda a: (not a.verdict.ok, _similarity(a, best), a.number))
    texts = [_designed(f"Design {a.design}, lowered by rule", a) for a in unlike[:SHOWN]]
    texts += [f"Design {a.design}, lowered by rule: {_short(a)}." for a in unlike[SHOWN:]]
    variants = [a for a in attempts if a.by_hand and a is not best]
    texts += [fence(_variant(a), f"A variant by hand of design {a.design}") for a in variants[-VARIANTS:]]
    return "\n\n".join(texts)


def tried_on(attempts: Sequence[Attempt], kernel: str) -> str:
    """What was tried on one kernel without success: the next attempt must be another."""
    failed = [a for a in attempts if a.base == kernel]
    return "\n\n".join(fence(_variant(a), f"Attempt {number}") for number, a in enumerate(failed[-VARIANTS:], start=1))


def _designed(label: str, attempt: Attempt) -> str:
    said = "What the judge said of the kernel that the rules lowered it to"
    return fence(attempt.sketch, label, "python") + "\n\n" + fence(fared(attempt), said)


def _variant(attempt: Attempt) -> str:
    return f"{_short(attempt)}\n{_cut(attempt.said)}".strip()


def _short(attempt: Attempt) -> str:
    fast = speed(attempt.verdict)
    if attempt.verdict.ok:
        return f"correct, {fast:.2f}x eager" if attempt.verdict.timing is not None and fast else "correct"
    return f"{attempt.verdict.status}: {attempt.verdict.reason}"


def _cut(text: str) -> str:
    return text if len(text) <= SAID else f"{text[:SAID]}\n… ({len(text) - SAID:,} characters left out)"


def _similarity(attempt: Attempt, best: Attempt | None) -> float:
    if best is None:
        return 0.0
    lines = difflib.SequenceMatcher(None, attempt.sketch.splitlines(), best.sketch.splitlines(), autojunk=False)
    return round(lines.quick_ratio(), 3)
