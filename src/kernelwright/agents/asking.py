"""Asking a model on behalf of the team: the question with what is left of the budget, what became of the last answer, the text that came.

In: a model and an `Ask`. Out: `Said`: the question as it was put, and its answer. An answer that could not be used is told to its author
with the next question, which is a new question: no memory answers it with the old answer. A model that calls tools is asked again with
their results, until it answers or may call no more; each round is a step of the journal.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from kernelwright.agents import answers, roles
from kernelwright.agents.models import Answer, Ask, Call, Exchange, Model
from kernelwright.agents.toolbox import Toolbox, told
from kernelwright.core.errors import BudgetReached, KernelwrightError, ModelError
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
    toolbox: Toolbox | None = None
    _unread: list[tuple[str, str]] = field(default_factory=list)

    def ask(self, model: Model, ask: Ask) -> Said:
        """The answer to a question, which tells of the last answer where that could not be used."""
        if self._unread:
            reason, before = self._unread[-1]
            ask = roles.again(ask, reason, before, len(self._unread))
        if self.toolbox is not None and model.tools:
            ask = replace(ask, tools=self.toolbox.offered(ask.role))
        question, left = ask, self.bench.job.effort.tool_calls
        while True:
            self.observer.say(f"{ask.role} · {model.name}")
            answer = model.ask(replace(ask, seconds=self._left()), self.observer.text)
            self.bench.seconds += answer.seconds
            if not answer.calls:
                return Said(question, answer)
            if left <= 0:
                why = "it calls tools where no more calls are allowed; answer with what is known"
                return Said(question, replace(answer, calls=(), text=answer.text or why))
            results = tuple(self._called(ask, call, number < left) for number, call in enumerate(answer.calls))
            left -= len(answer.calls)
            asked = {f"{call.tool} {number}": "\n\n".join(call.given.values()) for number, call in enumerate(answer.calls)}
            self.journal.step(
                "tools",
                f"the {ask.role} looks before it answers: {', '.join(told(call) for call in answer.calls)}",
                asked,
                "\n\n".join(results),
                role=ask.role,
                **answer.facts(),
            )
            more = f"\n\n({left} more calls are allowed.)" if left > 0 else "\n\n(No more calls are allowed: answer now.)"
            results = (*results[:-1], results[-1] + more)
            ask = ask.after(Exchange(answer.text, answer.calls, results))

    def ask_all(self, model: Model, asks: Sequence[Ask]) -> list[Said]:
        """The answers to several questions that wait at the same time, in their order, without tools. What cannot be answered is left out,
        unless nothing is: then the first reason is raised."""
        seconds = self._left()

        def one(ask: Ask) -> Said | KernelwrightError:
            try:
                return Said(ask, model.ask(replace(ask, seconds=seconds)))
            except (ModelError, BudgetReached) as error:
                return error

        self.observer.say(f"{len(asks)} times {asks[0].role} · {model.name}")
        with ThreadPoolExecutor(len(asks)) as pool:
            came = list(pool.map(one, asks))
        said = [answer for answer in came if isinstance(answer, Said)]
        if not said:
            raise next(error for error in came if not isinstance(error, Said))
        self.bench.seconds += max(one.answer.seconds for one in said)
        return said

    def _called(self, ask: Ask, call: Call, allowed: bool) -> str:
        assert self.toolbox is not None
        left = self._left()
        if not allowed or (left is not None and left <= 0):
            return "not done: nothing more may be spent on tools; answer now"
        self.observer.note(f"  {ask.role}: {told(call)}")
        return self.toolbox.call(ask.role, call)

    def _left(self) -> float | None:
        """Seconds of the run's budget that are left: a call ends when they do."""
        budget = self.bench.job.budget
        return None if budget is None else budget - self.bench.seconds

    def unreadable(self, reason: str, text: str) -> None:
        """The last answer could not be used."""
        self._unread.append((reason, text))

    def readable(self) -> None:
        """The last answer could be used."""
        self._unread.clear()
