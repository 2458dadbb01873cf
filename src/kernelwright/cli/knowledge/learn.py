"""`kernelwright learn`: skills out of finished runs. Proposed by rule; a proposal's worked example goes before the judge; what is
accepted is kept in the user's folder with a version and the runs that it comes from (`--dry-run` only shows)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from kernelwright.agents.knowledge.learning import Proposal
    from kernelwright.judge import Judge


def learn_command(
    limit: Annotated[int, typer.Option(min=1, help="How many runs to look at, the newest first.")] = 100,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be kept, and keep nothing.")] = False,
    store: Annotated[str | None, typer.Option(help="Folder or database URL of the store.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Learn skills from finished runs."""
    from kernelwright.agents.knowledge import shelf
    from kernelwright.agents.knowledge.learning import propose
    from kernelwright.cli.history.runs import open_store
    from kernelwright.judge import Judge

    with open_store(store) as opened:
        records = [opened.load_run(run.id) for run in opened.runs()[:limit]]

        def text(name: str) -> str:
            data = opened.get(name) if name else None
            return data.decode(errors="replace") if data is not None else ""

        proposals = propose(records, text)
    told = []
    with Judge() as judge:
        for one in proposals:
            accepted, why = _accepted(judge, one)
            place = shelf.own_folder() / f"{one.name}.md"
            version = _version(place) + 1
            if accepted and not dry_run:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(one.text(version))
            found = {"skill": one.name, "version": version, "runs": one.runs, "gains": len(one.gains), "fixes": len(one.fixes)}
            told.append({**found, "accepted": accepted, "reason": why, "text": one.text(version)})
    if as_json:
        print(json.dumps({"proposals": told, "kept": not dry_run}))
    else:
        for row in told:
            state = ("kept" if not dry_run else "would be kept") if row["accepted"] else "not kept"
            print(
                f"{row['skill']} version {row['version']}: {row['gains']} gains, {row['fixes']} fixes; {state}: {row['reason']}"
            )
        if not told:
            print("no finished run has anything to teach yet")
    return 0


def _accepted(judge: Judge, proposal: Proposal) -> tuple[bool, str]:
    """Whether what a proposal shows as a kernel is one."""
    from kernelwright.core.kernel import Kernel
    from kernelwright.core.task import Task

    if proposal.example is None:
        return True, "it shows no whole kernel"
    task = Task.from_source(proposal.example.task, path=f"{proposal.name}.py")
    verdict = judge.verify(task, Kernel.from_source(proposal.example.kernel, dsl=proposal.dsl), dsl=proposal.dsl, timing=False)
    return verdict.ok, f"its worked example: {verdict.reason}"


def _version(place: Path) -> int:
    from kernelwright.agents.knowledge.skills import read

    return read(place).version if place.exists() else 0
