"""`replay:FILE`: a recording answers, strictly. In: JSONL as `record` writes it. Out: the recorded answer to exactly the same ask.

A miss is an error that names the role and the first difference from the recorded ask that is most alike, so that one sees what
changed in a prompt. The model's name does not count: a recording stands for every model that was recorded into it.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kernelwright.agents.models.ask import Answer, Ask
from kernelwright.core.errors import ModelError

ANY_MODEL = ""
SHOWN = 80
"""Letters of a differing line that fit into one sentence."""


class Replay:
    """A Source that reads a recording once and never asks anybody. Whoever was recorded may have known no tools: then the same question
    without them is the recorded one."""

    tools = True

    def __init__(self, path: Path) -> None:
        self.name = f"replay:{path}"
        self._answers: dict[str, Answer] = {}
        self._asks: list[Ask] = []
        for number, line in enumerate(_lines(path), start=1):
            if line.strip():
                ask, answer = _record(path, number, line)
                self._answers[ask.key(ANY_MODEL)] = answer
                self._asks.append(ask)

    def fetch(self, ask: Ask, cap: int, on_text: Callable[[str], None] | None, book: Callable[[Answer], None]) -> Answer:
        answer = self._answers.get(ask.key(ANY_MODEL))
        if answer is None and not ask.exchanges:
            answer = self._answers.get(replace(ask, tools=()).key(ANY_MODEL))
        if answer is None:
            raise ModelError(f"{self.name}: no answer to this ask of the {ask.role}: {self._difference(ask)}")
        if on_text:
            on_text(answer.text)
        return answer

    def price(self, tokens_in: int, tokens_out: int) -> float | None:
        return 0.0

    def close(self) -> None:
        """Nothing is held open."""

    def _difference(self, ask: Ask) -> str:
        same_role = [other for other in self._asks if other.role == ask.role]
        if not same_role:
            roles = ", ".join(sorted({other.role for other in self._asks})) or "nobody"
            return f"the recording has asks of {roles} only"
        nearest = max(same_role, key=lambda other: _similarity(ask, other))
        now, then = ({**asdict(one), "seconds": None} for one in (ask, nearest))
        field = next(name for name in now if now[name] != then[name])
        if field not in ("system", "user"):
            return f"{field} is {now[field]!r} and was {then[field]!r}"
        difference = _first_difference(str(then[field]), str(now[field]))
        return (
            f"{field} differs from the nearest recorded one at line {difference.line}: "
            f"{difference.now!r} where {difference.then!r} was"
        )


@dataclass(frozen=True)
class Difference:
    """The first line in which two texts differ; "" where one of them has ended."""

    line: int
    then: str
    now: str


def _first_difference(then: str, now: str) -> Difference:
    # Split at "\n" only: texts that differ must differ in some line, also when all that differs is a form feed or the last "\n".
    before, after = then.split("\n"), now.split("\n")
    longest = max(len(before), len(after))
    before += [""] * (longest - len(before))
    after += [""] * (longest - len(after))
    index = next((index for index in range(longest) if before[index] != after[index]), longest - 1)
    return Difference(index + 1, _around(before[index], after[index]), _around(after[index], before[index]))


def _around(line: str, other: str) -> str:
    """The part of a long line where it begins to differ."""
    start = next((i for i, (a, b) in enumerate(zip(line, other, strict=False)) if a != b), min(len(line), len(other)))
    start = max(0, start - SHOWN // 2) if len(line) > SHOWN else 0
    return line[start : start + SHOWN]


def _similarity(ask: Ask, other: Ask) -> tuple[int, float]:
    """Equal fields first, then how alike the words are."""
    a, b = asdict(ask), asdict(other)
    words = difflib.SequenceMatcher(None, ask.user.splitlines(), other.user.splitlines(), autojunk=False)
    return sum(a[name] == b[name] for name in a), words.quick_ratio()


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        raise ModelError(f"{path}: there is no such recording; make one with --record") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"{path}: this recording cannot be read: {error}") from error


def _record(path: Path, number: int, line: str) -> tuple[Ask, Answer]:
    try:
        data = json.loads(line)
        ask = Ask.from_json(data["ask"])
        return ask, Answer.from_json(data["answer"])
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{path}:{number}: this is not the record of an ask and its answer: {error}") from error
