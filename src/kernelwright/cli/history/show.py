"""`kernelwright show RUN`: the journal of a run as a tree: each step under the one whose result it used, with its reason.

`--table [FILE]` prints the Conductor's table, ours or another, and its dead ends.
`--step N` prints what one step was given and what came of it: the prompt, the sketch, the kernel, the verdict.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from kernelwright.store import RunRecord, Step, Store

JOB_FACTS = ("command", "task", "dsl", "target", "track", "effort", "model")
GOOD = {"correct", "done"}
BAD = {
    "failed",
    "cheating",
    "crashed",
    "timed_out",
    "build_failed",
    "wrong_values",
    "wrong_shape",
    "wrong_dtype",
    "interrupted",
}


def show_command(
    run: Annotated[str, typer.Argument(help="A run's name, or the beginning of it; with --table a TOML file.")] = "",
    step: Annotated[int | None, typer.Option(help="Print what this step was given and what came of it.")] = None,
    t4: Annotated[
        bool, typer.Option("--t4", help="Print the search's measurements as T4 JSON, for other tuners' tools.")
    ] = False,
    table: Annotated[bool, typer.Option("--table", help="Print the Conductor's table and its dead ends.")] = False,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="With --table: as a Mermaid flowchart.")] = False,
    store: Annotated[str | None, typer.Option(help="Folder or database URL of the store.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Show a run: its steps with their reasons, its best over time, its cost."""
    from kernelwright.cli.history.runs import open_store
    from kernelwright.core.errors import ConfigError, StoreError

    if table:
        from kernelwright.cli.history.table import show_table

        return show_table(run, mermaid=mermaid, as_json=as_json)
    if not run:
        raise ConfigError("name a run (kernelwright runs lists them), or write --table for the Conductor's table")
    with open_store(store) as opened:
        record = opened.load_run(run)
        if t4:
            from kernelwright.search.t4 import export

            print(json.dumps(export(record)))
            return 0
        if step is None:
            from kernelwright.store.summary import report

            if as_json:
                print(json.dumps(report(record)))
            else:
                _print(record, report(record))
            return 0
        found = next((one for one in record.steps if one.number == step), None)
        if found is None:
            raise StoreError(f"run {record.id} has no step {step}; it has {len(record.steps)}")
        texts = _texts(opened, found)
    if as_json:
        print(json.dumps({**asdict(found), "texts": texts}))
    else:
        _print_step(found, texts)
    return 0


def _print(record: RunRecord, report: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.text import Text
    from rich.tree import Tree

    from kernelwright.cli.progress import bars

    console = Console()
    job = "  ".join(str(record.job[key]) for key in JOB_FACTS if record.job.get(key))
    console.print(Text.assemble((record.id, "bold"), "  ", (record.status, _colour(record.status)), f"  {job}"))
    spent, best = report["spent"], report["best_over_time"]
    line = f"{len(record.steps)} steps, {record.seconds:.0f} s"
    if spent["calls"]:
        line += f"; {spent['calls']} calls, {spent['tokens_in']:,} + {spent['tokens_out']:,} tokens, ${spent['cost_usd']:.4f}"
        line += f" ({spent['unpriced']} without a known price)" if spent["unpriced"] else ""
    console.print(Text(line))
    if best:
        path = " → ".join(f"{one['speedup']:.2f}x at {one['seconds']:.0f} s (step {one['step']})" for one in best)
        console.print(Text(f"best over time  {bars([one['speedup'] for one in best])}  {path}"))
    tree = Tree(Text("steps"), guide_style="dim")
    nodes: dict[int | None, Tree] = {None: tree}
    parents = record.parents()
    for step in record.steps:
        nodes[step.number] = nodes[parents[step.number]].add(_line(step))
    console.print(tree)
    for name in record.damaged:
        console.print(Text(f"{name} of this run is damaged and left out", "yellow"))


def _line(step: Step) -> Text:
    from rich.text import Text

    facts = step.facts
    text = Text.assemble((f"{step.number} ", "dim"), (step.kind, "bold"))
    if status := facts.get("status"):
        text.append(f" {status}", _colour(str(status)))
    if isinstance(speedup := facts.get("speedup"), int | float):
        text.append(f" {speedup:.2f}x", "bold green")
    text.append(f"  {step.reason}")
    if "tokens_out" in facts:
        price = facts.get("cost_usd")
        paid = "recalled" if facts.get("recalled") else f"${price:.4f}" if price is not None else "price unknown"
        text.append(f"  ({facts.get('tokens_in', 0)} + {facts['tokens_out']} tokens, {paid})", "dim")
    return text


def _colour(status: str) -> str:
    return "green" if status in GOOD else "red" if status in BAD else "yellow"


def _texts(store: Store, step: Step) -> dict[str, str | None]:
    """What the step's hashes stand for; None where it was pruned or never was a text of ours."""
    names = {**step.inputs, **({"result": step.result} if step.result else {})}
    found: dict[str, str | None] = {}
    for name, key in names.items():
        data = store.get(key) if len(key) == 64 and key.isalnum() else None
        found[name] = data.decode(errors="replace") if data is not None else None
    return found


def _print_step(step: Step, texts: dict[str, str | None]) -> None:
    from rich.console import Console
    from rich.rule import Rule
    from rich.text import Text

    console = Console()
    console.print(_line(step))
    facts = {key: value for key, value in step.facts.items() if value not in (None, [], {})}
    console.print(Text(json.dumps(facts), "dim"))
    for name, text in texts.items():
        parts: list[RenderableType] = [Rule(Text(name), align="left"), Text(text if text is not None else "(no longer kept)")]
        for part in parts:
            console.print(part)
