"""The Conductor: an explicit table from (what happened so far, what may still be spent) to the next move, with its reason.

In: `Turn`s, one for each finished step, and an `Allowance`. Out: a `Decision`. Pure: no clock, no model, no disk; the same history
always gives the same decision, which is what makes a resumed run repeat itself without paying again. `team.py` carries moves out.

The table is read from top to bottom; the first rule that has an answer decides. No rule can overrule the judge: a verdict arrives
here as a fact. Where the table says "unclear", the model is asked for advice, and its answer is one of three words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from kernelwright.run.attempts import Author

NEAR_THE_ROOF = 0.9
"""Share of the roofline beyond which no gain is expected that a measurement could show."""


class Move(StrEnum):
    """What can be done next."""

    seed = "seed"
    design = "design"
    repair_design = "repair_design"
    code = "code"
    patch = "patch"
    rewrite = "rewrite"
    improve = "improve"
    advise = "advise"
    stop = "stop"


class Kind(StrEnum):
    """What became of a move."""

    no_seed = "no_seed"
    unreadable = "unreadable"
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
    """How often each thing may be tried: designs in a run; repairs of one design; failed patches before a rewrite; attempts to
    make one correct kernel faster."""

    designs: int = 1
    repairs: int = 2
    patches: int = 2
    improvements: int = 1


@dataclass(frozen=True)
class Decision:
    """The next move, why, and the rule that said so."""

    move: Move
    reason: str
    rule: str


@dataclass(frozen=True)
class History:
    """The turns so far, and the questions that rules ask of them."""

    turns: tuple[Turn, ...]

    @property
    def last(self) -> Turn:
        return self.turns[-1]

    @property
    def here(self) -> tuple[Turn, ...]:
        """The turns of the design that is being worked on."""
        return tuple(turn for turn in self.turns if turn.design == self.last.design)

    @property
    def designs(self) -> int:
        """How many designs the Designer has begun."""
        return max(turn.design for turn in self.turns)

    @property
    def has_kernel(self) -> bool:
        return any(turn.kind is Kind.correct for turn in self.turns)

    @property
    def asks_again(self) -> bool:
        """Whether the last answer could not be used, for the first time in a row: then the same is asked once more."""
        *before, last = self.turns
        twice = bool(before) and before[-1].kind is Kind.unreadable and before[-1].move is last.move
        return last.kind is Kind.unreadable and not twice

    def seen_before(self) -> bool:
        """Whether this design met exactly this failure already."""
        return any(turn.kind is self.last.kind and turn.error == self.last.error for turn in self.here[:-1])

    def count(self, *moves: Move) -> int:
        """How many of these moves were made in this design."""
        return sum(turn.move in moves for turn in self.here)

    def failures_of_this_text(self) -> int:
        """Failures since the kernel was last written as a whole."""
        count = 0
        for turn in reversed(self.here):
            if turn.kind not in (*FAULTY_KERNEL, Kind.unreadable) or turn.author == "rules":
                break
            count += 1
            if turn.move in (Move.code, Move.rewrite):
                break
        return count


Rule = Callable[[History, Allowance], tuple[Move, str] | None]


def decide(turns: tuple[Turn, ...], allowance: Allowance) -> Decision:
    """The next move. A run that has not begun starts with its seed."""
    if not turns:
        return Decision(Move.seed, "the built-in kernel comes first: nothing worse than it is ever returned", "begin")
    history = History(turns)
    for rule in TABLE:
        found = rule(history, allowance)
        if found is not None:
            return Decision(*found, rule.__name__)
    raise AssertionError(f"no rule for {history.last}")


def limits(history: History, allowance: Allowance) -> tuple[Move, str] | None:
    """A limit of money, tokens or time was reached, or the model cannot be reached at all."""
    if history.last.kind is Kind.exhausted:
        return Move.stop, history.last.note
    if history.last.kind is Kind.model_failed:
        return Move.stop, f"the model gives no answer: {history.last.note}"
    return None


def no_gain_expected(history: History, allowance: Allowance) -> tuple[Move, str] | None:
    """A correct kernel near the roofline cannot become measurably faster."""
    best = max((turn.roofline or 0.0 for turn in history.turns if turn.kind is Kind.correct), default=0.0)
    if best >= NEAR_THE_ROOF:
        return Move.stop, f"the best kernel reaches {best:.0%} of what the hardware allows: no gain is expected"
    return None


def after_the_seed(history: History, allowance: Allowance) -> tuple[Move, str] | None:
    """The built-in mind has spoken; now the Designer does."""
    if history.last.move is not Move.seed:
        return None
    if history.last.kind is Kind.correct and history.last.gain is None:
        return Move.stop, "no speed is measured here, so nothing could be told to be better than the built-in kernel"
    found = "is the seed" if history.last.kind is Kind.correct else f"gave no kernel ({history.last.note or history.last.kind})"
    return _next_design(history, allowance, f"the built-in mind {found}")


def unreadable(history: History, allowance: Allowance) -> tuple[Move, str] | None:
    """Nothing usable in the answer: ask again with the reason, once; then another way."""
    last = history.last
    if last.kind is not Kind.unreadable:
        return None
    if history.asks_again:
        return last.move, f"the answer cannot be used ({last.note}): asked again with the reason"
    if last.move is Move.patch and Move.rewrite not in {turn.move for turn in history.here}:
        return Move.rewrite, "two patches could not be applied: the kernel is written anew"
    return _next_design(history, allowance, "two answers in a row cannot be used")


def faulty_sketch(history: History, allowance: Allowance) -> tuple[Move, str] | None:
    """A design that does not check, or computes something else, goes back to the Designer; nothing is built."""
    last = history.last
    if last.kind not in FAULTY_SKETCH:
        return None
    what = "does not check" if last.kind is Kind.malformed else "computes something else than the reference"
    if history.seen_before():
        return _next_design(history, allowance, f"the sketch {what}, for the same reason as before: another design")
    if history.count(Move.repair_design) >= allowance.repairs:
        return _next_design(history, allowance, f"the sketch still {what} after {allowance.repairs} repairs")
    return Move.repair_design, f"the sketch {what}: back to the Designer, without a build"


def proved(history: History, allowance: Allowance) -> tuple[Move, str] | None:
    """A right design that the rules cannot lower is the Coder's work."""
    if history.last.kind is not Kind.proved:
        return None
    return Move.code, f"the sketch is right, and the rules cannot lower it ({history.last.note}): the Coder writes the kernel"


