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
class Ask:
    """One question of one role. `attempt` makes the same words a new question when another answer is wanted."""

    role: str
    system: str
    user: str
    form: Form
    attempt: int = 0
    max_tokens: int = 8192
    temperature: float | None = None

    def __post_init__(self) -> None:
        if self.form not in get_args(Form):
            raise ValueError(f"form {self.form!r} is unknown; choose one of {', '.join(get_args(Form))}")

    def key(self, model: str) -> str:
        """Identity of this question to this model: SHA-256 over everything that may change the answer."""
        text = json.dumps([model, asdict(self)], sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def again(self) -> Ask:
        """The same question, for another answer."""
        return replace(self, attempt=self.attempt + 1)


@dataclass(frozen=True)
class Answer:
    """What came back. `cost_usd` is None where the price is unknown; `recalled` means that nothing was paid this time."""

    text: str
    tokens_in: int
    tokens_out: int
    cost_usd: float | None
    seconds: float
    finish: Finish = "stop"
    recalled: bool = False

    def facts(self) -> dict[str, Any]:
        """For the journal: what it took, without the text."""
        return {key: value for key, value in asdict(self).items() if key != "text"}

    def to_json(self) -> dict[str, Any]:
        """All but `recalled`, which is about this time and not about the answer."""
        return {key: value for key, value in asdict(self).items() if key != "recalled"}

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
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not the record of an answer: {error}") from error
