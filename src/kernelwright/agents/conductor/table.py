"""The table as data: `load` reads a TOML file of rows, `decide` reads the rows from top to bottom for a history.

In: a file (ours is `table.toml`), turns and an allowance. Out: a `Decision`. A row that asks for an unknown fact, names an unknown move or
mentions an unknown word is a ConfigError with the file and the row; whether the whole has dead ends is `check.py`'s question.
"""

from __future__ import annotations

import operator
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kernelwright.agents.conductor.nouns import Allowance, Decision, Move, Turn
from kernelwright.agents.conductor.situation import FACTS, TOLD, Fact, facts, told
from kernelwright.core.errors import ConfigError

OURS = Path(__file__).with_name("table.toml")
FIRST = "row"
AGAIN = "again"
COMPARISON = re.compile(r"(>=|<=|>|<)\s*(\d+)")
COMPARE: dict[str, Callable[[int, int], bool]] = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
DEEPEST = 8
"""Groups that may lead to groups; more of them go in a circle."""


@dataclass(frozen=True)
class Row:
    """One row: what must hold, what comes next, and why."""

    name: str
    when: Mapping[str, Any]
    then: str
    because: str

    def fits(self, known: Mapping[str, Fact]) -> bool:
        return all(_holds(known[name], wanted) for name, wanted in self.when.items())


@dataclass(frozen=True)
class Table:
    """The rows of a file by group; `row` is read first."""

    path: str
    groups: Mapping[str, tuple[Row, ...]]

    def next(self, turns: tuple[Turn, ...], allowance: Allowance) -> Decision:
        """The next move after these turns."""
        if not turns:
            return Decision(Move.seed, "the built-in kernel comes first: nothing worse than it is ever returned", "first")
        known = facts(turns, allowance)
        words = {**told(turns, allowance), "unread": str(known["unread"]), "why": ""}
        group, rule = FIRST, ""
        for _ in range(DEEPEST):
            row = next((row for row in self.groups[group] if row.fits(known)), None)
            if row is None:
                raise ConfigError(f"{self.path}: no row of {group} answers {turns[-1].move}:{turns[-1].kind}")
            rule = rule or row.name
            reason = row.because.format(**words)
            if row.then == AGAIN:
                return Decision(turns[-1].move, reason, rule)
            if row.then in self.groups:
                group, words = row.then, {**words, "why": reason}
                continue
            return Decision(Move(row.then), reason, rule)
        raise ConfigError(f"{self.path}: its groups lead to one another in a circle, from {rule}")


def load(path: Path) -> Table:
    """A table from a file."""
    try:
        data = tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"{path}: the table cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: this is not TOML: {error}") from error
    if not isinstance(data.get(FIRST), list):
        raise ConfigError(f"{path}: a table has rows, [[{FIRST}]], each with name, when, then and because")
    groups = {name: tuple(_row(path, name, set(data), row) for row in _rows(path, name, rows)) for name, rows in data.items()}
    return Table(str(path), groups)


@cache
def standard() -> Table:
    """Our own table."""
    return load(OURS)


def decide(turns: tuple[Turn, ...], allowance: Allowance, table: Table | None = None) -> Decision:
    """The next move after these turns, by our table or another."""
    return (table or standard()).next(turns, allowance)


def _rows(path: Path, name: str, rows: Any) -> list[dict[str, Any]]:
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ConfigError(f"{path}: {name} is no list of rows; write [[{name}]]")
    return rows


def _row(path: Path, group: str, groups: set[str], row: dict[str, Any]) -> Row:
    name = str(row.get("name", "?"))
    where = f"{path}, row {name!r} of {group}"
    if set(row) != {"name", "when", "then", "because"}:
        raise ConfigError(f"{where}: a row has name, when, then and because")
    when, then, because = row["when"], str(row["then"]), str(row["because"])
    if not isinstance(when, dict) or (unknown := [fact for fact in when if fact not in FACTS]):
        raise ConfigError(
            f"{where}: {unknown[0] if isinstance(when, dict) else when!r} is no fact; known are {', '.join(FACTS)}"
        )
    moves = {str(move) for move in Move} - {"seed"}
    if then not in moves | groups | {AGAIN}:
        raise ConfigError(f"{where}: then = {then!r} is no move; known are {', '.join(sorted(moves | groups | {AGAIN}))}")
    words = (*TOLD, "unread", "why")
    if unknown := [word for word in re.findall(r"\{(\w*)\}", because) if word not in words]:
        raise ConfigError(f"{where}: {{{unknown[0]}}} is nothing that a reason can mention; known are {', '.join(words)}")
    return Row(name, when, then, because)


def _holds(value: Fact, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return any(_holds(value, one) for one in wanted)
    if isinstance(wanted, str) and isinstance(value, int) and not isinstance(value, bool):
        found = COMPARISON.fullmatch(wanted)
        return found is not None and COMPARE[found[1]](value, int(found[2]))
    return type(value) is type(wanted) and value == wanted
