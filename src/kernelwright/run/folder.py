"""The folder that a job leaves behind: kernel.py, sketch.py, verdict.json and a journal of every step.

Files are replaced atomically, the journal only grows: an interrupted job keeps the best kernel that it had found.
"""

from __future__ import annotations

import json
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelwright.core.errors import KernelwrightError
from kernelwright.core.kernel import Kernel
from kernelwright.core.verdict import Verdict

DEFAULT_ROOT = Path("kernelwright-out")


@dataclass(frozen=True)
class JobFolder:
    """Where one job writes. Made by `open_folder`."""

    path: Path
    run: str

    @property
    def kernel(self) -> Path:
        return self.path / "kernel.py"

    @property
    def sketch(self) -> Path:
        return self.path / "sketch.py"

    @property
    def verdict(self) -> Path:
        return self.path / "verdict.json"

    def keep(self, kernel: Kernel, sketch: str, verdict: Verdict) -> None:
        """Make this the job's result so far."""
        self._replace(self.kernel, kernel.source)
        self._replace(self.sketch, sketch)
        self._replace(self.verdict, verdict.model_dump_json(indent=2) + "\n")

    def journal(self, step: str, **facts: Any) -> None:
        """Append one line about what was done; hashes rather than contents."""
        line = json.dumps({"run": self.run, "time": round(time.time(), 3), "step": step, **facts})
        self._guard(lambda: self._append(line + "\n"))

    def _append(self, line: str) -> None:
        with (self.path / "journal.jsonl").open("a") as journal:
            journal.write(line)

    def _replace(self, path: Path, text: str) -> None:
        def write() -> None:
            part = path.with_suffix(path.suffix + ".part")
            part.write_text(text)
            os.replace(part, path)

        self._guard(write)

    def _guard(self, action: Any) -> None:
        try:
            action()
        except OSError as error:
            raise KernelwrightError(f"{self.path}: cannot write the result: {error.strerror or error}") from error


def default_path(name: str, dsl: str) -> Path:
    """Where a job writes that was not told where."""
    return DEFAULT_ROOT / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', name)}-{dsl}"


def open_folder(out: Path | None, name: str, dsl: str, *, run: str | None = None) -> JobFolder:
    """The folder for a job, made if need be; without `out` it is named after the task and the language. `run` is the store's name
    for the job, where it has one."""
    path = out or default_path(name, dsl)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise KernelwrightError(f"{path}: cannot make this folder: {error.strerror or error}") from error
    return JobFolder(path=path, run=run or f"{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(3).hex()}")
