"""The Store: memos by hash, contents, runs and lessons behind one object. Safe for threads, and for several processes at once."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from kernelwright.core.errors import StoreError, ToolMissing
from kernelwright.core.folders import data_folder
from kernelwright.store.nouns import Kind, Lesson, Pruned, RunRecord, Step
from kernelwright.store.run import Run

if TYPE_CHECKING:
    from kernelwright.store.contents import Contents
    from kernelwright.store.tables import Database

DAY = 86400.0
GRACE = 60.0
"""Seconds. Contents younger than this are never pruned: their writer may be about to refer to them."""


class Store:
    """See the room's first page. Made by `Store.open`."""

    def __init__(self, database: Database, contents: Contents) -> None:
        self._database = database
        self._contents = contents

    def __repr__(self) -> str:
        return f"<store {self._database.title}>"

    @classmethod
    def open(cls, place: str | Path | None = None) -> Self:
        """Open or make a store: a folder, a database URL (then contents are in the database too), or None for the data folder."""
        try:
            import sqlalchemy as sa
        except ModuleNotFoundError:
            raise ToolMissing("SQLAlchemy", "the store of runs", "pip install 'kernelwright[store]'") from None
        from kernelwright.store.contents import FolderContents, TableContents
        from kernelwright.store.tables import Database, disk_sentence, sqlite_url

        if isinstance(place, str) and "://" in place:
            try:
                title = sa.make_url(place).render_as_string(hide_password=True)
            except sa.exc.ArgumentError:
                raise StoreError("the store's setting looks like a database URL and is none") from None
            database = Database(place, title)
            return cls(database, TableContents(database))
        folder = Path(place).expanduser() if place else data_folder("store")
        try:
            (folder / "contents").mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise StoreError(f"{folder}: {disk_sentence(error)}") from error
        database = Database(sqlite_url(folder / "store.sqlite"), str(folder / "store.sqlite"))
        return cls(database, FolderContents(folder / "contents", database))

    def close(self) -> None:
        """Let go of the database."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Contents: bytes under their hash, for inputs and results of steps.

    def put(self, data: bytes) -> str:
        """Keep bytes and return their hash."""
        return self._contents.put(data)

    def get(self, name: str) -> bytes | None:
        """The bytes of a hash; None where they were pruned, StoreError where they are damaged."""
        return self._contents.get(name)

    # Memos: the result of something expensive under the hash of all that it depends on.

    def recall(self, kind: str, key: str) -> bytes | None:
        """What was kept under this key; None when it must be made (again)."""
        import sqlalchemy as sa

        from kernelwright.store.tables import memos, misfits

        here = (memos.c.kind == kind) & (memos.c.key == key)
        with self._database.read() as connection:
            row = connection.execute(sa.select(memos).where(here)).first()
        if row is None or misfits(row, memos):
            return None
        data = None
        with suppress(StoreError):  # damaged: to make it again heals it
            data = self._contents.get(row.content)
        if data is not None and time.time() - row.used > DAY:  # a sync for each recall would be dear; a day is near enough
            with self._database.write() as connection:
                connection.execute(memos.update().where(here).values(used=time.time()))
        return data

    def keep(self, kind: str, key: str, data: bytes, **facts: Any) -> str:
        """Remember bytes under a key, durably; returns their hash. Kept again, the newer counts."""
        import sqlalchemy as sa

        from kernelwright.store.tables import memos

        values = {"content": self._contents.put(data), "facts": json.dumps(facts, default=str), "used": time.time()}
        update = memos.update().where(memos.c.kind == kind, memos.c.key == key).values(**values)
        try:
            with self._database.write() as connection:
                if connection.execute(update).rowcount == 0:
                    connection.execute(memos.insert().values(kind=kind, key=key, **values))
        except sa.exc.IntegrityError:
            with self._database.write() as connection:  # another machine kept it at the same moment
                connection.execute(update)
        return str(values["content"])

    # Runs.

    def begin(self, job: Mapping[str, Any], *, run_id: str | None = None) -> Run:
        """Open the journal of a new run. `job` is all that `resume` needs to do the same again."""
        from kernelwright.store import journal

        return journal.begin(self._database, job, run_id)

    def resume(self, prefix: str) -> Run:
        """Open the journal of an earlier run again; refused while another process works on it."""
        from kernelwright.store import journal

        return journal.resume(self._database, prefix)

    def queue(self, job: Mapping[str, Any], run_id: str) -> None:
        """Put down a run for whoever calls `resume` first."""
        from kernelwright.store import journal

        journal.queue(self._database, job, run_id)

    def set_aside(self, run_id: str, status: str) -> bool:
        """Mark a run that nobody works on ("queued", "stopped"); False where somebody does."""
        from kernelwright.store import journal

        return journal.set_aside(self._database, run_id, status)

    def holder(self, run_id: str) -> int | None:
        """The process on this machine that works on a run."""
        from kernelwright.store import journal

        return journal.holder(self._database, run_id)

    def overview(self, since: float | None = None) -> list[tuple[RunRecord, int]]:
        """Runs with how many steps they have, and of these only those that a summary counts: all runs, or those written to since."""
        from kernelwright.store import journal

        records = journal.listing(self._database) if since is None else journal.touched(self._database, since)
        wanted = None if since is None else [record.id for record in records]
        counted: dict[str, list[Step]] = {}
        for run, step in journal.told(self._database, wanted) if records else ():
            counted.setdefault(run, []).append(step)
        lengths = journal.lengths(self._database, wanted) if records else {}
        return [(replace(one, steps=tuple(counted.get(one.id, ()))), lengths.get(one.id, 0)) for one in records]

    def run_names(self) -> set[str]:
        """The ids of all runs."""
        from kernelwright.store import journal

        return journal.names(self._database)

    def runs(self) -> list[RunRecord]:
        """All runs without their steps, the newest first."""
        from kernelwright.store import journal

        return journal.listing(self._database)

    def load_run(self, prefix: str) -> RunRecord:
        """One run with its steps, by a prefix of its id that is unique."""
        from kernelwright.store import journal

        return journal.load(self._database, prefix)

    # Lessons.

    def learn(self, lesson: Lesson) -> None:
        """Keep something that worked."""
        from kernelwright.store import lessons

        lessons.learn(self._database, lesson)

    def lessons(
        self,
        query: str,
        family: str | None = None,
        dsl: str | None = None,
        target: str | None = None,
        limit: int = 5,
        *,
        kind: Kind | None = None,
    ) -> list[Lesson]:
        """What is most worth showing for a task, best first."""
        from kernelwright.store import lessons

        return lessons.find(self._database, query, family=family, dsl=dsl, target=target, kind=kind, limit=limit)

    def prune(self, days: float) -> Pruned:
        """Forget runs and memos that were not touched for so many days, and contents that nothing refers to any more."""
        from kernelwright.store.pruning import prune

        return prune(self._database, self._contents, days)
