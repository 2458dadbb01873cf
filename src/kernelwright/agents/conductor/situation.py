"""The situation after a history of turns: the facts that a row of the table may ask for. In: turns and an allowance. Out: `facts`.

An answer that could not be used is no attempt: it counts for `unread` alone. A gain renews what may be tried on a kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.agents.conductor.nouns import FAULTY_KERNEL, Allowance, Kind, Move, Turn

NEAR_THE_ROOF = 0.9
"""Share of the roofline beyond which no gain is expected that a measurement could show."""
BEYOND_THE_ROOF = 1.05
"""Above this the kernel does less work than the bound assumes: the bound is wrong, and says nothing about what is left to gain."""
WORTH = 1.02
"""A gain below this cannot be told from noise, and renews nothing."""
IMPROVING = (Move.improve, Move.improve_best)
WHOLE = (Move.code, Move.rewrite, Move.improve, Move.improve_best)
"""Moves after which patches are counted anew: the text at hand is another one."""

Fact = str | int | bool

FACTS: dict[str, str] = {
    "move": "what was done last",
    "kind": "what became of it",
    "author": "who wrote the kernel: builtin, designer, rules, coder",
    "advice": "the word of the adviser: improve, best, redesign, stop",
    "unread": "how many answers in a row could not be used",
    "repeated": "whether this design met exactly this failure already",
    "speed": "of a correct kernel: first (of the run), faster, slower, unmeasured",
    "sketch": "right (it was run against the reference), wrong, or unproved",
    "near_roof": "whether the best kernel is at 90 % of the roofline or more, and not beyond what the roofline could mean",
    "improving": "whether the kernel at hand came of an attempt to make a correct one faster",
    "rewritten": "whether this design's kernel was written anew already",
    "has_kernel": "whether the run has a correct kernel",
    "best_by": "who wrote the best kernel",
    "coded": "whether the Coder has written a kernel of its own in this run",
    "cheats": "how many kernels of this run were cheating",
    "declined": "whether the Designer has said that there is no better design",
    "advice_left": "whether this design's advice was not asked for yet",
    "designs_left": "whether another design is allowed",
    "repairs_left": "whether this design may be repaired once more",
    "patches_left": "whether this kernel may be patched once more",
    "improvements_left": "whether another attempt to make this design's kernel faster is allowed",
    "best_improvable": "the same for the run's best kernel",
}
"""Every fact that a row may ask for, and what it means."""


@dataclass(frozen=True)
class History:
    """The turns so far, and the questions that the facts ask of them."""

    turns: tuple[Turn, ...]

    @property
    def last(self) -> Turn:
        return self.turns[-1]

    def of(self, design: int) -> tuple[Turn, ...]:
        """The usable turns of a design."""
        return tuple(turn for turn in self.turns if turn.design == design and turn.kind is not Kind.unreadable)

    @property
    def here(self) -> tuple[Turn, ...]:
        """The usable turns of the design that is being worked on."""
        return self.of(self.last.design)

    @property
    def designs(self) -> int:
        """How many designs the Designer has begun; an answer that could not be used is none."""
        return len({turn.design for turn in self.turns if turn.move is Move.design and turn.kind is not Kind.unreadable})

    @property
    def unread(self) -> int:
        """How many answers in a row could not be used."""
        count = 0
        for turn in reversed(self.turns):
            if turn.kind is not Kind.unreadable:
                break
            count += 1
        return count

    @property
    def correct(self) -> tuple[Turn, ...]:
        return tuple(turn for turn in self.turns if turn.kind is Kind.correct)

    @property
    def best(self) -> Turn | None:
        """The turn of the best kernel: the last correct one that was faster than all before it."""
        correct = self.correct
        return next((turn for turn in reversed(correct) if (turn.gain or 0.0) > 1.0), correct[0] if correct else None)

    def whole(self) -> tuple[Turn, ...]:
        """The turns of this design since its kernel was last written as a whole, or an attempt to speed it up began."""
        here = self.here
        start = max((at for at, turn in enumerate(here) if turn.move in WHOLE), default=0)
        return here[start:]

    def repeated(self) -> bool:
        """Whether this design met exactly this failure already; within one attempt to speed it up, when that is being made."""
        before = self.whole() if self.improving() else self.here
        return any(turn.kind is self.last.kind and turn.error == self.last.error for turn in before[:-1])

    def improving(self) -> bool:
        whole = self.whole()
        return bool(whole) and whole[0].move in IMPROVING

    def failed_patches(self) -> int:
        """Failures of patches since the kernel was last written as a whole."""
        return sum(turn.kind in FAULTY_KERNEL and turn.author != "rules" for turn in self.whole()[1:])

    def improvements(self, design: int, renewals: int) -> int:
        """Attempts to speed up a design's kernel since the last gain that counts."""
        turns = self.of(design)
        gains = [at for at, turn in enumerate(turns) if turn.kind is Kind.correct and (turn.gain or 0.0) >= WORTH]
        start = gains[min(len(gains), renewals) - 1] + 1 if gains and renewals else 0
        return sum(turn.move in IMPROVING for turn in turns[start:])


