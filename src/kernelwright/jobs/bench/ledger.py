"""The run on disk: one line of JSON for each task that began and for each that ended, durable when written.

In: records as they are made. Out: after a kill at any moment, what was finished; a line that was cut off is left out. A task that was
begun twice without an end took the whole run down twice: it is not begun a third time.
"""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kernelwright.core.errors import ConfigError, KernelwrightError
from kernelwright.jobs.bench.record import Machine, Options, Record

NAME = "ledger.jsonl"
MOST_BEGINNINGS = 2


class Ledger:
    """Appends to `folder/ledger.jsonl`; may be used from several threads."""

    def __init__(self, folder: Path, options: Options, machine: Machine, *, resume: bool, planned: int = 0) -> None:
        self.path = folder / NAME
        self.options = options
        self._lock = threading.Lock()
        self.records: dict[str, Record] = {}
        self.begun: Counter[str] = Counter()
        self.sessions: list[Machine] = []
        rows = read_rows(self.path)
        if rows and not resume:
            raise ConfigError(f"{folder} holds a run already; go on with it with --resume, or name another folder with --out")
        self._take(rows)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._mend()
        except OSError as error:
            raise KernelwrightError(f"{folder}: cannot write here: {error.strerror or error}") from error
        self.sessions.append(machine)
        session = {"options": options.model_dump(mode="json"), "machine": machine.model_dump(mode="json"), "planned": planned}
        self._write({"kind": "session", **session})

    def begin(self, key: str) -> None:
        """A task is started."""
        self._write({"kind": "begin", "key": key})

    def finish(self, record: Record) -> None:
        """A task is done: when this returns, it will not be done again."""
        self.records[record.key] = record
        self._write({"kind": "task", "record": record.model_dump(mode="json")})

    def fatal(self, key: str) -> bool:
        """Whether earlier runs ended during this task as often as we are willing to see it."""
        return self.begun[key] >= MOST_BEGINNINGS

    def _take(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            if row["kind"] == "session":
                self._same_options(row["options"])
                self.sessions.append(Machine.model_validate(row["machine"]))
            elif row["kind"] == "begin":
                self.begun[row["key"]] += 1
            elif row["kind"] == "task":
                try:
                    record = Record.model_validate(row["record"])
                except ValidationError as error:
                    raise KernelwrightError(
                        f"{self.path}: was written by another version ({error.errors()[0]['msg']})"
                    ) from error
                self.records[record.key] = record
                self.begun.pop(record.key, None)

    def _same_options(self, options: dict[str, Any]) -> None:
        mine = self.options.model_dump(mode="json")
        other = [name for name in mine if mine[name] != options.get(name)]
        if other:
            name = other[0]
            raise ConfigError(
                f"{self.path}: that run had --{name.replace('_', '-')} {options.get(name)!r}, not {mine[name]!r}; "
                "resume it with the same options or name another folder with --out"
            )

    def _mend(self) -> None:
        """A last line without its end (a kill while writing) must not swallow the next one."""
        if self.path.exists() and self.path.stat().st_size and not self.path.read_bytes().endswith(b"\n"):
            with self.path.open("a") as file:
                file.write("\n")

    def _write(self, row: dict[str, Any]) -> None:
        line = json.dumps(row) + "\n"
        try:
            with self._lock, self.path.open("a") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise KernelwrightError(f"{self.path}: cannot be written: {error.strerror or error}") from error


def stored(folder: Path) -> tuple[Options, list[Machine], list[Record], int]:
    """What a run left behind: its options, the machines of its sessions, its records, and how many tasks were planned."""
    rows = read_rows(folder / NAME)
    sessions = [row for row in rows if row["kind"] == "session"]
    if not sessions:
        raise KernelwrightError(f"{folder / NAME}: holds no run")
    records = {row["record"]["key"]: Record.model_validate(row["record"]) for row in rows if row["kind"] == "task"}
    machines = [Machine.model_validate(row["machine"]) for row in sessions]
    planned = max(int(row.get("planned", 0)) for row in sessions)
    return Options.model_validate(sessions[-1]["options"]), machines, list(records.values()), max(planned, len(records))


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a ledger; what a kill left half-written is no row."""
    rows = []
    for line in path.read_text(errors="replace").splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(row, dict) and "kind" in row:
            rows.append(row)
    return rows
