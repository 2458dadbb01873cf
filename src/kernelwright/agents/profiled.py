"""A profile in words, for models and people: the source beside the counts of its lines, and what bounds a kernel in a few sentences.

In: the launches of a profile and the kernel's file. Out: launches with the text of their lines; a paragraph for the Coder.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernelwright.agents.distil import native_source
from kernelwright.core.launch_figures import LaunchFigures, LineFigures

_SOURCES = (".py", ".cu", ".cuh", ".h", ".hpp")
_LINES = 5


def with_sources(launches: Sequence[LaunchFigures], source: str, name: str = "") -> tuple[LaunchFigures, ...]:
    """The same with the text of each line: of the kernel file itself, of the native source inside it, or of a file called `name`."""
    own, native = source.splitlines(), native_source(source).splitlines()

    def told(line: LineFigures) -> LineFigures:
        file = Path(line.file).name
        texts = own if file in ("kernel.py", Path(name).name) and file else native if file.endswith((".cu", ".cpp")) else []
        if not texts and name and line.file and Path(line.file).suffix in _SOURCES and Path(line.file).is_file():
            texts = Path(line.file).read_text(encoding="utf-8", errors="replace").splitlines()
        return line.model_copy(update={"source": texts[line.line - 1].strip()[:160]}) if 0 < line.line <= len(texts) else line

    return tuple(each.model_copy(update={"lines": tuple(map(told, each.lines))}) for each in launches)


def paragraph(launches: Sequence[LaunchFigures], source: str) -> str:
    """What a model should know of the slowest launches before it writes the next version."""
    slowest = sorted(with_sources(launches, source), key=lambda each: -each.times * each.predicted.ms)[:2]
    return "\n".join(line for each in slowest for line in _launch(each))


def _launch(each: LaunchFigures) -> list[str]:
    c, m, p = each.counted, each.compiled, each.predicted
    said = [
        f"{each.name}, {each.times} times a call: predicted {p.ms:.3g} ms ± {p.error:.0%} (not measured), bound by {p.bound}; "
        f"compiled: {m.registers} registers, {m.spilled_bytes} bytes spilled, occupancy {m.occupancy:.0%} (limited by {m.limiter})"
    ]
    if c.sectors_per_request is not None:
        said.append(
            f"  counted: {c.sectors_per_request} sectors a global request, {c.sector_efficiency or 0:.0%} of them needed; "
            f"the first level holds {c.first_level_hits or 0:.0%}"
        )
    if c.bank_passes_per_request is not None:
        said.append(
            f"  counted: {c.bank_passes_per_request} passes a shared request, {c.bank_efficiency or 0:.0%} of them needed"
        )
    for line in each.lines[:_LINES]:
        if line.source:
            said.append(f"  {line.share:4.0%} of the time  line {line.line}: {line.source}")
    return [*said, *(f"  - {sentence}" for sentence in each.advice)]
