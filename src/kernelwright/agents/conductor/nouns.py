"""The nouns of the Conductor: what can be done, what became of it, how often it may be tried, what comes next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kernelwright.run.attempts import Author


class Move(StrEnum):
    """What can be done next. `improve` works on the fastest kernel of the design at hand, `improve_best` on the run's best."""

    seed = "seed"
    design = "design"
    repair_design = "repair_design"
    code = "code"
    patch = "patch"
    rewrite = "rewrite"
    improve = "improve"
    improve_best = "improve_best"
    advise = "advise"
    stop = "stop"


class Kind(StrEnum):
    """What became of a move. `declined`: the Designer says that there is no better design."""

    no_seed = "no_seed"
    unreadable = "unreadable"
    declined = "declined"
    malformed = "malformed"
    misdesigned = "misdesigned"
    proved = "proved"
    build_failed = "build_failed"
    wrong = "wrong"
    crashed = "crashed"
    cheating = "cheating"
    correct = "correct"
    advised = "advised"
    model_failed = "model_failed"
    exhausted = "exhausted"


FAULTY_SKETCH = (Kind.malformed, Kind.misdesigned)
FAULTY_KERNEL = (Kind.build_failed, Kind.wrong, Kind.crashed)


@dataclass(frozen=True)
class Turn:
    """One finished step. `design` numbers the design it belongs to (0 is the built-in one). `error` is the failure with line
    numbers and values taken out, so that the same failure twice is seen as such. `sketch_right` says whether the interpreter
    agreed with the reference (None: it was not run). `gain` is the speed over the best kernel before it, `roofline` the share of
    what the hardware allows; `note` is a detail for the reason (who failed, what was advised)."""

    move: Move
    kind: Kind
    design: int = 0
    author: Author = ""
    error: str = ""
    sketch_right: bool | None = None
    gain: float | None = None
    roofline: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Allowance:
    """How often each thing may be tried: designs in a run; repairs of one design; failed patches before a rewrite; attempts in a
    row to make one kernel faster. A gain renews the attempts, at most `renewals` times for a design."""

    designs: int = 1
    repairs: int = 2
    patches: int = 2
    improvements: int = 1
    renewals: int = 3


@dataclass(frozen=True)
class Decision:
    """The next move, why, and the row that said so."""

    move: Move
    reason: str
    rule: str
