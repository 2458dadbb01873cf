"""`kernelwright migrate`: a kernel in one language in; the same kernel in another out, judged, with a report of what changed and why."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelwright.cli import options

if TYPE_CHECKING:
    from kernelwright.jobs.start import Finished


def migrate_command(
    kernel: Annotated[
        str, typer.Argument(metavar="KERNEL", help="A kernel file, a .cu file; file.py:Name, package.module:Name.")
    ],
    to: Annotated[str, typer.Option("--to", help="Language to migrate to (see doctor).")],
    task: Annotated[str | None, typer.Option(help="What the kernel computes: a task file, or module.py:ClassName.")] = None,
    dsl: Annotated[str | None, typer.Option(help="Language of the source, where it cannot be told from the file.")] = None,
    target: Annotated[str, typer.Option(help="Hardware the new kernel is for.")] = "auto",
    inputs: options.Inputs = None,
    entry: options.Entry = None,
    init: Annotated[
        str | None, typer.Option(help='Without a task: what ModelNew is constructed with, e.g. "512, eps=1e-5".')
    ] = None,
    golden: Annotated[
        Path | None, typer.Option(help="Recorded inputs and outputs (torch.save) that stand for the source's device.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Who writes the kernel where the source cannot be lifted (with --task).")
    ] = None,
    max_cost: options.MaxCost = None,
    max_tokens: options.MaxTokens = None,
    track: options.Track = "pure",
    dynamic: options.Dynamic = None,
    out: options.Out = None,
    no_timing: Annotated[bool, typer.Option("--no-timing", help="Judge, but do not time.")] = False,
    no_compile: options.NoCompile = False,
    every: Annotated[
        bool, typer.Option("--all", help="All kernels of KERNEL: a file, a folder or a package; goes on where it was left.")
    ] = False,
    inputs_file: Annotated[
        Path | None, typer.Option(help='With --all: a TOML file, "file.py:name" = "f32[128,512], f32[512]".')
    ] = None,
    as_json: options.AsJson = False,
) -> int:
    """Migrate a kernel to another language or device, with proof that it computes the same."""
    if every:
        return _all(kernel, to, target, track, inputs_file, out, as_json=as_json)
    from kernelwright import suites
    from kernelwright.agents.task_from_code import constructor, draw, split_arguments
    from kernelwright.cli.progress import watching
    from kernelwright.compiler.language import installed
    from kernelwright.core.errors import ConfigError
    from kernelwright.core.job import JobSpec, Source
    from kernelwright.core.kernel import Kernel
    from kernelwright.jobs.start import start
    from kernelwright.judge import offdevice

    models, store = options.thinking(model=model, max_cost=max_cost, max_tokens=max_tokens)
    offdevice.require_device(to, target)
    source = Kernel.from_path(kernel, dsl=dsl, entry=entry, inputs=inputs)
    if source.original:
        inputs = None  # the file that stands for it says them
    if source.dsl not in installed() and source.sketch is None:
        raise ConfigError(f"{kernel}: no kernel language was recognised in it; name it with --dsl ({', '.join(installed())})")
    for item in split_arguments(inputs or ""):
        draw(item)
    if inputs and task:
        raise ConfigError("--inputs is for kernels without a task; the task says what forward is called with")
    if init and task:
        raise ConfigError("--init is for kernels without a task; the task says what ModelNew is constructed with")
    if dynamic and not task:
        raise ConfigError("--dynamic is for kernels with a task; a kernel without one keeps the sizes that its sketch varies")
    if golden is not None and not golden.is_file():
        raise ConfigError(f"{golden}: there is no such file of recorded outputs")
    job = JobSpec(
        suites.task(task, dynamic) if task else None,
        to,
        track,
        timing=not no_timing,
        compile_contender=not no_compile,
        target=target,
        source=Source(source, inputs or "", constructor(init) if init else "", str(golden.resolve()) if golden else ""),
        models=replace(models, designer="", coder=""),  # one model writes what cannot be lifted
        out=str(out) if out else None,
        store=store,
    )
    with watching(source.name) as observer:
        done = start(job, observer)
    return report(done, as_json=as_json)


def _all(
    place: str, to: str, target: str, track: options.Track, inputs_file: Path | None, out: Path | None, *, as_json: bool
) -> int:
    """Every kernel of a file, a folder or a package. Exit code 0 if all of them came out right."""
    import json
    import sys
    from dataclasses import asdict

    from kernelwright.cli.progress import watching
    from kernelwright.core.job import JobSpec, Source
    from kernelwright.core.kernel import Kernel
    from kernelwright.jobs.migrate import everything
    from kernelwright.jobs.migrate.steps import Migrated
    from kernelwright.jobs.start import start
    from kernelwright.judge import offdevice

    offdevice.require_device(to, target)
    _, store = options.thinking()
    found = everything.candidates(place)
    given = everything.inputs_of(inputs_file)

    def one(candidate: everything.Candidate, inputs: str | None, folder: Path) -> everything.Row:
        source = Kernel.from_path(candidate.spec, entry=candidate.entry or None, inputs=inputs)
        named = Source(source, "" if source.original else inputs or "")
        job = JobSpec(
            None, to, track, timing=False, compile_contender=False, target=target, source=named, out=str(folder), store=store
        )
        with watching(candidate.title) as observer:
            made = start(job, observer).result
        assert isinstance(made, Migrated)
        return everything.Row(candidate.title, str(made.verdict.status), made.verdict.reason)

    def said(row: everything.Row) -> None:
        print(f"{row.title}: {row.status}: {row.reason}", file=sys.stderr, flush=True)

    rows = everything.migrate_all(found, given, out or Path("migrated"), one, said)
    print(json.dumps([asdict(row) for row in rows]) if as_json else everything.table(rows), end="\n" if as_json else "")
    return 0 if rows and all(row.status == "correct" for row in rows) else 1


def report(done: Finished, *, as_json: bool) -> int:
    """What came of a run, for people or as one object; the exit code."""
    import json

    from rich.console import Console

    from kernelwright.cli.panel import page_of, verdict_panel
    from kernelwright.jobs.migrate.steps import Migrated

    made, folder = done.result, done.folder
    assert isinstance(made, Migrated)
    if as_json:
        told = {
            "kernel": str(folder.kernel),
            "sketch": str(folder.sketch),
            "verdict": made.verdict.model_dump(mode="json"),
            "run": done.run,
            "source_verdict": made.source.model_dump(mode="json") if made.source else None,
            "report": str(folder.path / "migration.md"),
            "schedule": made.chosen.kind,
            "changes": list(made.chosen.changes),
            "notes": list(made.notes),
            "seconds": made.seconds,
        }
        print(json.dumps(told))
        return 0 if made.verdict.ok else 1
    console = Console(highlight=False)
    console.print(verdict_panel(made.verdict))
    said = f"source: {made.source.status}, {made.source.reason}" if made.source else "source: recorded outputs"
    lines = [said, f"reference: {made.reference}", f"schedule: {made.chosen.kind}"]
    lines += [f"  changed  {change}" for change in made.chosen.changes]
    lines += [f"  kept     {kept}" for kept in made.chosen.kept]
    lines += [f"  open     {rule}" for rule in made.chosen.open]
    lines += [f"  note     {note}" for note in made.notes]
    for line in lines:
        console.print(line, markup=False)
    console.print(f"{folder.kernel}  {folder.sketch}  {folder.path / 'migration.md'}  [dim]{made.seconds:.1f} s[/dim]")
    console.print(page_of(done.run))
    return 0 if made.verdict.ok else 1
