"""The report: records in, one model out, written as report.json, report.md and report.html. Written atomically, also of a part of a run.

docs/report-schema.md explains the JSON; its version is raised whenever a field changes its meaning.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import ValidationError

from kernelwright.core.errors import KernelwrightError
from kernelwright.jobs.bench.metrics import Summary, group, summarise
from kernelwright.jobs.bench.record import Frozen, Machine, Options, Record

SCHEMA = 1
GROUPS: dict[str, Callable[[Record], str]] = {
    "level": lambda record: f"{record.suite}/{record.level}" if record.level else record.suite,
    "family": lambda record: record.family,
    "language": lambda record: record.dsl,
    "track": lambda record: record.track,
}


class Failure(Frozen):
    """An outcome other than correct, and the tasks that had it."""

    outcome: str
    count: int
    tasks: tuple[str, ...]


class Report(Frozen):
    """Everything about one benchmark."""

    version: int = SCHEMA
    title: str
    created: str
    options: Options
    machines: tuple[Machine, ...]
    planned: int
    summary: Summary
    groups: dict[str, dict[str, Summary]]
    failures: tuple[Failure, ...]
    records: tuple[Record, ...]

    @property
    def complete(self) -> bool:
        """Whether every task that was asked for has a record."""
        return len(self.records) >= self.planned


def build(title: str, options: Options, machines: Sequence[Machine], records: Sequence[Record], planned: int) -> Report:
    """The report of these records, in their order."""
    by = {name: {word: summarise(some) for word, some in group(records, word_of).items()} for name, word_of in GROUPS.items()}
    failed = group([record for record in records if not record.correct], lambda record: record.outcome)
    return Report(
        title=title,
        created=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        options=options,
        machines=tuple(dict.fromkeys(machines)),
        planned=planned,
        summary=summarise(records),
        groups=by,
        failures=tuple(
            Failure(outcome=outcome, count=len(some), tasks=tuple(record.key for record in some))
            for outcome, some in sorted(failed.items(), key=lambda pair: -len(pair[1]))
        ),
        records=tuple(records),
    )


def write(report: Report, folder: Path) -> list[Path]:
    """The three files. Kernels and sketches are read from below `folder` into the page."""
    from kernelwright.jobs.bench.markdown import to_markdown
    from kernelwright.jobs.bench.page import to_page

    texts = {
        "report.json": report.model_dump_json(indent=1) + "\n",
        "report.md": to_markdown(report),
        "report.html": to_page(report, folder),
    }
    for name, text in texts.items():
        part = folder / f".{name}.part"
        try:
            part.write_text(text)
            os.replace(part, folder / name)
        except OSError as error:
            raise KernelwrightError(f"{folder / name}: cannot be written: {error.strerror or error}") from error
    return [folder / name for name in texts]


def read(path: Path) -> Report:
    """A report from its file, or from the folder that holds it."""
    file = path / "report.json" if path.is_dir() else path
    try:
        return Report.model_validate_json(file.read_text())
    except OSError as error:
        raise KernelwrightError(f"{file}: cannot be read: {error.strerror or error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise KernelwrightError(f"{file}: is not a report of this version: {where}: {first['msg']}") from error
