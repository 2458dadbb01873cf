"""What is known of a task from earlier verdicts, kept by task, machine and versions: the second candidate costs only its own work.

In: a task. Out: what its referee found out the last time (facts of the first run, the law of its inputs, which distributions the reference
is sound on), what null candidates showed, and the fastest eager call seen. Small JSON files in the user's cache, the oldest of them dropped
beyond a limit.

Nothing secret is kept, and nothing that depends on a secret. Seeds, weights, inputs and answers are drawn anew for every verdict, although
keeping them would save the reference's runs: what a candidate prints reaches its author (the end of its output is in the verdict), so
inputs that come up again could be sent out by one candidate and written into the next. What is kept could be found out by anybody who has
the task file. Written by the judge alone: a candidate's sandbox does not show the folder, and a referee's reply is kept under the hash of
its own task.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import tempfile
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from kernelwright.core.folders import cache_folder
from kernelwright.core.task import Task

MOST_BYTES = 16 << 20
"""All files together; one has a few kilobytes."""


class Expectations:
    """By task. `threads` are part of the key, because times are."""

    def __init__(self, threads: int, folder: Path | None = None) -> None:
        self._threads = threads
        self._folder = folder or cache_folder("expectations")
        self._known: dict[str, dict[str, Any]] = {}

    def of(self, task: Task) -> dict[str, Any]:
        """What is known, or nothing."""
        key = self._key(task)
        if key not in self._known:
            self._known[key] = {}
            with contextlib.suppress(OSError, ValueError):
                told = json.loads((self._folder / f"{key}.json").read_text())
                if isinstance(told, dict):
                    self._known[key] = told
        return self._known[key]

    def learn(self, task: Task, **facts: Any) -> None:
        """Something more is known from now on."""
        key, known = self._key(task), self.of(task)
        fresh = {**known, **facts}
        if fresh == known:
            return
        self._known[key] = fresh
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, name = tempfile.mkstemp(dir=self._folder)
            with os.fdopen(handle, "w") as file:
                json.dump(fresh, file)
            Path(name).replace(self._folder / f"{key}.json")
            self._prune()

    def _prune(self) -> None:
        files = sorted((file.stat().st_mtime, file.stat().st_size, file) for file in self._folder.iterdir())
        total = sum(size for _, size, _ in files)
        for _, size, file in files:
            if total <= MOST_BYTES:
                break
            file.unlink(missing_ok=True)
            total -= size

    def _key(self, task: Task) -> str:
        told = [task.as_json(), self._threads, platform.machine(), platform.processor(), os.cpu_count(), versions()]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:32]


@cache
def versions() -> list[str]:
    """Of what decides about the content: torch, and the text of the judge's own files."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return [metadata.version("torch"), digest.hexdigest()]
