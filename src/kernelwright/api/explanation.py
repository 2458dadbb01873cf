"""What became of each graph of a program: records that the backend fills, and a table of them.

`KERNELWRIGHT_EXPLAIN=1` prints a graph's lines when it is decided; `kernelwright.explain(model)` gives the table at any time.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Row:
    """One distinct piece of a graph: its operators, whether ours is used, its gain over eager, eager's seconds, why not, how often, and
    its share of the graph's time."""

    operators: str
    used: bool
    gain: float
    eager: float
    why: str
    times: int
    share: float = 0.0


@dataclass
class Record:
    """One graph of Dynamo. `gain` is the race of the whole; `why` says what keeps it with eager."""

    number: int
    operators: int
    rows: list[Row] = field(default_factory=list)
    used: bool = False
    gain: float = 0.0
    low: float = 0.0
    high: float = 0.0
    eager: float = 0.0
    why: str = ""
    seconds: float = 0.0
    """What preparing took."""
    before: dict[str, float] = field(default_factory=dict, repr=False)
    after: dict[str, float] = field(default_factory=dict, repr=False)
    """Seconds by operator, in eager and with our pieces."""
    keys: list[str] = field(default_factory=list, repr=False)
    """Identities of the pieces that are used."""
    tensors: list[weakref.ref[Any]] = field(default_factory=list, repr=False)

    def belongs(self, model: Any) -> bool:
        """Whether the graph works on a parameter or buffer of the model."""
        own = {id(t) for t in (*model.parameters(), *model.buffers())}
        return any(id(t()) in own for t in self.tensors if t() is not None)

    def say(self) -> None:
        """Prints the graph's lines where the environment asks for it."""
        if os.environ.get("KERNELWRIGHT_EXPLAIN", "") not in ("", "0"):
            print(Explanation([self]), file=sys.stderr)


RECORDS: list[Record] = []
_LOCK = threading.Lock()


def new_record(operators: int, inputs: Any) -> Record:
    """A record for one more graph of this process."""
    import torch

    with _LOCK:
        record = Record(len(RECORDS), operators)
        record.tensors = [weakref.ref(t) for t in inputs if isinstance(t, torch.Tensor)]
        RECORDS.append(record)
    return record


@dataclass(frozen=True)
class Explanation:
    """Prints as a table; `records` has the same as data."""

    records: list[Record]

    def __str__(self) -> str:
        lines = [("graph", "operators", "share", "runs", "gain", "why not")]
        for record in self.records:
            who = "kernelwright" if record.used else "eager"
            lines.append((f"{record.number}", f"{record.operators} operators", "", who, _gain(record.gain), record.why))
            for row in record.rows:
                named = f"  {_short(row.operators)}{f' x{row.times}' if row.times > 1 else ''}"
                share = f"{row.share:.0%}" if row.share else ""
                lines.append(("", named, share, "kernelwright" if row.used else "eager", _gain(row.gain), row.why))
        widths = [max(len(line[k]) for line in lines) for k in range(5)]
        return "\n".join("  ".join([*(line[k].ljust(widths[k]) for k in range(5)), line[5]]).rstrip() for line in lines)

    __repr__ = __str__


def explain(model: Any = None) -> Explanation:
    """The graphs that were compiled in this process: all, or those that work on this model's parameters and buffers."""
    return Explanation([r for r in RECORDS if model is None or r.belongs(model)])


def _gain(gain: float) -> str:
    return f"{gain:.2f}x" if gain else "-"


def _short(text: str, width: int = 60) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
