"""The Conductor: what happened and what may still be spent in, the next move with its reason out. No clock, no model, no disk decide.

1. `nouns.py`      Move, Kind, Turn, Allowance, Decision.
2. `situation.py`  a history of turns → the facts that rows may ask for (`kind`, `speed`, `patches_left`, …); each is documented there.
3. `table.toml`    the table: rows that are read from top to bottom, the first that fits decides. `table.py` reads it (or a user's own
   file) and decides; `check.py` finds dead ends in one before a run begins; `draw.py` draws it.

The same history always gives the same decision, which is what makes a resumed run repeat itself without paying again. No row can
overrule the judge: a verdict arrives here as a fact.
"""

from __future__ import annotations

from kernelwright.agents.conductor.nouns import Allowance, Decision, Kind, Move, Turn
from kernelwright.agents.conductor.situation import History
from kernelwright.agents.conductor.table import Table, decide, load, standard

__all__ = ["Allowance", "Decision", "History", "Kind", "Move", "Table", "Turn", "decide", "load", "standard"]
