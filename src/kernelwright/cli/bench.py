"""`kernelwright bench`: suites or folders of tasks in; report.json, report.md, report.html out. `bench networks` times whole networks
(`programs/networks.py`), `bench compare A B` holds two reports against each other, `bench report DIR` writes the files of an
unfinished run anew, `bench readme FILE…` the tables of documents.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from kernelwright.cli import options
from kernelwright.core.errors import ConfigError
from kernelwright.core.plugins import DEFAULT_LANGUAGE

if TYPE_CHECKING:
    from kernelwright.jobs.bench.collect import Entry
    from kernelwright.jobs.bench.compare import Kind
    from kernelwright.jobs.bench.record import Options, Record
    from kernelwright.jobs.bench.report import Report

CONTENDERS = ("eager", "compile")
FURTHER = ("max-autotune",)


def bench_command(
    paths: Annotated[
        list[str], typer.Argument(help="Suites (core, fused, modern, shapes), folders, files; or: networks; or: compare A B.")
    ],
    dsl: Annotated[str, typer.Option(help="Language of the kernels.")] = DEFAULT_LANGUAGE,
    target: Annotated[str, typer.Option(help="Hardware the kernels are for.")] = "auto",
    track: Annotated[
        Literal["pure", "hybrid", "auto"], typer.Option(help="auto: hybrid only where no pure kernel was found.")
    ] = "pure",
    effort: Annotated[str, typer.Option(help="quick, standard or thorough.")] = "quick",
    model: Annotated[str, typer.Option(help="Who thinks: builtin, or openai:NAME, anthropic:NAME, …")] = "builtin",
    max_cost: Annotated[float | None, typer.Option(min=0, help="Dollars for the whole benchmark.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N tasks.")] = None,
    text: Annotated[
        str, typer.Option("--filter", help="Only tasks whose name contains this (several: a,b), or of this family.")
    ] = "",
    shard: Annotated[str, typer.Option(help="I/N: the I-th of N equal parts, evenly spread.")] = "",
    kernels: Annotated[Path | None, typer.Option(help="Judge the kernels of this folder instead of making some.")] = None,
    contenders: Annotated[str, typer.Option(help="What to time against, with commas; eager always is.")] = ",".join(CONTENDERS),
    dynamic: options.Dynamic = None,
    max_reference_seconds: Annotated[float, typer.Option(min=0.001, help="References slower than this are not run.")] = 5.0,
    scale: Annotated[float, typer.Option(min=0.001, max=1.0, help="Multiply every size of a task by this.")] = 1.0,
    jobs: Annotated[int, typer.Option(min=1, help="Tasks at a time; only one of them is timed.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Folder of the report.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    batches: Annotated[str, typer.Option(help="Of networks: batch sizes, with commas.")] = "1,8",
    threads: Annotated[int | None, typer.Option(min=1, help="Of networks: threads; without it all cores.")] = None,
    no_timing: Annotated[bool, typer.Option("--no-timing", help="Judge, but do not time.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Make, judge and time a kernel for every task of a suite, and report."""
    from kernelwright.core.effort import preset
    from kernelwright.core.task.dynamic import parse_dynamic
    from kernelwright.jobs.bench.collect import collect, select
    from kernelwright.jobs.bench.record import Options

    if paths[0] in ACTIONS and not Path(paths[0]).exists():
        return ACTIONS[paths[0]](paths[1:], as_json)
    if paths == ["networks"] and not Path("networks").exists():
        from kernelwright.cli.programs.networks import bench_networks

        folder = out or Path("kernelwright-out") / "bench-networks"
        return bench_networks(text, batches, _contenders(contenders), threads, folder, resume=resume, as_json=as_json)
    preset(effort)
    if dynamic:
        parse_dynamic(dynamic)
    settings = Options(
        dsl=dsl,
        target=target,
        track=track,
        effort=effort,
        model=model,
        contenders=_contenders(contenders),
        timing=not no_timing,
        scale=scale,
        dynamic=dynamic or "",
        max_reference_seconds=max_reference_seconds,
        kernels=str(kernels) if kernels else None,
    )
    entries = select(collect(paths), text=text, limit=limit, shard=shard)
    if not entries:
        raise ConfigError("no task is left by --filter, --limit and --shard")
    title = f"{', '.join(dict.fromkeys(entry.suite for entry in entries))} in {dsl}"
    folder = out or Path("kernelwright-out") / f"bench-{'-'.join(dict.fromkeys(entry.suite for entry in entries))}-{dsl}"
    report = _run(entries, settings, folder, title, resume=resume, jobs=jobs, max_cost=max_cost)
    _show(report, folder, as_json)
    return 0


