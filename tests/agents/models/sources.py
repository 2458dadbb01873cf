"""A Source for tests of what lies around sources: it answers at once, from a function, and counts."""

from __future__ import annotations

import threading
from collections.abc import Callable

from kernelwright.agents.models import Answer, Ask


class Told:
    """Answers what it is told to; every token costs a thousandth of a dollar."""

    name = "told"
    tools = True

    def __init__(self, answer: Callable[[Ask, int], Answer] | None = None, *, priced: bool = True) -> None:
        self._answer = answer or (lambda ask, cap: Answer(f"to {ask.user}", 100, 50, 0.15, 0.0))
        self._priced = priced
        self.caps: list[int] = []
        self._lock = threading.Lock()

    def fetch(self, ask: Ask, cap: int, on_text: Callable[[str], None] | None, book: Callable[[Answer], None]) -> Answer:
        with self._lock:
            self.caps.append(cap)
        answer = self._answer(ask, cap)
        if on_text:
            for letter in answer.text:
                on_text(letter)
        return answer

    def price(self, tokens_in: int, tokens_out: int) -> float | None:
        return (tokens_in + tokens_out) / 1000 if self._priced else None

    def close(self) -> None:
        """Nothing to close."""


def an_ask(user: str = "softmax", **more: object) -> Ask:
    return Ask(role="coder", system="You write kernels.", user=user, form="kernel", **more)  # type: ignore[arg-type]
