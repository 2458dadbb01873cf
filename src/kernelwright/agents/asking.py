"""Asking a model on behalf of the team: the question with what is left of the budget, what became of the last answer, the text that came.

In: a model and an `Ask`. Out: `Said`: the question as it was put, and its answer. An answer that could not be used is told to its author
with the next question, which is a new question: no memory answers it with the old answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelwright.agents import answers, roles
from kernelwright.agents.models import Answer, Ask, Model
from kernelwright.run.journal import Journal
from kernelwright.run.observer import Observer
from kernelwright.run.workbench import Workbench


@dataclass(frozen=True)
class Said:
    """A question as it was put, and its answer."""

    ask: Ask
    answer: Answer

    @property
    def text(self) -> str:
        return self.answer.text

    def whole(self) -> str:
        """The text of an answer that was not cut off."""
        if self.answer.finish == "length":
            raise answers.Unreadable(
                f"the answer was cut off after {self.answer.tokens_out} tokens; think less aloud and send a shorter one"
            )
        return self.answer.text


@dataclass
class Asking:
    """For one run. `_unread` are the answers in a row that could not be used, each with the reason."""

    bench: Workbench
    journal: Journal
    observer: Observer
    _unread: list[tuple[str, str]] = field(default_factory=list)

    def ask(self, model: Model, ask: Ask) -> Said:
        """The answer to a question, which tells of the last answer where that could not be used."""
        if self._unread:
            reason, before = self._unread[-1]
            ask = roles.again(ask, reason, before, len(self._unread))
        self.observer.say(f"{ask.role} · {model.name}")
        answer = model.ask(ask, self.observer.text)
        self.bench.seconds += answer.seconds
        return Said(ask, answer)

    def unreadable(self, reason: str, text: str) -> None:
        """The last answer could not be used."""
        self._unread.append((reason, text))

    def readable(self) -> None:
        """The last answer could be used."""
        self._unread.clear()
