"""A profile put together for whoever reads it: plain data for scripts, tables for people. Each figure says what it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from kernelwright.core.launch_figures import LaunchFigures
from kernelwright.core.verdict import KernelFigures
from kernelwright.target import Target

_SHOWN_LINES, _SHOWN_LAUNCHES = 8, 12


@dataclass(frozen=True)
class Told:
    """All that is known. `coarse` has the compiler's figures where launches were not counted (targets without PTX)."""

    kernel: str
    target: Target
    launches: tuple[LaunchFigures, ...]
    predicted_ms: float | None
    task: str = ""
    error: float | None = None
    speed_of_light_ms: float | None = None
    work_bytes: int = 0
    work_flops: int = 0
    dtype: str = "float32"
    compiler: str = ""
    coarse: tuple[KernelFigures, ...] = ()
    wrong: str = ""
    notes: tuple[str, ...] = ()

    @property
    def advice(self) -> tuple[str, ...]:
        """At most three sentences: those of the launches that take longest."""
        slowest = sorted(self.launches, key=lambda each: -each.times * each.predicted.ms)
        named = len(self.launches) > 1
        said = [f"{each.name}: {text}" if named else text for each in slowest for text in each.advice]
        return tuple(dict.fromkeys(said))[:3]

    def roofline(self) -> dict[str, Any]:
        """The roof of the target, and where each launch is predicted to stand under it."""
        t = self.target
        points = []
        for each in self.launches:
            moved, done = each.predicted.memory_bytes, each.counted.operations
            seconds = each.predicted.ms / 1e3
            rate = done / seconds if seconds else 0.0
            points.append({"name": each.name, "flops_per_byte": done / moved if moved else None, "flops_per_second": rate})
        peaks = {self.dtype: t.peak(self.dtype), "float32": t.peak("float32")}
        return {"bandwidth": t.bandwidth, "peak_flops": peaks, "launches": points}

    def as_json(self) -> dict[str, Any]:
        """One object; `counted`, `compiled` and `predicted` are named so in every launch."""
        return {
            "kernel": self.kernel, "task": self.task or None, "target": self.target.name, "measured": False,
            "predicted_ms": self.predicted_ms, "predicted_error": self.error, "speed_of_light_ms": self.speed_of_light_ms,
            "speed_of_light_share": share(self), "work": {"bytes": self.work_bytes, "flops": self.work_flops, "dtype": self.dtype},
            "compiler": self.compiler, "launches": [each.model_dump(mode="json") for each in self.launches],
            "kernels": [each.model_dump(mode="json") for each in self.coarse], "roofline": self.roofline(),
            "advice": list(self.advice), "wrong": self.wrong or None, "notes": list(self.notes),
        }  # fmt: skip


def share(told: Told) -> float | None:
    """Of the speed of light that the prediction reaches."""
    if not told.predicted_ms or told.speed_of_light_ms is None:
        return None
    return told.speed_of_light_ms / told.predicted_ms


def as_text(told: Told) -> Group:
    """For a terminal."""
    parts: list[Any] = [
        Text(f"{told.kernel} on {told.target.title or told.target.name}: no device here, nothing is measured", style="bold")
    ]
    if told.wrong:
        parts.append(Text(f"wrong on the task's inputs: {told.wrong}", style="red"))
    if told.predicted_ms is not None:
        error = f" ± {told.error:.0%}" if told.error else ""
        parts.append(Text(f"predicted {milliseconds(told.predicted_ms)}{error} a call"))
    if told.speed_of_light_ms:
        reached = share(told)
        work = f"{short(told.work_bytes)}B, {short(told.work_flops)}FLOP in {told.dtype}, by the sheet"
        text = f"speed of light {milliseconds(told.speed_of_light_ms)} ({work})"
        parts.append(Text(text + (f": {reached:.0%} of it" if reached else "")))
    for each in told.launches[:_SHOWN_LAUNCHES]:
        parts += ["", _launch(each)]
        parts += (
            [Text("hottest lines: share of the time predicted, the rest counted", style="dim"), _lines(each)]
            if each.lines
            else []
        )
    if len(told.launches) > _SHOWN_LAUNCHES:
        parts.append(
            Text(f"and {len(told.launches) - _SHOWN_LAUNCHES} further kinds of launches (--json has all)", style="dim")
        )
    for kernel in told.coarse:
        registers = (
            f"{kernel.registers} registers, {kernel.spills or 0} B spilled" if kernel.registers is not None else "no figures"
        )
        parts.append(
            Text(
                f"{kernel.name}: {registers}, occupancy {kernel.occupancy or 0:.0%}; nothing was counted: the time is a roofline's"
            )
        )
    if told.advice:
        parts += ["", Text("what to change", style="bold"), *(Text(f"{n}. {text}") for n, text in enumerate(told.advice, 1))]
    parts += [Text(f"note: {note}", style="dim") for note in told.notes]
    return Group(*parts)


