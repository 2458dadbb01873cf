"""The report as Markdown: a model in, text out; what a person reads in a terminal, a pull request or the docs."""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.jobs.bench.metrics import Figure, Summary
from kernelwright.jobs.bench.record import Record
from kernelwright.jobs.bench.report import Report

TITLES = {"level": "By level", "family": "By family", "language": "By language", "track": "By track"}
MOST_REASON = 160


def to_markdown(report: Report) -> str:
    """The whole report."""
    parts = [f"# {report.title}", conditions(report), headline(report)]
    parts.append("## Overview\n\n" + group_table({"all": report.summary}))
    for name, groups in report.groups.items():
        if len(groups) > 1:
            parts.append(f"## {TITLES[name]}\n\n" + group_table(groups))
    if report.summary.phases_median:
        parts.append("## Where the time goes\n\n" + phase_table(report))
    parts.append("## fast_p\n\n" + fast_table(report))
    if report.failures:
        parts.append("## Not correct\n\n" + failure_table(report))
    parts.append("## Every task\n\n" + task_table(report.records))
    return "\n\n".join(parts) + "\n"


def conditions(report: Report) -> str:
    """How it was measured, in a few lines."""
    options, machine = report.options, report.machines[-1]
    asked = f"`{options.dsl}`, track `{options.track}`, effort `{options.effort}`, contenders {', '.join(options.contenders)}"
    if options.kernels:
        asked += f", kernels from `{options.kernels}`"
    lines = [
        f"{report.created}. {asked}; references slower than {options.max_reference_seconds:g} s are listed, not run.",
        f"{machine.cpu}, {machine.threads} threads, {machine.memory_gb:g} GB, {machine.system}; torch {machine.torch}, "
        f"{machine.compiler}, Python {machine.python}, kernelwright {machine.kernelwright} {machine.commit}".rstrip()
        + ".",
    ]
    if options.scale < 1:
        lines.append(f"**Sizes were scaled by {options.scale:g}: speeds are not comparable with those at full size.**")
    if not report.complete:
        lines.append(f"**Unfinished: {len(report.records)} of {report.planned} tasks.**")
    if len(report.machines) > 1:
        lines.append(f"Made in several sessions with {len(report.machines)} different states of machine or code.")
    return "\n\n".join(lines)


def headline(report: Report) -> str:
    """The one paragraph that everybody reads."""
    whole = report.summary
    text = f"**{whole.correct} of {whole.tasks} correct ({whole.correct_share:.0%}).**"
    eager = whole.over_eager
    if eager.geomean_correct:
        text += (
            f" Over eager: geometric mean {interval(eager.geomean_correct)} over the {eager.geomean_correct.count} timed kernels, "
            f"{interval(eager.geomean_failures_as_one)} with the rest as 1.0x; faster beyond doubt {eager.surely_faster}, "
            f"slower beyond doubt {eager.slower}."
        )
    if whole.over_compile and whole.over_compile.geomean_correct:
        other = whole.over_compile
        text += (
            f" Over torch.compile: {interval(other.geomean_correct)} over {whole.over_compile.geomean_correct.count}, "
            f"{interval(other.geomean_failures_as_one)} with the rest as 1.0x."
        )
    if memory := whole.roofline_memory_median:
        text += f" The median of the {memory.count} kernels that memory bounds reaches {memory.value:.0%} of the roofline."
    return text


def group_table(groups: dict[str, Summary]) -> str:
    """One line for each group."""
    rows = [
        "| group | tasks | correct | geomean over eager | with failures as 1.0x | median | over torch.compile | with failures as 1.0x "
        "| fast_1 | roofline | s a kernel |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, one in groups.items():
        eager, other = one.over_eager, one.over_compile
        cells = [
            name,
            str(one.tasks),
            f"{one.correct} ({one.correct_share:.0%})",
            interval(eager.geomean_correct),
            short(eager.geomean_failures_as_one),
            short(eager.median_correct),
            interval(other.geomean_correct) if other else "-",
            short(other.geomean_failures_as_one) if other else "-",
            f"{eager.fast(1.0):.0%}" if one.timed else "-",
            f"{one.roofline_median.value:.0%}" if one.roofline_median else "-",
            f"{one.seconds_median:.1f}",
        ]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def phase_table(report: Report) -> str:
    """Median seconds of each phase, over all and by level; what runs beside it in the background costs no phase of its own."""
    columns = {"all": report.summary, **report.groups["level"]}
    rows = ["| phase | " + " | ".join(columns) + " |", "| --- |" + " --- |" * len(columns)]
    for name in report.summary.phases_median:
        cells = [f"{one.phases_median[name]:.2f}" if name in one.phases_median else "-" for one in columns.values()]
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n\nMedian seconds over the correct kernels."


def fast_table(report: Report) -> str:
    """The share of all tasks faster than p, for a few p."""
    eager, other = report.summary.over_eager, report.summary.over_compile
    points = [p for p, _ in eager.fast_p if p in (0.0, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0)]
    rows = ["| p | " + " | ".join(f"{p:g}" for p in points) + " |", "| --- |" + " --- |" * len(points)]
    for name, speed in (("over eager", eager), ("over torch.compile", other)):
        if speed:
            rows.append(f"| {name} | " + " | ".join(f"{speed.fast(p):.0%}" for p in points) + " |")
    return "\n".join(rows) + f"\n\nDenominator: all {report.summary.tasks} tasks; at p = 0 the share that is correct."


def failure_table(report: Report) -> str:
    rows = ["| outcome | count | tasks |", "| --- | --- | --- |"]
    reasons = {record.key: record.reason for record in report.records}
    for failure in report.failures:
        said = "<br>".join(f"`{key}`: {_cell(reasons[key])}" for key in failure.tasks)
        rows.append(f"| {failure.outcome} | {failure.count} | {said} |")
    return "\n".join(rows)


def task_table(records: Sequence[Record]) -> str:
    rows = [
        "| task | family | outcome | kernel ms | eager ms | over eager | over torch.compile | roofline |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for record in records:
        timing = record.timing
        outcome = record.outcome + (" (hybrid)" if record.track == "hybrid" else "") + (" (scaled)" if record.scaled else "")
        if timing is None:
            rows.append(f"| {record.key} | {record.family} | {outcome} | - | - | - | - | - |")
            continue
        cells = [
            record.key,
            record.family,
            outcome,
            f"{timing.kernel_ms:.3g}",
            f"{timing.eager_ms:.3g}",
            f"{timing.speedup:.2f}x [{timing.speedup_low:.2f}, {timing.speedup_high:.2f}]",
            f"{timing.speedup_vs_compile:.2f}x" if timing.speedup_vs_compile else "-",
            f"{timing.roofline_fraction:.0%}" if timing.roofline_fraction else "-",
        ]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def interval(figure: Figure | None) -> str:
    """`1.52x [1.40, 1.66]`"""
    return f"{figure.value:.2f}x [{figure.low:.2f}, {figure.high:.2f}]" if figure else "-"


def short(figure: Figure | None) -> str:
    return f"{figure.value:.2f}x" if figure else "-"


def _cell(text: str) -> str:
    """Text that cannot break a table: reasons quote other people's code."""
    flat = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
    return flat if len(flat) <= MOST_REASON else flat[: MOST_REASON - 1] + "…"
