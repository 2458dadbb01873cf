"""The report as one page of HTML that needs nothing else: a model and the folder with its kernels in, text out.

Style and script (assets/report.css and report.js, built from web/src/report by `make web`; `kernelwright serve` shows reports with the
same code) are put inline, the report as JSON, each task's texts compressed: a page of 300 tasks stays around a
megabyte, and opens a kernel only when somebody looks at it. The page's own security policy forbids every request. All text comes
from other people's files, so `<` never appears inside the data.
"""

from __future__ import annotations

import base64
import gzip
import json
from importlib import resources
from pathlib import Path

from kernelwright.jobs.bench.record import Record
from kernelwright.jobs.bench.report import Report

MOST_TEXT = 400_000
"""Characters of one kernel that are shown; a generated network may be longer than anybody reads."""


def to_page(report: Report, folder: Path) -> str:
    """The page. Kernels, sketches, tasks and verdicts are read from below `folder`, where they are there."""
    parts = {
        "{{TITLE}}": _text(report.title),
        "{{STYLE}}": _asset("report.css"),
        "{{REPORT}}": _inline(report.model_dump(mode="json")),
        "{{DETAILS}}": _inline({record.key: _sealed(record, folder) for record in report.records}),
        "{{SCRIPT}}": _asset("report.js"),
    }
    page = ""
    rest = _asset("page.html")
    for mark, part in parts.items():  # in the order of the page, so that no part is searched for marks
        before, _, rest = rest.partition(mark)
        page += before + part
    return page + rest


def _asset(name: str) -> str:
    return resources.files("kernelwright.jobs.bench").joinpath("assets", name).read_text(encoding="utf-8")


def _inline(value: object) -> str:
    """JSON that cannot end the element it stands in."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def texts_of(record: Record, folder: Path) -> dict[str, str]:
    """Kernel, sketch, task and verdict of a record: those that are there, below the report's folder."""
    places = {name: getattr(record, name) for name in ("kernel", "sketch", "verdict")}
    if record.kernel is not None:
        places["task"] = str(Path(record.kernel).with_name("task.py"))
    inside = {name: folder / place for name, place in places.items() if place is not None}
    within = folder.resolve()
    texts = {name: _read(path) for name, path in inside.items() if path.resolve().is_relative_to(within)}
    return {name: text for name, text in texts.items() if text}


def _sealed(record: Record, folder: Path) -> str:
    """The texts of a record, compressed."""
    texts = texts_of(record, folder)
    if not texts:
        return ""
    return base64.b64encode(gzip.compress(json.dumps(texts).encode(), 9, mtime=0)).decode()


def _read(path: Path) -> str:
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return ""
    return text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + "\n… cut here\n"
