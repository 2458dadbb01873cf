"""Forgetting: old runs with their steps, memos that nobody recalled, and the contents that nothing refers to any more.

Lessons stay: they are small, and the point of keeping anything. A run that is being worked on stays, whatever its age.
"""

from __future__ import annotations

import json
import time

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from kernelwright.store import tables
from kernelwright.store.contents import Contents
from kernelwright.store.journal import RUNNING, alive
from kernelwright.store.nouns import Pruned
from kernelwright.store.store import DAY, GRACE
from kernelwright.store.tables import Database


def prune(database: Database, contents: Contents, days: float) -> Pruned:
    """See Store.prune."""
    cutoff = time.time() - days * DAY
    with database.write() as connection:
        runs = _forget_runs(connection, cutoff)
        memos = connection.execute(tables.memos.delete().where(tables.memos.c.used < cutoff)).rowcount
        needed = _referred(connection)
    dropped = freed = 0
    unused_since = min(cutoff, time.time() - GRACE)
    for name, used, size in list(contents.names()):
        if name not in needed and used <= unused_since and contents.drop(name, unused_since):
            dropped += 1
            freed += size
    return Pruned(runs, memos, dropped, freed)


def _forget_runs(connection: Connection, cutoff: float) -> int:
    table = tables.runs
    old = connection.execute(sa.select(table.c.id, table.c.status, table.c.owner).where(table.c.touched < cutoff)).all()
    gone = [row.id for row in old if not (row.status == RUNNING and alive(row.owner))]
    for start in range(0, len(gone), 500):  # databases limit the number of parameters
        part = gone[start : start + 500]
        connection.execute(tables.steps.delete().where(tables.steps.c.run.in_(part)))
        connection.execute(table.delete().where(table.c.id.in_(part)))
    return len(gone)


def _referred(connection: Connection) -> set[str]:
    """Every hash that a memo, a run or a step still names."""
    names = set(connection.execute(sa.select(tables.memos.c.content)).scalars())
    names |= set(connection.execute(sa.select(tables.runs.c.best)).scalars())
    for inputs, result in connection.execute(sa.select(tables.steps.c.inputs, tables.steps.c.result)):
        names.add(result)
        try:
            names |= {str(name) for name in json.loads(inputs).values()}
        except (ValueError, AttributeError, TypeError):
            continue  # a damaged step names nothing
    return names
