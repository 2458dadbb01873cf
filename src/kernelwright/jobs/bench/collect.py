"""Paths and names of suites in, entries out: one for each task, also for those that cannot be read.

A path may be one of our suites by name (`core`, `fused`, `modern`, `shapes`) or a task of one (`core/relu`), a checkout of KernelBench (its
`KernelBench/level1` … or one of them), a folder of task files, one file, or a folder in another project's format (readers.py).
Nothing is run and nothing is dropped: what is wrong with a file is found out later and reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from kernelwright import suites
from kernelwright.core.errors import ConfigError, KernelwrightError, TaskError
from kernelwright.core.task.task import DEFAULT_CLASS, read_text, split_spec
from kernelwright.jobs.bench import readers
from kernelwright.jobs.bench.family import family_of

LEVEL = re.compile(r"level[ _-]?\d+$", re.IGNORECASE)
SKIPPED = ("__init__.py", "setup.py", "conftest.py")


@dataclass(frozen=True)
class Entry:
    """A task of a benchmark. `source` is None where the file could not be read, and `problem` then says why."""

    suite: str
    level: str
    name: str
    family: str
    path: str
    source: str | None
    problem: str = ""
    class_name: str = DEFAULT_CLASS

    @property
    def key(self) -> str:
        """Unique in a run, and the same in another run over the same tasks."""
        return "/".join(part for part in (self.suite, self.level, self.name) if part)


def collect(paths: Iterable[str]) -> list[Entry]:
    """All entries of the paths, in their order; two of one key are told apart by a number."""
    seen: dict[str, int] = {}
    entries = []
    for path in paths:
        for entry in _of(path):
            count = seen[entry.key] = seen.get(entry.key, 0) + 1
            entries.append(entry if count == 1 else replace(entry, name=f"{entry.name}~{count}"))
    if not entries:
        raise KernelwrightError(f"no task was found in {', '.join(paths)}")
    return entries


def select(entries: list[Entry], *, text: str = "", limit: int | None = None, shard: str = "") -> list[Entry]:
    """Those whose key or family contains `text` (several with commas), the first `limit` of them, and of these every N-th from the
    I-th on."""
    words = [word for word in text.split(",") if word]
    if words:
        entries = [entry for entry in entries if any(word in entry.key or word == entry.family for word in words)]
    entries = entries[:limit]
    if shard:
        index, count = _shard(shard)
        entries = entries[index - 1 :: count]
    return entries


def _shard(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    index, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= index <= count:
        raise ConfigError(f"shard {text!r} is not of the form I/N with I from 1 to N, for example 2/4")
    return index, count


def _of(spec: str) -> Iterator[Entry]:
    path, class_name = split_spec(spec)
    if spec in suites.NAMES and not path.exists():
        for task in suites.load(spec):
            yield Entry(spec, "", task.name, task.family, f"{task.name}.py", task.source)
    elif path.is_dir():
        yield from _folder(path)
    elif path.exists():
        yield _file(path, path.resolve().parent.name, "", class_name)
    elif found := suites.find(spec):
        yield Entry(spec.partition("/")[0], "", found.name, found.family, f"{found.name}.py", found.source)
    else:
        raise KernelwrightError(
            f"{spec}: there is no such file or folder, and no such suite; the suites are {', '.join(suites.NAMES)}"
        )


def _folder(path: Path) -> Iterator[Entry]:
    name = path.resolve().name
    levels = _levels(path) or _levels(path / "KernelBench")
    if levels:
        for level in levels:
            yield from (_file(file, name, level.name.lower()) for file in _files(level))
    elif LEVEL.match(name):
        yield from (_file(file, path.resolve().parent.name, name.lower()) for file in _files(path))
    elif (foreign := readers.read(path)) is not None:
        for item in foreign:
            family = item.family or (family_of(item.source) if item.source else "other")
            yield Entry(name, "", item.name, family, item.path, item.source, item.problem)
    else:
        for file in _files(path):
            yield _file(file, name, "/".join(file.relative_to(path).parts[:-1]))


def _levels(path: Path) -> list[Path]:
    found = [each for each in path.iterdir() if each.is_dir() and LEVEL.match(each.name)] if path.is_dir() else []
    return sorted(found, key=lambda each: _natural(each.name))


def _files(path: Path) -> list[Path]:
    found = []
    for file in path.rglob("*.py"):
        parts = file.relative_to(path).parts
        hidden = any(part.startswith(".") or part == "__pycache__" for part in parts)
        if not hidden and file.name not in SKIPPED:
            found.append(file)
    return sorted(found, key=lambda file: [_natural(part) for part in file.relative_to(path).parts])


def _natural(name: str) -> list[tuple[int, str]]:
    """`2_x` comes before `10_x`."""
    return [(int(part), "") if part.isdigit() else (1 << 62, part) for part in re.split(r"(\d+)", name) if part]


def _file(path: Path, suite: str, level: str, class_name: str = DEFAULT_CLASS) -> Entry:
    name = path.stem if class_name == DEFAULT_CLASS else f"{path.stem}:{class_name}"
    try:
        source = read_text(path)
    except TaskError as error:
        return Entry(suite, level, name, "other", str(path), None, error.reason, class_name)
    return Entry(suite, level, name, family_of(source), str(path), source, class_name=class_name)