def _launch(each: LaunchFigures) -> Table:
    table = Table.grid(padding=(0, 2))
    c, m, p = each.counted, each.compiled, each.predicted
    times = f", {each.times} times" if each.times > 1 else ""
    table.add_row(
        Text(each.name, style="bold"), f"grid {'x'.join(map(str, each.grid))}, block {'x'.join(map(str, each.block))}{times}"
    )
    kinds = ", ".join(f"{short(count)} {kind}" for kind, count in list(c.instructions.items())[:6])
    table.add_row(
        "counted",
        f"{short(sum(c.instructions.values()))} instructions of warps ({kinds}, …), {c.lanes_active:.1f} of 32 lanes active",
    )
    if c.sectors_per_request is not None:
        hits = f"first level holds {c.first_level_hits:.0%}" if c.first_level_hits is not None else ""
        table.add_row("counted", f"global: {short(c.global_requests)} requests of {c.sectors_per_request:.1f} sectors "
                                 f"({c.sector_efficiency or 0:.0%} of what was fetched is needed), {hits}")  # fmt: skip
    if c.bank_passes_per_request is not None:
        table.add_row("counted", f"shared: {short(c.shared_requests)} requests of {c.bank_passes_per_request:.2f} passes "
                                 f"({c.bank_efficiency or 0:.0%} needed), {short(c.barriers)} barriers")  # fmt: skip
    if c.atomics:
        table.add_row("counted", f"{short(c.atomics)} atomics")
    table.add_row("", f"on {c.sampled} blocks that stand for the grid; they differ by {c.spread:.0%}")
    spilled = f", {m.spilled_bytes} B spilled" if m.spilled_bytes else ""
    table.add_row("compiled", f"{m.registers} registers{spilled}, {m.shared_memory} B shared, occupancy {m.occupancy:.0%} "
                              f"(limited by {m.limiter}), {m.blocks_resident} blocks resident")  # fmt: skip
    table.add_row("predicted", f"{milliseconds(p.ms)} ± {p.error:.0%}, bound by {p.bound}; {p.waves:.2f} waves")
    parts = ", ".join(f"{name} {milliseconds(ms)}" for name, ms in list(p.parts_ms.items())[:6])
    table.add_row(
        "predicted", f"alone: {parts}; second level moves {short(p.second_level_bytes)}B, memory {short(p.memory_bytes)}B"
    )
    return table


def _lines(each: LaunchFigures) -> Table:
    table = Table.grid(padding=(0, 2))
    for line in each.lines[:_SHOWN_LINES]:
        place = f"{Path(line.file).name}:{line.line}" if line.file else f"PTX {line.line}"
        said = []
        if line.sectors_per_request:
            said.append(f"{line.sectors_per_request:.1f}/{line.least_sectors or 0:.1f} sectors")
        if line.bank_passes_per_request:
            said.append(f"{line.bank_passes_per_request:.1f}/{line.least_passes or 0:.1f} passes")
        table.add_row(f"{line.share:4.0%}", short(line.instructions), " ".join(said), place, Text(line.source, style="cyan"))
    return table


def milliseconds(value: float) -> str:
    """With its unit."""
    return f"{value:.3g} ms" if value >= 0.1 else f"{value * 1e3:.3g} µs"


def short(value: float) -> str:
    """A number with the letter of its power of a thousand."""
    for factor, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value:.0f} "
