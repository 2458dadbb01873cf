"""The writer of a journal. Made by `Store.begin` and `Store.resume`; safe for threads. A step is on disk when `step` returns."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kernelwright.store.nouns import Identity, identity

if TYPE_CHECKING:
    from kernelwright.store.tables import Database


@dataclass
class Run:
    """One job at work. `past` has the steps that an earlier process of this run wrote, until they are repeated."""

    id: str
    job: dict[str, Any]
    _database: Database = field(repr=False)
    _past: dict[Identity, list[int]] = field(default_factory=dict, repr=False)
    _before: float = 0.0
    _started: float = field(default_factory=time.monotonic, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def step(
        self,
        kind: str,
        reason: str,
        inputs: Mapping[str, str] | None = None,
        result: str | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> int:
        """Write a step, durably, and return its number. The number of a step that a resumed run repeats is the one it had."""
        from kernelwright.store import journal

        given = dict(inputs or {})
        with self._lock:
            if done := self._past.get(identity(kind, given, result)):
                return done.pop(0)
            return journal.append(
                self._database, self.id, kind, reason, given, result, dict(facts or {}), seconds=self._seconds()
            )

    def finish(self, status: str, best: str | None = None) -> None:
        """Close the run: how it ended in one word ("done", "failed", "stopped" …) and the hash of its best result."""
        from kernelwright.store import journal

        with self._lock:
            journal.finish(self._database, self.id, status, best, seconds=self._seconds())

    def _seconds(self) -> float:
        """Time at work, over all processes of this run."""
        return self._before + time.monotonic() - self._started