def facts(turns: tuple[Turn, ...], allowance: Allowance) -> dict[str, Fact]:
    """All facts of `FACTS`, for a history with at least one turn."""
    history = History(turns)
    last, here, best = history.last, history.here, history.best
    declined = any(turn.kind is Kind.declined for turn in turns)

    def may_improve(design: int) -> bool:
        return history.improvements(design, allowance.renewals) < allowance.improvements

    def count(*moves: Move) -> int:
        return sum(turn.move in moves for turn in here)

    return {
        "move": str(last.move),
        "kind": str(last.kind),
        "author": last.author,
        "advice": last.note if last.kind is Kind.advised else "",
        "unread": history.unread,
        "repeated": history.repeated(),
        "speed": _speed(history),
        "sketch": {True: "right", False: "wrong", None: "unproved"}[last.sketch_right],
        "near_roof": any(
            turn.kind is Kind.correct and NEAR_THE_ROOF <= (turn.roofline or 0.0) <= BEYOND_THE_ROOF
            for turn in ([best] if best else [])
        ),
        "improving": history.improving(),
        "rewritten": count(Move.rewrite) > 0,
        "has_kernel": best is not None,
        "best_by": best.author if best else "",
        "coded": any(turn.author == "coder" and turn.kind is not Kind.unreadable for turn in turns),
        "cheats": sum(turn.kind is Kind.cheating for turn in turns),
        "declined": declined,
        "advice_left": count(Move.advise) == 0,
        "designs_left": history.designs < allowance.designs and not declined,
        "repairs_left": count(Move.repair_design) < allowance.repairs,
        "patches_left": history.failed_patches() < allowance.patches,
        "improvements_left": may_improve(last.design),
        "best_improvable": best is not None and best.gain is not None and may_improve(best.design),
    }


def _speed(history: History) -> str:
    last = history.last
    if last.kind is not Kind.correct:
        return ""
    if last.gain is None:
        return "unmeasured"
    if len(history.correct) == 1:
        return "first"
    return "faster" if last.gain > 1.0 else "slower"


def told(turns: tuple[Turn, ...], allowance: Allowance) -> dict[str, str]:
    """What a row's reason may mention in braces."""
    last, best = turns[-1], History(turns).best
    designs = History(turns).designs
    roofline = (best.roofline if best else None) or 0.0
    words: dict[Kind, str] = {
        Kind.build_failed: "does not build",
        Kind.wrong: "gives wrong results" + (" while its sketch is right" if last.sketch_right else ""),
        Kind.crashed: "crashes",
        Kind.cheating: "is cheating",
        Kind.malformed: "does not check",
        Kind.misdesigned: "computes something else than the reference",
    }
    return {
        "note": last.note or str(last.kind),
        "kind": str(last.kind),
        "move": last.move.replace("_", " "),
        "what": words.get(last.kind, str(last.kind)),
        "gain": f"{last.gain:.2f}x" if last.gain is not None else "of unknown speed against",
        "roofline": f"{roofline:.0%}",
        "repairs": str(allowance.repairs),
        "patches": str(allowance.patches),
        "designs": "one design" if designs == 1 else f"{designs} designs",
    }


TOLD = ("note", "kind", "move", "what", "gain", "roofline", "repairs", "patches", "designs")