def _compare(paths: list[str], as_json: bool) -> int:
    """Exit code 1 when anything got worse beyond noise."""
    from rich.console import Console

    from kernelwright.jobs.bench.compare import compare
    from kernelwright.jobs.bench.report import read

    if len(paths) != 2:
        raise ConfigError("name two reports: kernelwright bench compare BEFORE AFTER")
    found = compare(*(read(Path(path)) for path in paths))
    if as_json:
        print(json.dumps({"regressions": len(found.regressions), **found.model_dump(mode="json")}))
        return 1 if found.regressions else 0
    console = Console(highlight=False)
    for difference in found.differences:
        console.print(f"[yellow]not the same conditions: {difference}[/]")
    colors = {"lost": "red", "slower": "red", "gained": "green", "faster": "green"}
    for change in found.changes:
        if change.kind in colors:
            ratio = f"  {change.ratio:.2f}x" if change.ratio else ""
            console.print(f"[{colors[change.kind]}]{change.kind:7}[/] {change.key:52} {change.before} -> {change.after}{ratio}")
    counts = ", ".join(f"{len(found.of(kind))} {kind.replace('_', ' ')}" for kind in KINDS if found.of(kind))
    mean = (
        f"; over tasks timed in both {found.ratio.value:.3f}x [{found.ratio.low:.3f}, {found.ratio.high:.3f}]"
        if found.ratio
        else ""
    )
    console.print(counts + mean)
    return 1 if found.regressions else 0


def _rewrite(paths: list[str], as_json: bool) -> int:
    """The files of a run that is unfinished, or that was made by an older version."""
    from kernelwright.jobs.bench import report as reports
    from kernelwright.jobs.bench.ledger import NAME, stored

    if len(paths) != 1:
        raise ConfigError("name one folder: kernelwright bench report DIR")
    folder = Path(paths[0])
    if (folder / NAME).exists():
        options, sessions, records, planned = stored(folder)
        suites = ", ".join(dict.fromkeys(record.suite for record in records))
        made = reports.build(f"{suites} in {options.dsl}", options, sessions, records, planned)
    else:
        made = reports.read(folder)
    reports.write(made, folder)
    _show(made, folder, as_json)
    return 0


def _documents(paths: list[str], as_json: bool) -> int:
    """Fresh tables for the documents; exit code 0 also when nothing changed."""
    from kernelwright.jobs.bench.readme import refreshed

    changed = []
    for path in map(Path, paths or ["README.md"]):
        text = refreshed(path)
        if text != path.read_text():
            path.write_text(text)
            changed.append(str(path))
    print(json.dumps({"changed": changed}) if as_json else f"changed: {', '.join(changed) or 'nothing'}")
    return 0


ACTIONS = {"compare": _compare, "report": _rewrite, "readme": _documents}
KINDS: tuple[Kind, ...] = ("lost", "slower", "gained", "faster", "same", "only_before", "only_after")


def _run(
    entries: list[Entry], options: Options, folder: Path, title: str, *, resume: bool, jobs: int, max_cost: float | None
) -> Report:
    from kernelwright.jobs.bench.report import build, write
    from kernelwright.jobs.bench.run import run

    with _progress(len(entries)) as tell:
        ledger = run(entries, options, folder, resume=resume, jobs=jobs, tell=tell, max_cost=max_cost)
    records = [ledger.records[entry.key] for entry in entries if entry.key in ledger.records]
    report = build(title, options, ledger.sessions, records, len(entries))
    write(report, folder)
    return report


def _show(report: Report, folder: Path, as_json: bool) -> None:
    from kernelwright.jobs.bench.markdown import headline

    if as_json:
        facts = report.model_dump(mode="json", exclude={"records", "groups"})
        print(json.dumps({"folder": str(folder), "complete": report.complete, **facts}))
        return
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console()
    console.print(Markdown(headline(report)))
    for failure in report.failures:
        console.print(f"  {failure.outcome}: {failure.count}", highlight=False)
    console.print(f"[dim]{folder / 'report.html'}  {folder / 'report.md'}  {folder / 'report.json'}[/dim]", soft_wrap=True)
    console.print(f"[dim]in a browser: kernelwright serve --reports {folder}[/dim]", soft_wrap=True, highlight=False)


def _contenders(text: str) -> tuple[str, ...]:
    named = tuple(dict.fromkeys(["eager", *(word.strip() for word in text.split(",") if word.strip())]))
    known = [*CONTENDERS, *FURTHER, *(point.name for point in entry_points(group="kernelwright.contenders"))]
    unknown = [name for name in named if name not in known]
    if unknown:
        raise ConfigError(f"contender {unknown[0]!r} is unknown; choose from {', '.join(known)}")
    return named


@contextmanager
def _progress(total: int) -> Iterator[Any]:
    """A line for each finished task, and on a terminal a bar with the time that is left. All on stderr."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    started, first = time.monotonic(), [0]
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("bench", total=total, left="")

        def tell(record: Record, done: int, count: int) -> None:
            first[0] = first[0] or done - 1
            pace = (time.monotonic() - started) / max(1, done - first[0])
            left = f"{_clock(pace * (count - done))} left"
            progress.update(bar, completed=done, left=left)
            line = f"{done:4d}/{count} {record.key:52} {_told(record)}  {record.seconds:.1f} s"
            console.print(line + ("" if console.is_terminal else f"  ({left})"), highlight=False, markup=False, soft_wrap=True)

        yield tell


def _told(record: Record) -> str:
    timing = record.timing
    if timing is None:
        return record.outcome if record.correct else f"{record.outcome}: {record.reason[:100]}"
    compiled = f"  {timing.speedup_vs_compile:.2f}x compile" if timing.speedup_vs_compile else ""
    return f"correct  {timing.speedup:.2f}x eager{compiled}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
