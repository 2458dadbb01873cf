"""Tables in our own documents, made from committed reports: a document in, the same document with fresh tables out.

Between `<!-- bench:overview PATH -->` (or `bench:families`, `bench:slowest`) and `<!-- /bench -->` stands what the report at PATH,
relative to the document, says. `kernelwright bench readme FILE…` writes it; a test holds documents and reports together.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from kernelwright.core.errors import KernelwrightError
from kernelwright.jobs.bench.markdown import group_table, interval, short
from kernelwright.jobs.bench.metrics import group, summarise
from kernelwright.jobs.bench.report import Report, read

BLOCK = re.compile(r"(<!-- bench:(\w+) (\S+) -->\n)(.*?)(<!-- /bench -->)", re.DOTALL)
MOST_SLOWEST = 20


def refreshed(path: Path) -> str:
    """The document's text with every table made anew."""
    try:
        text = path.read_text()
    except OSError as error:
        raise KernelwrightError(f"{path}: cannot be read: {error.strerror or error}") from error

    def table(match: re.Match[str]) -> str:
        start, kind, place, _, end = match.groups()
        if kind not in TABLES:
            raise KernelwrightError(f"{path}: there is no table bench:{kind}; known are {', '.join(TABLES)}")
        return f"{start}{TABLES[kind](read(path.parent / place))}\n{end}"

    return BLOCK.sub(table, text)


def overview(report: Report) -> str:
    """One line for each suite or level, and one for all."""
    rows = [
        "| tasks | correct | over eager | failures as 1.0x | over torch.compile | failures as 1.0x | faster than eager | of the roofline |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    groups = dict(report.groups["level"])
    if len(groups) > 1:
        groups["all"] = report.summary
    for name, one in groups.items():
        eager, other = one.over_eager, one.over_compile
        cells = [
            f"{name} ({one.tasks})",
            f"{one.correct} ({one.correct_share:.1%})",
            interval(eager.geomean_correct),
            short(eager.geomean_failures_as_one),
            interval(other.geomean_correct) if other else "not measured",
            short(other.geomean_failures_as_one) if other else "-",
            f"{eager.fast(1.0):.0%}",
            f"{one.roofline_median.value:.0%}" if one.roofline_median else "-",
        ]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n\n" + _measured(report)


def families(report: Report) -> str:
    """One line for each family of each suite."""
    groups = {}
    for level, some in group(report.records, lambda record: record.level or record.suite).items():
        for family, few in group(some, lambda record: record.family).items():
            groups[f"{level}: {family}"] = summarise(few)
    return group_table(groups)


def slowest(report: Report) -> str:
    """What is slower than eager beyond doubt, the worst first; and what is not correct."""
    slow = sorted(
        (record for record in report.records if record.timing and record.timing.speedup_high < 1),
        key=lambda record: record.speedup or 0.0,
    )
    named = ", ".join(f"{record.name} {record.speedup:.2f}x" for record in slow[:MOST_SLOWEST]) or "none"
    more = f" and {len(slow) - MOST_SLOWEST} more" if len(slow) > MOST_SLOWEST else ""
    failed = ", ".join(f"{record.name} ({record.outcome})" for record in report.records if not record.correct) or "none"
    return f"- Slower than eager beyond doubt ({len(slow)}): {named}{more}.\n- Not correct: {failed}."


TABLES: dict[str, Callable[[Report], str]] = {"overview": overview, "families": families, "slowest": slowest}


def _measured(report: Report) -> str:
    machine, options = report.machines[-1], report.options
    text = (
        f"Geometric means with 95 % bootstrap intervals over tasks. Measured {report.created.split()[0]} on {machine.cpu}, "
        f"{machine.threads} threads, torch {machine.torch}, {machine.compiler}; "
        f"language `{options.dsl}`, track `{options.track}`, effort `{options.effort}`"
    )
    text += f", sizes scaled by {options.scale:g}" if options.scale < 1 else ""
    return text + (f", commit {machine.commit}." if machine.commit else ".")
