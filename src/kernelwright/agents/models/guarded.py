"""A source with everything a run needs around it: memory, limits, concurrency, recording, and no keys in any text.

One call, in order: keys are taken out of the ask; the store is asked (an answer that was paid for in this run is never paid twice, also
when two threads ask the same at once; another run asks anew);
 budget is reserved; the source answers; the answer is booked, stored, recorded, returned.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kernelwright.agents.models.ask import Answer, Ask
from kernelwright.agents.models.limits import Ledger
from kernelwright.agents.models.secrets import Redactor
from kernelwright.agents.models.source import Source
from kernelwright.core.errors import BudgetReached, ConfigError, ModelError

if TYPE_CHECKING:
    from kernelwright.agents.models.model import OnText
    from kernelwright.store import Store

KIND = "answer"
"""Under which kind the store keeps answers."""


class GuardedModel:
    """The Model that `open_model` returns."""

    def __init__(
        self, source: Source, *, store: Store | None, ledger: Ledger, record: Path | None = None, run: str = ""
    ) -> None:
        limits = ledger.limits
        if limits.max_cost_usd is not None and limits.max_tokens is None and source.price(1000, 1000) is None:
            raise ConfigError(
                f"the price of {source.name} is unknown, so a limit in dollars cannot be kept; set a limit of tokens (--max-tokens)"
            )
        self.name = source.name
        self.ledger = ledger
        self._source = source
        self._store = store
        self._record = record
        self._run = run
        self._places = threading.BoundedSemaphore(limits.concurrency)
        self._lock = threading.Lock()
        self._asking: dict[str, threading.Lock] = {}

    @property
    def tools(self) -> bool:
        return self._source.tools

    def __repr__(self) -> str:
        return f"<model {self.name}>"

    def ask(self, ask: Ask, on_text: OnText | None = None) -> Answer:
        redactor = Redactor()
        exchanges = tuple(replace(one, results=tuple(map(redactor.clean, one.results))) for one in ask.exchanges)
        ask = replace(ask, system=redactor.clean(ask.system), user=redactor.clean(ask.user), exchanges=exchanges)
        key = ask.key(f"{self.name} in {self._run}" if self._run else self.name)
        with self._lock:
            one_at_a_time = self._asking.setdefault(key, threading.Lock())
        with one_at_a_time:
            answer = self._recall(key)
            if answer is None:
                answer = self._pay(ask, key, on_text, redactor)
            elif on_text:
                on_text(answer.text)
        self._write(ask, answer)
        return answer

    def close(self) -> None:
        self._source.close()

    def _recall(self, key: str) -> Answer | None:
        data = self._store.recall(KIND, key) if self._store else None
        if data is None:
            return None
        with suppress(ValueError):  # a damaged record is no answer: it is asked for again
            return Answer.from_json(json.loads(data))
        return None

    def _pay(self, ask: Ask, key: str, on_text: OnText | None, redactor: Redactor) -> Answer:
        with self._places, self.ledger.reserve(ask, self._source.price) as reservation:
            stream = redactor.stream(on_text) if on_text else None
            try:
                answer = self._source.fetch(ask, reservation.cap, stream.feed if stream else None, self.ledger.add)
            except ModelError as error:
                sentence = redactor.clean(str(error))
            else:
                if stream:
                    stream.end()
                sentence = ""
                answer = replace(answer, text=redactor.clean(answer.text))
                self.ledger.add(answer)
        if sentence:
            # Raised out here, so that no traceback leads to the request with its key.
            raise ModelError(sentence)
        if answer.finish == "length" and reservation.cap < ask.max_tokens:
            raise BudgetReached(
                f"the answer for the {ask.role} was cut off at {reservation.cap} tokens, all that the run's limit left"
            )
        if self._store and not answer.recalled:
            data = json.dumps(answer.to_json()).encode()
            self._store.keep(KIND, key, data, role=ask.role, model=self.name, cost_usd=answer.cost_usd)
        return answer

    def _write(self, ask: Ask, answer: Answer) -> None:
        if self._record is None:
            return
        line = json.dumps({"model": self.name, "ask": ask.to_json(), "answer": answer.to_json()}) + "\n"
        with self._lock:
            try:
                descriptor = os.open(self._record, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
                with os.fdopen(descriptor, "ab") as file:
                    file.write(line.encode())
            except OSError as error:
                raise ModelError(f"{self._record}: the recording cannot be written: {error.strerror or error}") from error
