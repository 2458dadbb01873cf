"""All runs of the store, in memory and up to date: ten thousand are searched in milliseconds.

In: a Store. Out: pages of rows; a number that grows with every change, and the rows that changed after it. One thread asks the store
several times a second for what was written, by whichever process; a run whose process died is found when it is looked at again.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any

from kernelwright.core.errors import StoreError
from kernelwright.store import RunRecord, Store
from kernelwright.store.summary import best_over_time, row
from kernelwright.web.privacy import shown_model

TICK = 0.2
"""Seconds between two looks at the store."""
OVERLAP = 2.0
"""Seconds looked back, because a writer notes the time before its row is there."""
SLOWLY = 25
"""Ticks between two looks at which runs are there at all: forgetting writes no time."""
MOST_POINTS = 24
ORDER = {"running": 0, "queued": 1}
"""What comes first."""


@dataclass
class Row:
    """One run of the list. `version` is the listing's number when it changed last."""

    data: dict[str, Any]
    version: int
    words: str = field(default="")

    @property
    def place(self) -> tuple[int, float]:
        return ORDER.get(self.data["status"], 2), -self.data["started"]


class Listing:
    """Made with a store; `start` begins to follow it, `stop` ends that."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: dict[str, Row] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="listing", daemon=True)
        self._newest = 0.0
        self.version = 0
        self.trouble = ""
        """Why the store cannot be read, while it cannot."""

    def start(self) -> None:
        self._look(None)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def page(
        self, *, offset: int, limit: int, search: str = "", status: str = "", dsl: str = "", target: str = ""
    ) -> dict[str, Any]:
        """Rows in their order, those that fit; and what there is to choose from."""
        words = search.lower().split()
        with self._lock:
            rows, version = sorted(self._rows.values(), key=lambda one: one.place), self.version
        fits = [
            one.data
            for one in rows
            if (not status or one.data["status"] == status)
            and (not dsl or one.data["dsl"] == dsl)
            and (not target or one.data["target"] == target)
            and all(word in one.words for word in words)
        ]
        choices = {name: _counted(rows, name) for name in ("status", "dsl", "target")}
        found = fits[offset : offset + limit]
        return {
            "total": len(fits),
            "all": len(rows),
            "rows": found,
            "choices": choices,
            "version": version,
            "trouble": self.trouble,
        }

    def row(self, run: str) -> dict[str, Any] | None:
        with self._lock:
            found = self._rows.get(run)
        return found.data if found else None

    def changed(self, after: int) -> tuple[int, list[dict[str, Any]]]:
        """The number now, and the rows that changed after another."""
        with self._lock:
            return self.version, [one.data for one in self._rows.values() if one.version > after]

    def having(self, *statuses: str) -> list[str]:
        """The runs in one of these states, the oldest first."""
        with self._lock:
            found = [one.data for one in self._rows.values() if one.data["status"] in statuses]
        return [data["run"] for data in sorted(found, key=lambda data: data["started"])]

    def _follow(self) -> None:
        ticks = 0
        while not self._ended.wait(TICK):
            ticks += 1
            try:
                self._look(min(self._newest, time.time()) - OVERLAP)  # a clock that is ahead hides nobody else's writes
                if ticks % SLOWLY == 0:
                    self._forget(self._store.run_names())
                self.trouble = ""
            except StoreError as error:
                self.trouble = str(error)

    def _look(self, since: float | None) -> None:
        seen = self._store.overview(since)
        if since is not None:
            # A process that died wrote nothing: its runs are looked at themselves.
            there = {record.id for record, _ in seen}
            for run in self.having("running"):
                if run not in there and self._store.holder(run) is None:
                    record = self._store.load_run(run)
                    seen.append((record, len(record.steps)))
        self._newest = max([self._newest, *(record.touched for record, _ in seen)])
        for record, steps in seen:
            self._take(_data(record, steps))

    def _take(self, data: dict[str, Any]) -> None:
        with self._lock:
            known = self._rows.get(data["run"])
            if known is None or known.data != data:
                self.version += 1
                words = " ".join(
                    str(data[name]) for name in ("run", "task", "dsl", "target", "model", "status", "command")
                ).lower()
                self._rows[data["run"]] = Row(data, self.version, words)

    def _forget(self, names: set[str]) -> None:
        with self._lock:
            gone = [run for run in self._rows if run not in names]
            for run in gone:
                del self._rows[run]
            self.version += bool(gone)


def _data(record: RunRecord, steps: int) -> dict[str, Any]:
    job = record.job
    best = [round(one.speedup, 3) for one in best_over_time(record)]
    return row(record, steps) | {
        "model": shown_model(str(job.get("model", ""))),
        "command": "tune" if job.get("tune_seconds") else str(job.get("command", "")),
        "effort": str(job.get("effort", "")),
        "budget": job.get("tune_seconds") or job.get("budget"),
        "max_cost": job.get("max_cost"),
        "touched": record.touched,
        "best": best[-MOST_POINTS:],
    }


def _counted(rows: list[Row], name: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in rows:
        if value := one.data[name]:
            found[value] = found.get(value, 0) + 1
    return dict(sorted(found.items()))
