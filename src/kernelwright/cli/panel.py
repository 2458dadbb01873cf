"""How a verdict looks on a terminal: a Verdict in, a rich panel out. Says only what the verdict says."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from kernelwright.core.verdict import Build, CompiledFor, Mismatch, Sizes, Status, Timing, Verdict

BAR_WIDTH = 24


def verdict_panel(verdict: Verdict) -> Panel:
    """The whole verdict: what became of the kernel, how fast it is or where it is wrong, and what that rests on."""
    colour = "green" if verdict.ok else "yellow" if verdict.status is Status.unusable_task else "red"
    title = Text.assemble(
        (f"{'✓' if verdict.ok else '✗'} {verdict.status}", f"bold {colour}"), f"  {verdict.task} · {verdict.dsl}"
    )
    parts: list[RenderableType] = [Text(verdict.reason)]
    if verdict.timing:
        parts += [Text(""), _timing(verdict.timing)]
    if verdict.compiled_for:
        parts += [Text(""), _compiled(verdict.compiled_for)]
    if verdict.mismatch:
        parts += [Text(""), _mismatch(verdict.mismatch)]
    if verdict.build:
        parts += [Text(""), _build(verdict.build)]
    if verdict.stderr_tail and not verdict.ok:
        parts += [Text(""), Text("it printed:", style="dim"), Text(_tail(verdict.stderr_tail), style="dim")]
    parts += [Text(""), _grounds(verdict)]
    parts += [Text(f"! {sentence}", style="yellow") for sentence in (*verdict.task_flags, *verdict.warnings)]
    if verdict.sandbox == "none":
        parts.append(Text("! NOT SANDBOXED: this kernel ran with the rights of this user", style="bold red"))
    return Panel(Group(*parts), title=title, title_align="left", border_style=colour, expand=False, padding=(0, 1))


def page_of(run: str) -> Text:
    """How to look at a run in a browser."""
    return Text(f"in a browser: kernelwright serve {run}", style="dim")


def _timing(timing: Timing) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_row("kernel", _milliseconds(timing.kernel_ms), Text(_claim(timing), style="bold"))
    against = _ratio(timing.speedup, timing.speedup_low, timing.speedup_high)
    table.add_row("PyTorch eager", _milliseconds(timing.eager_ms), against)
    if timing.compile_ms is not None and timing.speedup_vs_compile is not None:
        against = _ratio(timing.speedup_vs_compile, timing.speedup_vs_compile_low, timing.speedup_vs_compile_high)
        table.add_row("torch.compile", _milliseconds(timing.compile_ms), against)
    if timing.roofline_ms is not None and timing.roofline_fraction is not None:
        table.add_row("roofline", _milliseconds(timing.roofline_ms), _bar(timing.roofline_fraction))
    how = f"{timing.rounds} rounds, {timing.threads} threads, {timing.cache} cache, eager against itself ±{timing.noise:.1%}"
    table.add_row("", "", Text(how, style="dim"))
    if timing.kernel_mb is not None and timing.eager_mb is not None:
        table.add_row(
            "", "", Text(f"memory of a call {timing.kernel_mb:.1f} MB, of eager's {timing.eager_mb:.1f} MB", style="dim")
        )
    return table


def _claim(timing: Timing) -> str:
    if timing.faster:
        return f"{timing.speedup:.2f}x as fast as eager"
    return "slower than eager" if timing.speedup_high < 1.0 else "no difference to eager can be shown"


def _ratio(middle: float, low: float | None, high: float | None) -> Text:
    colour = "" if low is None or high is None else "green" if low > 1 else "red" if high < 1 else "yellow"
    interval = "" if low is None or high is None else f"  [{low:.2f}, {high:.2f}]"
    return Text.assemble((f"{middle:.2f}x", colour), (interval, "dim"))


def _bar(fraction: float) -> Text:
    filled = min(BAR_WIDTH, max(0, round(fraction * BAR_WIDTH)))
    beyond = "  (served from cache, or less work than the reference)" if fraction > 1.05 else ""
    return Text.assemble(("█" * filled, "cyan"), ("░" * (BAR_WIDTH - filled), "dim"), f" {fraction:.0%}", (beyond, "dim"))


def _compiled(targets: dict[str, CompiledFor]) -> Table:
    """What the compilers of targets that are not at hand say; a time among it is a prediction and called so."""
    table = Table.grid(padding=(0, 2))
    for name, figures in targets.items():
        known = ((figures.registers, "registers"), (figures.shared_memory, "B shared"), (figures.spills, "B spilled"))
        said = [f"{value} {unit}" for value, unit in known if value is not None]
        if not said:
            said = [f"lowered to {figures.stage} by {figures.compiler}" if figures.stage else figures.compiler]
        if figures.occupancy is not None:
            said.append(f"occupancy {figures.occupancy:.0%} (limited by {figures.limiter})")
        table.add_row(name, figures.architecture, ", ".join(said))
        if figures.predicted_ms is not None:
            table.add_row("", "", Text(f"predicted, not measured: {figures.predicted_ms:.3g} ms", style="dim"))
    return table


def _mismatch(mismatch: Mismatch) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_row("where", f"{mismatch.output}: {mismatch.region}")
    if mismatch.total:
        table.add_row("wrong", f"{mismatch.wrong:,} of {mismatch.total:,} elements ({mismatch.wrong / mismatch.total:.1%})")
    if mismatch.worst_error is not None:
        bound = f", allowed {mismatch.bound:.3g}" if mismatch.bound is not None else ""
        table.add_row("worst error", f"{mismatch.worst_error:.3g}{bound}")
    if mismatch.trial:
        table.add_row("inputs", mismatch.trial)
    for index, sample in enumerate(mismatch.samples):
        table.add_row("" if index else "for example", sample)
    return table


def _build(build: Build) -> Group:
    return Group(Text(build.message, style="bold"), Syntax(build.excerpt, "cpp", theme="ansi_dark", word_wrap=True))


def _grounds(verdict: Verdict) -> Table:
    """What the verdict rests on."""
    table = Table.grid(padding=(0, 2))
    trials = verdict.trials
    if trials.seeds or trials.distributions:
        run = [f"{trials.seeds} seeds", f"{len(trials.distributions)} distributions ({', '.join(trials.distributions)})"]
        run += [f"{trials.shapes} shapes"] if trials.shapes > 1 else []
        run += [f"{trials.noncontiguous} non-contiguous"] if trials.noncontiguous else []
        table.add_row(_dim("trials"), _dim(", ".join(run) + (f"; {trials.reference}" if trials.reference else "")))
    if verdict.sizes is not None:
        table.add_row(_dim("sizes"), _dim(_sizes(verdict.sizes)))
    if verdict.proof is not None:
        colour = {"proved": "dim", "unproved": "yellow", "refuted": "bold red"}[verdict.proof.outcome]
        table.add_row(_dim("all sizes"), Text(verdict.proof.statement, style=colour))
    track = verdict.track + (f": {', '.join(verdict.library_calls)}" if verdict.library_calls else "")
    table.add_row(_dim("track"), _dim(track))
    table.add_row(
        _dim("ran"), _dim(f"{verdict.execution} on {verdict.target}, sandbox {verdict.sandbox}, {verdict.seconds:.1f} s")
    )
    return table


def _sizes(sizes: Sizes) -> str:
    """What varies, where it was tried, how fast it is there."""
    lines = [sizes.ranges, f"tried at {'; '.join(sizes.tried)}" if sizes.tried else "tried at no other size"]
    lines += [f"{each.speedup:.2f}x eager at {each.sizes}" for each in sizes.timed]
    lines += [f"{sizes.speedup:.2f}x eager, geometric mean over sizes"] if sizes.speedup else []
    return "\n".join([*lines, *(f"left out: {each}" for each in sizes.left_out)])


def _dim(text: str) -> Text:
    return Text(text, style="dim")


def _milliseconds(value: float) -> Text:
    digits = f"{value:.2f} ms" if value >= 0.1 else f"{value * 1e3:.2f} µs"
    return Text(digits, justify="right")


def _tail(text: str, lines: int = 12) -> str:
    return "\n".join(text.strip().splitlines()[-lines:])
