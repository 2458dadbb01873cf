"""What is read from a store, as plain frozen data: nothing heavy is imported here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

Kind = Literal["kernel", "sketch", "fix"]

Identity = tuple[str, str, str | None]


@dataclass(frozen=True)
class Step:
    """One thing that was done: why, from which contents (by hash), and what came of it."""

    number: int
    kind: str
    reason: str
    inputs: dict[str, str]
    result: str | None
    facts: dict[str, Any]
    at: float

    @property
    def identity(self) -> Identity:
        """What makes it the same step in a replay; facts (times, costs) may differ."""
        return identity(self.kind, self.inputs, self.result)


@dataclass(frozen=True)
class RunRecord:
    """A run as the store has it. `status` is "interrupted" where its process is gone; `damaged` names rows that were unreadable."""

    id: str
    job: dict[str, Any]
    status: str
    best: str | None
    started: float
    touched: float
    seconds: float
    steps: tuple[Step, ...] = ()
    damaged: tuple[str, ...] = ()

    def parents(self) -> dict[int, int | None]:
        """For each step the one it came from: the latest earlier step whose result is one of its inputs."""
        made: dict[str, int] = {}
        found: dict[int, int | None] = {}
        for step in self.steps:
            found[step.number] = max((made[name] for name in step.inputs.values() if name in made), default=None)
            if step.result is not None:
                made[step.result] = step.number
        return found


@dataclass(frozen=True)
class Lesson:
    """`text` is what is searched (what was computed, which error it was); `payload` what is shown (the code, the patch), plain JSON.
    A lesson for every language has dsl "any"."""

    kind: Kind
    family: str
    dsl: str
    target: str
    text: str
    payload: dict[str, Any]

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"kind {self.kind!r} is unknown; choose one of {', '.join(get_args(Kind))}")

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Pruned:
    """What pruning removed."""

    runs: int
    memos: int
    contents: int
    bytes: int


def identity(kind: str, inputs: Mapping[str, str], result: str | None) -> Identity:
    """Kind, inputs and result as something that can be compared."""
    return kind, json.dumps(dict(inputs), sort_keys=True), result