def faulty_lowering(history: History, allowance: Allowance) -> tuple[Move, str] | None:
    """The rules' kernel fails: the design is at fault where nobody has seen it run, else the Coder writes by hand."""
    last = history.last
    if last.kind not in FAULTY_KERNEL or last.author != "rules":
        return None
    if last.kind is Kind.wrong and last.sketch_right is None and history.count(Move.repair_design) < allowance.repairs:
        return Move.repair_design, "the kernel lowered from an unproved sketch is wrong: back to the Designer"
    return Move.code, f"the kernel lowered by rule fails ({last.kind}) while its sketch is right: the Coder writes it by hand"


def faulty_kernel(history: History, allowance: Allowance) -> tuple[Move, str] | None:
    """The Coder's kernel fails: patch; the same error again, or too many patches: rewrite; and then another design."""
    last = history.last
    if last.kind not in FAULTY_KERNEL:
        return None
    rewritten = history.count(Move.rewrite) > 0
    words = {Kind.build_failed: "does not build", Kind.wrong: "gives wrong results", Kind.crashed: "crashes"}[last.kind]
    if last.kind is Kind.wrong and last.sketch_right:
        words += " while its sketch is right"
    if last.move is Move.improve:
        return _after_improving(history, allowance, f"the attempt to make it faster {words}")
    if history.seen_before():
        if rewritten:
            return _next_design(history, allowance, f"the kernel {words} with the same error even after a rewrite")
        return Move.rewrite, f"the kernel {words} with the same error twice: it is written anew"
    if history.failures_of_this_text() > allowance.patches:
        if rewritten:
            return _next_design(history, allowance, f"the kernel still {words} after a rewrite and {allowance.patches} patches")
        return Move.rewrite, f"the kernel {words} after {allowance.patches} patches: it is written anew"
    return Move.patch, f"the kernel {words}: the Coder patches it"


