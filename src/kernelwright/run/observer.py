"""Who looks on while a job runs: what begins, what came of it, a model's words as they arrive, how a search stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Standing:
    """How a search stands: `best` over the first kernel after each race, so far; what each island has; what is being done just now;
    seconds and the budget in seconds; how many variants were raced; how well the cost model's order agrees with the clock's."""

    best: tuple[float, ...]
    islands: tuple[str, ...]
    doing: tuple[str, ...]
    seconds: float
    budget: float
    raced: int
    agreement: float | None = None


def _nothing(text: str) -> None:
    """Nobody looks on."""


def _nobody(standing: Standing) -> None:
    """Nobody looks on."""


@dataclass(frozen=True)
class Observer:
    """`say` is called with one line that the next one replaces, `note` with one that stays (a move and its reason, a verdict),
    `text` with pieces of an answer (from any thread), `stands` when a search has moved on."""

    say: Callable[[str], None] = _nothing
    text: Callable[[str], None] = _nothing
    stands: Callable[[Standing], None] = _nobody
    note: Callable[[str], None] = _nothing
