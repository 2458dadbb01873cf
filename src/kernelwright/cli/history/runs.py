"""`kernelwright runs`: what was run, how it ended, what it brought and cost; `--prune DAYS` forgets what is old. `kernelwright resume RUN`:
go on where a run stopped; it is repeated from its start, and what it had paid for or found out is recalled."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from kernelwright.store import RunRecord, Store


def runs_command(
    limit: Annotated[int, typer.Option(min=1, help="How many runs, the newest first.")] = 30,
    prune: Annotated[float | None, typer.Option(min=0, metavar="DAYS", help="Forget what was not used for so long.")] = None,
    store: Annotated[str | None, typer.Option(help="Folder or database URL of the store.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """List the runs in the store."""
    with open_store(store) as opened:
        return _prune(opened, prune, as_json) if prune is not None else _list(opened, limit, as_json)


def open_store(place: str | None) -> Store:
    """The store that the flag, else the configuration names."""
    from kernelwright.core import config
    from kernelwright.store import Store

    return Store.open(config.load({"store": place}).settings.store or None)


def _prune(store: Store, days: float, as_json: bool) -> int:
    from dataclasses import asdict

    gone = store.prune(days)
    if as_json:
        print(json.dumps(asdict(gone)))
    else:
        print(f"forgot {gone.runs} runs and {gone.memos} results; {gone.contents} files, {gone.bytes / 1e6:.1f} MB freed")
    return 0


def _list(store: Store, limit: int, as_json: bool) -> int:
    from kernelwright.store.summary import row as row_of

    shown = [row_of(_whole(store, run)) for run in store.runs()[:limit]]
    if as_json:
        print(json.dumps({"runs": shown}))
        return 0
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if not shown:
        console.print("no runs yet")
        return 0
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("run", "status", "task", "language", "model", "speedup", "steps", "cost", "time"):
        table.add_column(title, justify="right" if title in ("speedup", "steps", "cost", "time") else "left")
    for row in shown:
        cells = (
            row["run"],
            row["status"],
            row["task"],
            row["dsl"],
            row["model"],
            f"{row['speedup']:.2f}x" if row["speedup"] else "",
            str(row["steps"]),
            f"${row['cost_usd']:.4f}" if row["cost_usd"] else "",
            f"{row['seconds']:.0f} s",
        )
        table.add_row(*(Text(cell) for cell in cells))
    console.print(table)
    return 0


def _whole(store: Store, run: RunRecord) -> RunRecord:
    """With its steps; one whose row was damaged or pruned meanwhile is shown as it was listed."""
    from kernelwright.core.errors import StoreError

    try:
        return store.load_run(run.id)
    except StoreError:
        return run


def resume_command(
    run: Annotated[str, typer.Argument(help="A run's name, or the beginning of it.")],
    store: Annotated[str | None, typer.Option(help="Folder or database URL of the store.")] = None,
    show_sketch: Annotated[bool, typer.Option("--show-sketch", help="Print the sketch too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Go on with a run that was interrupted."""
    from kernelwright.cli import generate, migrate
    from kernelwright.cli.progress import watching
    from kernelwright.core import config
    from kernelwright.jobs.migrate.steps import Migrated
    from kernelwright.jobs.start import resume

    place = config.load({"store": store}).settings.store
    with watching(run) as observer:
        done = resume(run, place, observer)
    if isinstance(done.result, Migrated):
        return migrate.report(done, as_json=as_json)
    return generate.report(done, show_sketch=show_sketch, as_json=as_json)
