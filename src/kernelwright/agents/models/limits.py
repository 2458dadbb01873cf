"""What a run may spend on models, and the ledger that keeps to it.

In: the tokens and dollars of every call. Out: before a call, how many tokens its answer may have (`Ledger.reserve`), or
BudgetReached. Calls in flight hold a reservation, so that several at once cannot exceed the limit together. One ledger serves all
models of a run; what an earlier process of the same run spent is passed as `before`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from kernelwright.agents.models.ask import Answer, Ask
from kernelwright.core.errors import BudgetReached

if TYPE_CHECKING:
    from kernelwright.core.config import Settings

LETTERS_PER_TOKEN = 3.0
"""Code has 3 to 4 letters a token in the tokenizers in use; the low end, so that a reservation is rather too large."""


def estimate(letters: int) -> int:
    """Tokens of a text that nobody has counted."""
    return max(1, int(letters / LETTERS_PER_TOKEN)) if letters else 0


SMALLEST_ANSWER = 256
"""Tokens. An answer that must be shorter than this is of no use for code: the limit counts as reached."""


@dataclass(frozen=True)
class Limits:
    """None means no limit. `timeout_s` is for one attempt of one call, `retries` the attempts after the first;
    `tools` whether models that answer over the network are offered tools."""

    max_cost_usd: float | None = None
    max_tokens: int | None = None
    concurrency: int = 4
    timeout_s: float = 600.0
    retries: int = 4
    tools: bool = True

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        """The limits that the configuration asks for."""
        return cls(
            max_cost_usd=settings.max_cost,
            max_tokens=settings.max_tokens,
            concurrency=settings.model_calls,
            timeout_s=settings.model_timeout,
            retries=settings.model_retries,
            tools=settings.model_tools,
        )


@dataclass(frozen=True)
class Spent:
    """Totals of paid calls. `unpriced` counts the calls whose price is unknown: the dollars lack those."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def plus(self, answer: Answer) -> Spent:
        """With this answer added; a recalled one costs nothing."""
        if answer.recalled:
            return self
        return Spent(
            calls=self.calls + 1,
            tokens_in=self.tokens_in + answer.tokens_in,
            tokens_out=self.tokens_out + answer.tokens_out,
            cost_usd=self.cost_usd + (answer.cost_usd or 0.0),
            unpriced=self.unpriced + (answer.cost_usd is None),
        )


class Price(Protocol):
    """Dollars for a call; None where unknown."""

    def __call__(self, tokens_in: int, tokens_out: int) -> float | None: ...


@dataclass
class Reservation:
    """A call in flight: `cap` is how many tokens its answer may have, the rest is what it holds of the budget."""

    cap: int
    tokens: int
    dollars: float


@dataclass
class Ledger:
    """The spending of one run, safe for threads."""

    limits: Limits
    before: Spent = Spent()
    _spent: Spent = field(init=False)
    _open: list[Reservation] = field(default_factory=list, init=False)
    _changed: threading.Condition = field(default_factory=threading.Condition, init=False, repr=False)

    def __post_init__(self) -> None:
        self._spent = self.before

    @property
    def spent(self) -> Spent:
        return self._spent

    def add(self, answer: Answer) -> None:
        """Book a paid answer."""
        with self._changed:
            self._spent = self._spent.plus(answer)
            self._changed.notify_all()

    @contextmanager
    def reserve(self, ask: Ask, price: Price) -> Iterator[Reservation]:
        """Hold budget for one call; waits while other calls hold what would be needed, raises BudgetReached when it is spent."""
        with self._changed:
            while (reservation := self._try(ask, price)) is None:
                if not self._open:
                    raise BudgetReached(self._sentence(ask))
                self._changed.wait()
            self._open.append(reservation)
        try:
            yield reservation
        finally:
            with self._changed:
                self._open.remove(reservation)
                self._changed.notify_all()

    def _try(self, ask: Ask, price: Price) -> Reservation | None:
        prompt = int(ask.letters / LETTERS_PER_TOKEN) + 16
        cap = ask.max_tokens
        if self.limits.max_tokens is not None:
            left = self.limits.max_tokens - self._spent.tokens - sum(held.tokens for held in self._open)
            cap = min(cap, left - prompt)
        if self.limits.max_cost_usd is not None:
            left_usd = self.limits.max_cost_usd - self._spent.cost_usd - sum(held.dollars for held in self._open)
            for_prompt, for_both = price(prompt, 0), price(prompt, 1_000_000)
            if left_usd <= 0:
                return None
            if for_prompt is not None and for_both is not None and for_both > for_prompt:
                cap = min(cap, int((left_usd - for_prompt) / (for_both - for_prompt) * 1e6))
        if cap < min(ask.max_tokens, SMALLEST_ANSWER):
            return None
        return Reservation(cap, prompt + cap, price(prompt, cap) or 0.0)

    def _sentence(self, ask: Ask) -> str:
        limits, spent = self.limits, self._spent
        parts = []
        if limits.max_tokens is not None:
            parts.append(f"{spent.tokens:,} of {limits.max_tokens:,} tokens")
        if limits.max_cost_usd is not None:
            parts.append(f"${spent.cost_usd:.4f} of ${limits.max_cost_usd:g}")
        return f"the run's limit for models is reached: {' and '.join(parts)} are spent, too little is left for the {ask.role}"
