"""Dead ends of a table, found before a run begins: a situation that no row answers, a move that cannot be carried out, a run that never
ends, a row that nothing leads to.

In: a table. Out: sentences, each with the history that leads there; none for a table that may be used. Found by walking: every move is
answered by every outcome that it may have, stubbornly (the same outcome again and again) and by lot, under several allowances. What a
walk does not meet it does not find: the team still stops a run after `LONGEST` turns, whatever its table says.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kernelwright.agents.conductor.nouns import FAULTY_KERNEL, FAULTY_SKETCH, Allowance, Decision, Kind, Move, Turn
from kernelwright.agents.conductor.situation import History
from kernelwright.agents.conductor.table import FIRST, Table, load, standard
from kernelwright.core.errors import ConfigError

LONGEST = 200
"""Turns; no run that is of use has so many."""
WALKS = 400
ENDLESS = "a run may never end"
ALLOWANCES = (Allowance(1, 2, 2, 1, 1), Allowance(3, 1, 1, 2, 2), Allowance(0, 0, 0, 0, 0))

SKETCHES = (Kind.unreadable, Kind.declined, *FAULTY_SKETCH, Kind.proved, Kind.wrong, Kind.build_failed, Kind.correct)
KERNELS = (Kind.unreadable, *FAULTY_KERNEL, Kind.cheating, Kind.correct)
OUTCOMES: dict[Move, tuple[Kind, ...]] = {
    Move.seed: (Kind.correct, Kind.no_seed, Kind.wrong),
    Move.design: SKETCHES,
    Move.repair_design: tuple(kind for kind in SKETCHES if kind is not Kind.declined),
    Move.advise: (Kind.advised,),
}
"""What may become of a move; of the others, `KERNELS`."""
GAINS = (1.0, 0.7, 1.4, None)
UNTRIED = {"near_roof", "advice"}
"""Facts that walks do not vary in full; rows that ask for them may be idle."""
Pick = Callable[[tuple[object, ...]], object]


@dataclass
class Walk:
    """One run of the table against outcomes that `pick` chooses, and which rows it used."""

    table: Table
    allowance: Allowance
    pick: Pick
    used: set[str]

    def fault(self) -> str:
        """What is wrong with the table on this walk, or "". The decisions are the table's own."""
        turns: tuple[Turn, ...] = ()
        design = 0
        while True:
            try:
                decision = self.table.next(turns, self.allowance)
            except ConfigError as error:
                return f"{error} (after {_told(turns)})"
            self.used.add(decision.rule)
            if decision.move is Move.stop:
                return ""
            if missing := impossible(turns, decision):
                return f"{self.table.path}: row {decision.rule!r} says {decision.move}, but {missing} (after {_told(turns)})"
            if len(turns) >= LONGEST:
                return f"{self.table.path}: {ENDLESS} (… {_told(turns[-6:])})"
            if decision.move is Move.design and not (
                turns and turns[-1].move is Move.design and turns[-1].kind is Kind.unreadable
            ):
                design = max(turn.design for turn in turns) + 1
            elif decision.move is Move.improve_best:
                best = History(turns).best
                design = best.design if best else design
            turns += (self._turn(decision.move, design),)

    def _turn(self, move: Move, design: int) -> Turn:
        kind = self.pick(OUTCOMES.get(move, KERNELS))
        assert isinstance(kind, Kind)
        by_rules = move in (Move.design, Move.repair_design)
        author = (
            "builtin"
            if move is Move.seed
            else "rules"
            if by_rules and kind not in SKETCHES[:5]
            else "designer"
            if by_rules
            else "coder"
        )
        gain = self.pick(GAINS) if kind is Kind.correct and move is not Move.seed else 1.0 if kind is Kind.correct else None
        word = str(self.pick(("improve", "best", "redesign"))) if kind is Kind.advised else "for a reason"
        error, right = str(self.pick(("a", "b"))), self.pick((True, None))
        assert gain is None or isinstance(gain, float)
        return Turn(move, kind, design, author, error, True if right else None, gain, 0.5, word)  # type: ignore[arg-type]


def impossible(turns: tuple[Turn, ...], decision: Decision) -> str:
    """Why a move cannot be carried out after these turns, or ""."""
    if not turns:
        return ""
    history = History(turns)
    here = history.here
    kernels = [
        turn for turn in here if turn.kind in (*FAULTY_KERNEL, Kind.cheating, Kind.correct) and turn.move is not Move.seed
    ]
    if decision.move in (Move.patch, Move.rewrite) and not any(turn.author == "coder" for turn in kernels):
        return "the Coder has no kernel here"
    if decision.move in (Move.improve, Move.advise) and not any(turn.kind is Kind.correct for turn in here):
        return "there is no correct kernel here"
    if decision.move is Move.improve_best and history.best is None:
        return "the run has no correct kernel"
    if decision.move is Move.repair_design and not any(turn.author in ("designer", "rules") for turn in here):
        return "there is no sketch here"
    return ""


def dead_ends(table: Table) -> list[str]:
    """The faults of a table, each once; and rows that nothing led to."""
    used: set[str] = set()
    found: dict[str, str] = {}
    for allowance, pick in itertools.product(ALLOWANCES, _picks()):
        if fault := Walk(table, allowance, pick, used).fault():
            found.setdefault(fault.split(" (")[0], fault)
            if ENDLESS in fault:  # the walks that remain would hardly end either, each at its longest
                break
    idle = [row.name for row in table.groups[FIRST] if row.name not in used and not set(row.when) & UNTRIED]
    return list(found.values()) or [
        f"{table.path}: nothing leads to row {name!r}; a row above it answers first" for name in idle
    ]


def chosen(place: str) -> Table:
    """The table of a file that a user names, or ours where none is named."""
    return load(Path(place).expanduser()) if place else standard()


def usable(place: str) -> Table:
    """The same, for a run: one with dead ends is refused with the first of them."""
    table = chosen(place)
    if place and (faults := dead_ends(table)):
        raise ConfigError(f"{faults[0]}; `kernelwright show --table {place}` shows all")
    return table


def _picks() -> Iterator[Pick]:
    """Ways to choose outcomes: always the first, the second …; nothing left to spend; and by lot, the same at every check."""
    for at in range(len(SKETCHES)):
        yield lambda choices, at=at: choices[at % len(choices)]  # type: ignore[misc]
    yield lambda choices: Kind.exhausted if isinstance(choices[0], Kind) else choices[0]
    for seed in range(WALKS):
        yield random.Random(seed).choice


def _told(turns: tuple[Turn, ...]) -> str:
    return ", ".join(f"{turn.move}:{turn.kind}" for turn in turns)
