"""Attempts: what was tried in a run, and which one is best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernelwright.core.kernel import Kernel
from kernelwright.core.verdict import Verdict

Author = Literal["", "builtin", "designer", "rules", "coder"]
"""Whose kernel it is: the built-in mind's, a model's design lowered by rule, a Coder's; nobody's yet."""

BY_HAND = "# The kernel was written by hand and has its own schedule; this is the design from which its author began.\n"


@dataclass(frozen=True)
class Attempt:
    """One kernel that was judged. `number` is the step of the run; design 0 is the built-in one. `sketch` is the design that it was
    lowered from, or that a Coder began from: the code of a Coder is its own, and `verdict` says nothing about that sketch. `base` is
    the kernel that a Coder changed, `said` what it said and did."""

    number: int
    design: int
    author: Author
    sketch: str
    kernel: Kernel
    verdict: Verdict
    sketch_right: bool | None = None
    base: str = ""
    said: str = ""

    @property
    def by_hand(self) -> bool:
        """Whether the kernel is written by hand: then it implements no sketch that anybody has proved against it."""
        return self.author == "coder"

    @property
    def design_text(self) -> str:
        """The sketch as it is kept beside the kernel: of one by hand it says that the code has left it."""
        return f"{BY_HAND}{self.sketch}" if self.by_hand and self.sketch else self.sketch


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