def cheating(history: History, allowance: Allowance) -> tuple[Move, str] | None:
    """Said plainly, once in a run; whoever cheats again is dropped."""
    if history.last.kind is not Kind.cheating:
        return None
    if sum(turn.kind is Kind.cheating for turn in history.turns) == 1 and history.last.author == "coder":
        return Move.rewrite, "the judge calls this kernel cheating: the Coder is told so, once"
    return _next_design(history, allowance, "the kernel is cheating again: this line is dropped")


def advised(history: History, allowance: Allowance) -> tuple[Move, str] | None:
    """What the model advised, within what is allowed."""
    if history.last.kind is not Kind.advised:
        return None
    if history.last.note == "improve" and history.count(Move.improve) < allowance.improvements:
        return Move.improve, "the model advises to work on this kernel"
    if history.last.note == "stop":
        return Move.stop, "the model advises to stop"
    return _next_design(history, allowance, "the model advises another design")


def correct(history: History, allowance: Allowance) -> tuple[Move, str] | None:
    """A correct kernel: faster than before, go on with it; not faster, another design. Unclear the first time: advice."""
    last = history.last
    if last.kind is not Kind.correct:
        return None
    if last.gain is None:
        return _next_design(history, allowance, "the kernel is correct; its speed was not measured")
    first = sum(turn.kind is Kind.correct for turn in history.turns) == 1
    if first or last.gain > 1.0:
        praise = (
            "the kernel is the first correct one" if first else f"the kernel is correct and {last.gain:.2f}x the best before it"
        )
        if history.count(Move.improve) < allowance.improvements:
            return Move.improve, f"{praise}: the Coder tries to go further"
        return _next_design(history, allowance, praise)
    if last.move is Move.improve:
        return _after_improving(history, allowance, f"the change made it {last.gain:.2f}x as fast, which is no gain")
    can_go_on = history.count(Move.improve) < allowance.improvements and history.designs < allowance.designs
    if can_go_on and not any(turn.move is Move.advise for turn in history.turns):
        return Move.advise, f"unclear: the kernel is correct but {last.gain:.2f}x the best; is it the design or the code?"
    return _next_design(history, allowance, f"the kernel is correct but {last.gain:.2f}x the best")


def _after_improving(history: History, allowance: Allowance, why: str) -> tuple[Move, str]:
    if history.count(Move.improve) < allowance.improvements:
        return Move.improve, f"{why}: another attempt"
    return _next_design(history, allowance, why)


def _next_design(history: History, allowance: Allowance, why: str) -> tuple[Move, str]:
    """Another design while designs are left. A task for which no design ever worked is given to the Coder without one, once."""
    if history.designs < allowance.designs:
        return Move.design, f"{why}: the Designer writes a new design"
    if not history.has_kernel and not any(turn.author == "coder" for turn in history.turns):
        return Move.code, f"{why}: no design has worked, so the Coder writes from the task itself"
    tried = "one design" if history.designs == 1 else f"{history.designs} designs"
    return Move.stop, f"{why}, and this effort allows no more than {tried}"


TABLE: tuple[Rule, ...] = (
    limits,
    no_gain_expected,
    after_the_seed,
    unreadable,
    faulty_sketch,
    proved,
    faulty_lowering,
    faulty_kernel,
    cheating,
    advised,
    correct,
)
