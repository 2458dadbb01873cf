"""What a run has found out, so that it is found out once: facts, proofs, verdicts, choices. Resume is replay through this memory.

In: a kind, a key and a way to make the thing. Out: the thing, made now or recalled. Two memories lie behind it:

- the store, for this run alone: a new run measures anew, a resumed one does not;
- a recording (`--record FILE` writes FILE.facts beside the model's answers; `replay:FILE` reads it): what a prompt was made of has to
  be repeated exactly, on any machine, for the recorded answers to fit. What was recalled from a recording is evidence about the
  machine that recorded it, so the winner of a replayed run is judged again (`team.py`).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from kernelwright.core.errors import ModelError

KIND = "finding"


class Memo(Protocol):
    """The part of the store that is used here."""

    def recall(self, kind: str, key: str) -> bytes | None: ...

    def keep(self, kind: str, key: str, data: bytes, **facts: Any) -> Any: ...


class Memory:
    """The findings of one run. `run` scopes what is kept in the store."""

    def __init__(
        self, run: str = "", store: Memo | None = None, *, record: Path | None = None, replay: Path | None = None
    ) -> None:
        self._run, self._store = run, store
        self._record = beside(record) if record else None
        self._recorded = _read(beside(replay)) if replay else {}

    def once(self, kind: str, key: dict[str, Any], make: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any], str]:
        """The finding, and where it came from: "made", "store" or "recording". It is on disk before it is returned."""
        name = hashlib.sha256(json.dumps([kind, key], sort_keys=True).encode()).hexdigest()
        origin = "recording"
        found = self._recorded.get(name)
        if found is None:
            found, origin = self._from_store(name), "store"
        if found is None:
            found, origin = make(), "made"
            if self._store is not None:
                self._store.keep(KIND, self._scoped(name), json.dumps(found).encode(), run=self._run, what=kind)
        self._write(kind, name, found)
        return found, origin

    def _from_store(self, name: str) -> dict[str, Any] | None:
        data = self._store.recall(KIND, self._scoped(name)) if self._store is not None else None
        try:
            found: dict[str, Any] | None = json.loads(data) if data is not None else None
        except ValueError:
            return None  # a damaged record is made anew
        return found

    def _scoped(self, name: str) -> str:
        return hashlib.sha256(f"{self._run}:{name}".encode()).hexdigest()

    def _write(self, kind: str, name: str, found: dict[str, Any]) -> None:
        if self._record is None:
            return
        try:
            descriptor = os.open(self._record, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            with os.fdopen(descriptor, "ab") as file:
                file.write((json.dumps({"what": kind, "key": name, "found": found}) + "\n").encode())
        except OSError as error:
            raise ModelError(f"{self._record}: the recording cannot be written: {error.strerror or error}") from error


def beside(recording: Path) -> Path:
    """Where the findings of a recording lie."""
    return recording.with_name(recording.name + ".facts")


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """The findings of a recording; one without any is replayed with findings made now."""
    if not path.exists():
        return {}
    found = {}
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        try:
            entry = json.loads(line)
            found[str(entry["key"])] = dict(entry["found"])
        except (ValueError, KeyError, TypeError) as error:
            raise ModelError(f"{path}:{number}: this is not the record of a finding: {error}") from error
    return found
