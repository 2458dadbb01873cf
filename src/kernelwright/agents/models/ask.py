"""The two nouns of this room: an Ask goes to a model, an Answer comes back. Plain frozen data, nothing heavy is imported."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

Form = Literal["sketch", "kernel", "patch", "task", "advice"]
"""What is wanted back: a sketch, a kernel file, search/replace blocks, a task file, or a few sentences."""

Finish = Literal["stop", "length"]
"""Why the model ended: it was done, or it ran into the limit of tokens (then the text is cut off)."""


@dataclass(frozen=True)
class Tool:
    """What a model may call before it answers: a name, what it does, and its parameters (name → what it is), all of them texts."""

    name: str
    about: str
    parameters: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Call:
    """One call of a tool, as a model wrote it: the arguments are untrusted text."""

    id: str
    tool: str
    arguments: tuple[tuple[str, str], ...] = ()

    @property
    def given(self) -> dict[str, str]:
        return dict(self.arguments)


@dataclass(frozen=True)
class Exchange:
    """What a model said and called, and what came back, in the order of the calls."""

    text: str
    calls: tuple[Call, ...]
    results: tuple[str, ...]


@dataclass(frozen=True)
class Ask:
    """One question of one role. `attempt` makes the same words a new question when another answer is wanted. `tools` may be called;
    `exchanges` are the calls that were made already for this question. `seconds` is what is left of the run's time: no part of the
    question itself."""

    role: str
    system: str
    user: str
    form: Form
    attempt: int = 0
    max_tokens: int = 8192
    temperature: float | None = None
    tools: tuple[Tool, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    seconds: float | None = None

    def __post_init__(self) -> None:
        if self.form not in get_args(Form):
            raise ValueError(f"form {self.form!r} is unknown; choose one of {', '.join(get_args(Form))}")

    def key(self, model: str) -> str:
        """Identity of this question to this model: SHA-256 over everything that may change the answer."""
        text = json.dumps([model, self.to_json()], sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def letters(self) -> int:
        """How long the question is, with what was said since."""
        said = sum(len(one.text) + sum(map(len, one.results)) + len(str(one.calls)) for one in self.exchanges)
        return len(self.system) + len(self.user) + said + sum(len(tool.about) + 200 for tool in self.tools)

    def after(self, exchange: Exchange) -> Ask:
        """The same question after calls of tools."""
        return replace(self, exchanges=(*self.exchanges, exchange))

    def to_json(self) -> dict[str, Any]:
        """The question as plain data; what it has nothing of is left out, so that questions of old keep their identity."""
        data = asdict(self)
        del data["seconds"]
        return {key: value for key, value in data.items() if value or key not in ("tools", "exchanges")}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Ask:
        """The question from its record."""
        tools = tuple(Tool(one["name"], one["about"], _pairs(one["parameters"])) for one in data.get("tools", ()))
        exchanges = tuple(
            Exchange(one["text"], tuple(_call(call) for call in one["calls"]), tuple(one["results"]))
            for one in data.get("exchanges", ())
        )
        return cls(**{**data, "tools": tools, "exchanges": exchanges})


@dataclass(frozen=True)
class Answer:
    """What came back: a text, or calls of tools whose results are wanted first. `cost_usd` is None where the price is unknown; `recalled`
    means that nothing was paid this time."""

    text: str
    tokens_in: int
    tokens_out: int
    cost_usd: float | None
    seconds: float
    finish: Finish = "stop"
    recalled: bool = False
    calls: tuple[Call, ...] = ()

    def facts(self) -> dict[str, Any]:
        """For the journal: what it took, without the text."""
        return {key: value for key, value in asdict(self).items() if key not in ("text", "calls")}

    def to_json(self) -> dict[str, Any]:
        """All but `recalled`, which is about this time and not about the answer."""
        return {key: value for key, value in asdict(self).items() if key != "recalled" and (key != "calls" or value)}

    @classmethod
    def from_json(cls, data: dict[str, Any], *, recalled: bool = True) -> Answer:
        """The answer from its record; a record that is not one raises ValueError."""
        try:
            cost = data["cost_usd"]
            finish = data["finish"]
            if not isinstance(data["text"], str) or finish not in get_args(Finish):
                raise ValueError("no text or an unknown finish")
            return cls(
                text=data["text"],
                tokens_in=int(data["tokens_in"]),
                tokens_out=int(data["tokens_out"]),
                cost_usd=None if cost is None else float(cost),
                seconds=float(data["seconds"]),
                finish=finish,
                recalled=recalled,
                calls=tuple(_call(call) for call in data.get("calls", ())),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not the record of an answer: {error}") from error


def _call(data: dict[str, Any]) -> Call:
    return Call(str(data["id"]), str(data["tool"]), _pairs(data["arguments"]))


def _pairs(data: Any) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(value)) for name, value in data)
