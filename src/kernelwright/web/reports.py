"""Reports of benchmarks: those below the folders that the server was started with, and those that a browser brought.

In: folders, or the text of a report.json. Out: reports by an id that says nothing of where they lie, their kernels' texts, and two of them
compared. A report may name files; only those below its own folder are read.
"""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kernelwright.core.errors import ConfigError, KernelwrightError
from kernelwright.jobs.bench.compare import compare
from kernelwright.jobs.bench.page import texts_of
from kernelwright.jobs.bench.report import Report, read
from kernelwright.web.privacy import Veil

MOST_FOUND = 300
DEPTH = 4
MOST_BROUGHT = 16


class Reports:
    """Looked for anew at each listing: a benchmark may be running."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = [folder.resolve() for folder in folders]
        self._brought: OrderedDict[str, Report] = OrderedDict()

    def listing(self) -> list[dict[str, Any]]:
        """What there is, the newest first."""
        found = []
        for name, place in self._places().items():
            try:
                found.append(_row(name, read(place)))
            except KernelwrightError:
                continue  # another version's, or half written
        found += [_row(name, report) | {"brought": True} for name, report in self._brought.items()]
        veil: list[dict[str, Any]] = Veil().data(sorted(found, key=lambda row: row["created"], reverse=True))
        return veil

    def report(self, name: str) -> Report:
        """One report; ConfigError where there is none of this id."""
        if name in self._brought:
            return self._brought[name]
        place = self._places().get(name)
        if place is None:
            raise ConfigError("there is no such report (any more)")
        return read(place)

    def texts(self, name: str, key: str) -> dict[str, str]:
        """Kernel, sketch, task and verdict of one record."""
        place = self._places().get(name)
        record = next((one for one in self.report(name).records if one.key == key), None)
        if place is None or record is None:
            return {}
        veil = Veil()
        return {kind: veil.text(text) for kind, text in texts_of(record, place.parent).items()}

    def bring(self, text: str) -> str:
        """Keep a report that a browser sent; its id."""
        try:
            report = Report.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            raise ConfigError(
                f"this is not a report.json of this version: {'.'.join(map(str, first['loc']))}: {first['msg']}"
            ) from error
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        self._brought[name] = report
        while len(self._brought) > MOST_BROUGHT:
            self._brought.popitem(last=False)
        return name

    def compared(self, before: str, after: str) -> dict[str, Any]:
        """What changed from one to the other."""
        found: dict[str, Any] = Veil().data(compare(self.report(before), self.report(after)).model_dump(mode="json"))
        return found

    def _places(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for folder in self._folders:
            base = len(folder.parts)
            for root, inner, files in os.walk(folder):
                inner[:] = (
                    sorted(name for name in inner if not name.startswith(".")) if len(Path(root).parts) - base < DEPTH else []
                )
                if "report.json" in files and len(found) < MOST_FOUND:
                    place = Path(root) / "report.json"
                    found[hashlib.sha256(str(place).encode()).hexdigest()[:16]] = place
        return found


def _row(name: str, report: Report) -> dict[str, Any]:
    over = report.summary.over_eager
    return {
        "id": name,
        "title": report.title,
        "created": report.created,
        "dsl": report.options.dsl,
        "tasks": len(report.records),
        "planned": report.planned,
        "correct": sum(record.correct for record in report.records),
        "speedup": over.geomean_correct.value if over and over.geomean_correct else None,
        "machine": report.machines[-1].cpu if report.machines else "",
        "brought": False,
    }
