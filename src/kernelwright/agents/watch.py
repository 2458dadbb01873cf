"""Who looks on while a job runs: a line for each thing that begins, and a model's words as they arrive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


def _nothing(text: str) -> None:
    """Nobody looks on."""


@dataclass(frozen=True)
class Watch:
    """`say` is called with one line, `text` with pieces of an answer (from any thread)."""

    say: Callable[[str], None] = _nothing
    text: Callable[[str], None] = _nothing
