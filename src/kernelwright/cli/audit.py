"""`kernelwright audit`: the gallery through the judge, as a table and two rates.

In: a gallery folder and a selection. Out: one line for each kernel (entry, file, expected, got), false-accept and false-reject
rates, exit code 1 when anything was not as it must be. `judge/honesty/gallery.py` owns what an exhibit is; this file shows it.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelwright.core.errors import KernelwrightError

if TYPE_CHECKING:
    from kernelwright.judge.honesty.gallery import Exhibit, Outcome, Rates

LOOP_LIMIT = 10.0
"""Seconds after which a call of a gallery kernel is taken to be endless; the tasks take milliseconds."""

BUILD_LIMIT = 60.0
SLOW_BUILD_LIMIT = 300.0


def audit_command(
    fast: Annotated[
        bool, typer.Option("--fast", help="Leave out kernels that need the timed phase, a long build or a timeout.")
    ] = False,
    gallery: Annotated[Path | None, typer.Option(help="Folder with tasks/, cheats/ and honest/.")] = None,
    only: Annotated[str, typer.Option("--filter", help="Only kernels whose name or catalogue entry contains this.")] = "",
    mutate: Annotated[
        int, typer.Option(min=0, help="Judge so many new cheats instead: honest kernels with a fault that a trigger sets off.")
    ] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Kernels judged at a time.")] = 2,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run the gallery of cheats and honest kernels through the judge."""
    from kernelwright.judge.honesty import gallery as rooms

    if mutate:
        show_share(rooms.read(gallery or rooms.locate()), mutate, jobs, as_json)
        return
    exhibits = select(rooms.read(gallery or rooms.locate()), fast, only)
    if not exhibits:
        raise KernelwrightError(f"no kernel of the gallery matches {only!r}")
    started = time.monotonic()
    outcomes = []
    for outcome in judged(exhibits, jobs):
        outcomes.append(outcome)
        said = "ok" if outcome.ok else f"{outcome.complaint}, got {outcome.verdict.status}: {outcome.verdict.reason}"
        print(f"{len(outcomes):4d}/{len(exhibits)} {outcome.exhibit.name} {said}", file=sys.stderr, flush=True)
    order = {exhibit.path: place for place, exhibit in enumerate(exhibits)}
    outcomes.sort(key=lambda one: order[one.exhibit.path])
    rates = rooms.Rates.of(outcomes)
    seconds = time.monotonic() - started
    if as_json:
        print(json.dumps(report(outcomes, rates, seconds)))
    else:
        show(outcomes, rates, seconds)
    if not all(one.ok for one in outcomes):
        raise typer.Exit(1)


def show_share(exhibits: list[Exhibit], count: int, jobs: int, as_json: bool) -> None:
    """New cheats by rule through the judge: how many were accepted, which, and within what interval the share lies."""
    from kernelwright.judge.honesty.mutants import Share, mutants

    with tempfile.TemporaryDirectory() as folder:
        outcomes = list(judged(list(mutants(exhibits, count, Path(folder))), jobs))
    accepted = sorted(one.exhibit.path.stem for one in outcomes if one.verdict.ok)
    share = Share(len(outcomes), len(accepted))
    low, high = share.interval
    if as_json:
        print(json.dumps({"attempts": share.attempts, "accepted": accepted, "low": low, "high": high}))
    else:
        print(*accepted, f"accepted {share.accepted} of {share.attempts} ({low:.2%} to {high:.2%})", sep="\n")


def select(exhibits: list[Exhibit], fast: bool, only: str) -> list[Exhibit]:
    """The exhibits that were asked for."""
    return [one for one in exhibits if (one.fast or not fast) and (only in one.name or only in one.entry.split(","))]


def judged(exhibits: list[Exhibit], jobs: int) -> Iterator[Outcome]:
    """Outcomes as they come. A long build gets a patient judge of its own, which would let a loop run for minutes."""
    from kernelwright.judge import Judge, Times
    from kernelwright.judge.honesty.gallery import examine

    for slow, limit in ((False, BUILD_LIMIT), (True, SLOW_BUILD_LIMIT)):
        part = [one for one in exhibits if one.slow == slow]
        if not part:
            continue
        with Judge(times=Times(build=limit, run=LOOP_LIMIT)) as judge, ThreadPoolExecutor(jobs) as pool:
            try:
                yield from pool.map(lambda one, judge=judge: examine(judge, one), part)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                judge.close()  # ends the verdicts under way, which the pool would wait for (a build takes a minute)
                raise


def report(outcomes: list[Outcome], rates: Rates, seconds: float) -> dict[str, object]:
    """The whole audit as one JSON object."""
    return {
        "ok": all(one.ok for one in outcomes),
        "cheats": rates.cheats,
        "false_accepts": rates.false_accepts,
        "rejected_for_another_reason": rates.misnamed,
        "honest": rates.honest,
        "false_rejects": rates.false_rejects,
        "seconds": round(seconds, 1),
        "kernels": [
            {
                "name": one.exhibit.name,
                "entry": one.exhibit.entry,
                "expected": list(one.exhibit.statuses),
                "status": one.verdict.status,
                "reason": one.verdict.reason,
                "sandbox": one.verdict.sandbox,
                "seconds": one.verdict.seconds,
                "ok": one.ok,
            }
            for one in outcomes
        ],
    }


def show(outcomes: list[Outcome], rates: Rates, seconds: float) -> None:
    """The audit as a table, with the two rates below it."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title="The gallery", header_style="bold", pad_edge=False)
    for column in ("entry", "file", "expected", "got", "ok"):
        table.add_column(column, overflow="fold")
    for one in outcomes:
        got = (
            f"{one.verdict.status}: {one.verdict.reason}"
            if one.exhibit.kind == "cheat" or not one.ok
            else str(one.verdict.status)
        )
        mark = "[green]yes[/]" if one.ok else f"[red]no: {one.complaint}[/]"
        table.add_row(one.exhibit.entry, one.exhibit.name, " or ".join(one.exhibit.statuses), escape(got), mark)
    console = Console()
    console.print(table)
    console.print(
        f"false accepts {rates.false_accepts} of {rates.cheats} cheats, "
        f"rejected for another reason than expected {rates.misnamed}; "
        f"false rejects {rates.false_rejects} of {rates.honest} honest kernels; {seconds:.0f} s"
    )
