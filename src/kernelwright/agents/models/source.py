"""What a place that answers come from must offer; memory, limits, keys and recording are put around it by `guarded.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kernelwright.agents.models.ask import Answer, Ask


class Source(Protocol):
    """One server, folder or file that answers."""

    name: str
    tools: bool
    """Whether whoever answers may be offered tools."""

    def fetch(self, ask: Ask, cap: int, on_text: Callable[[str], None] | None, book: Callable[[Answer], None]) -> Answer:
        """Get an answer of at most `cap` tokens, or raise ModelError; `book` takes what was paid for without an answer to show for
        it (a try that broke off, an empty answer). Called from several threads."""
        ...

    def price(self, tokens_in: int, tokens_out: int) -> float | None:
        """Dollars for that many tokens; None where unknown."""
        ...

    def close(self) -> None:
        """Let go of connections; waiting calls end."""
        ...
