"""Kernels that somebody else made: a folder in, the file for an entry out, so that any system's output meets the same judge.

Understood are `NAME.py`, `LEVEL/NAME.py`, `NAME/kernel.py` anywhere below the folder (NAME is the task file's stem), and KernelBench's
own naming of runs, `level_1_problem_3_sample_0_kernel.py`, by the number at the front of the task's name.
"""

from __future__ import annotations

import re
from pathlib import Path

from kernelwright.core.errors import ConfigError
from kernelwright.jobs.bench.collect import Entry

RUN_NAME = re.compile(r"level_?(\d+)_problem_?(\d+)(?:_sample_?(\d+))?.*\.py$")


class Kernels:
    """The files of a folder, by name."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise ConfigError(f"{folder}: there is no such folder of kernels")
        self.folder = folder
        self._by_name: dict[str, list[Path]] = {}
        self._by_problem: dict[tuple[int, int], Path] = {}
        for path in sorted(folder.rglob("*.py")):
            name = path.parent.name if path.stem in ("kernel", "solution", "model_new") else path.stem
            self._by_name.setdefault(name, []).append(path)
            if match := RUN_NAME.match(path.name):
                self._by_problem.setdefault((int(match[1]), int(match[2])), path)

    def find(self, entry: Entry) -> Path | None:
        """The kernel of an entry. Where several levels have one of its name, the level decides."""
        found = self._by_name.get(entry.name.partition(":")[0], [])
        for path in found:
            if entry.level and entry.level in path.relative_to(self.folder).parts:
                return path
        if found:
            return found[0]
        level, number = re.search(r"(\d+)$", entry.level), re.match(r"(\d+)_", entry.name)
        return self._by_problem.get((int(level[1]), int(number[1]))) if level and number else None
