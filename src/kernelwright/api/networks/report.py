"""The report of `bench networks`: means over cases and a line for each, as Markdown and as data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from math import exp, log
from pathlib import Path
from typing import Any

from kernelwright.api.networks.bench import Plan
from kernelwright.api.networks.measured import Contender, Measured


def write(plan: Plan, found: Sequence[Measured], folder: Path) -> dict[str, Any]:
    """Writes `report.md` and `report.json`; gives the summary."""
    summary = {"conditions": _conditions(plan, found), **summarised(found)}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(json.dumps({**summary, "cases": [m.data() for m in found]}, indent=1) + "\n")
    (folder / "report.md").write_text(_markdown(summary, found))
    return summary


def summarised(found: Sequence[Measured]) -> dict[str, Any]:
    """Counts and geometric means. The better of Inductor's modes is the contender of the second mean."""
    ran = [m for m in found if not m.failed]
    ours = [(m, c) for m in ran if (c := m.of("kernelwright"))]
    against = [c.ratio / best for m, c in ours if (best := _inductor(m))]
    wrong = [f"{m.name} at {m.batch}" for m in ran for c in m.contenders if c.name == "kernelwright" and not c.right]
    slower = [f"{m.name} at {m.batch}" for m, c in ours if c.high < 0.97]
    waits = [(c.first, other.first) for m, c in ours if m.graphs for other in [m.of("compile")] if other]
    return {
        "cases": len(found),
        "failed": [f"{m.name} at {m.batch}: {m.failed}" for m in found if m.failed],
        "wrong": wrong,
        "quiet": sum(m.quiet for m in ran),
        "over_eager": _mean([c.ratio for _, c in ours]),
        "over_inductor": _mean(against),
        "inductor_over_eager": _mean([c.ratio for m in ran if (c := m.of("compile"))]),
        "slower_than_eager": slower,
        "first_calls_over_inductors": _mean([a / b for a, b in waits]),
    }


def _inductor(found: Measured) -> float:
    return max((c.ratio for c in found.contenders if c.name != "kernelwright" and c.right), default=0.0)


def _mean(values: Sequence[float]) -> float | None:
    known = [v for v in values if v > 0]
    return round(exp(sum(map(log, known)) / len(known)), 3) if known else None


def _conditions(plan: Plan, found: Sequence[Measured]) -> dict[str, Any]:
    import torch

    from kernelwright.target.cpu import cpu_info

    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "cpu": cpu_info()["model"],
        "threads": plan.threads,
        "torch": str(torch.__version__),
        "batches": list(plan.batches),
        "contenders": list(plan.contenders),
        "busy": [f"{m.name} at {m.batch}" for m in found if not m.failed and not m.quiet],
    }


def _markdown(summary: dict[str, Any], found: Sequence[Measured]) -> str:
    conditions = summary["conditions"]
    busy, ran = len(conditions["busy"]), sum(not m.failed for m in found)
    means = (
        ("ours over eager", summary["over_eager"]),
        ("ours over the better Inductor", summary["over_inductor"]),
        ("Inductor (default) over eager", summary["inductor_over_eager"]),
        ("our first call over Inductor's", summary["first_calls_over_inductors"]),
    )
    lines = [
        "# Whole networks",
        "",
        f"`kernelwright bench networks`, {conditions['date']}, {conditions['cpu']}, {conditions['threads']} thread(s), torch "
        f"{conditions['torch']}, fp32, inference, random weights; caches empty before each case.",
        "Contenders run in turns on the same weights and inputs; ratios are medians over rounds with a 95 % interval. Where no graph is on",
        "ours, eager serves, and what the ratio differs from 1 is noise.",
        *(
            ["", f"**{busy} of {ran} cases were measured on a busy machine (marked \\*): their figures are weak.**"]
            if busy
            else []
        ),
        "",
        f"{summary['cases']} cases; wrong: {', '.join(summary['wrong']) or 'none'}; beyond noise slower than 0.97x eager: "
        f"{', '.join(summary['slower_than_eager']) or 'none'}; failed: {', '.join(summary['failed']) or 'none'}.",
        "",
        "| geometric mean | |",
        "| --- | --- |",
        *(f"| {name} | {value:.2f}x |" for name, value in means if value),
        "",
        "| network | batch | eager ms | ours over eager | Inductor over eager | floor / ours | graphs on ours | first calls, s |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *(_line(m) for m in found),
        "",
        "The floor is the sum over the network's products of the larger of operations by peak and bytes by bandwidth, of this machine.",
        "",
    ]
    return "\n".join(lines)


def _line(found: Measured) -> str:
    head = f"| {found.name} | {found.batch} | "
    if found.failed:
        return f"{head}– | failed: {found.failed} | | | | |"
    ours, inductor = (next((c for c in found.contenders if c.name == n), None) for n in ("kernelwright", "compile"))
    share = f"{found.floor / ours.seconds:.2f}" if ours is not None and ours.seconds else "–"
    firsts = ", ".join(f"{c.first:.1f}" for c in (ours, inductor) if c is not None)
    mark = "" if found.quiet else " \\*"
    graphs = f"{found.used} of {found.graphs}"
    return f"{head}{found.eager * 1e3:.2f}{mark} | {_ratio(ours)} | {_ratio(inductor)} | {share} | {graphs} | {firsts} |"


def _ratio(one: Contender | None) -> str:
    if one is None:
        return "–"
    return f"{one.ratio:.2f} [{one.low:.2f}, {one.high:.2f}]" if one.right else f"wrong: {one.why[:80]}"
