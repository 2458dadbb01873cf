"""`kernelwright task TASK`: describe and check a task; `kernelwright task new …`: write one (task_new.py)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.panel import Panel

    from kernelwright.judge.describe import Description


def task_command(
    task: Annotated[
        str, typer.Argument(help="A task file, module.py:ClassName, or a suite's task such as core/relu; or the word new.")
    ],
    subject: Annotated[
        str | None, typer.Argument(metavar="[FILE|PROSE]", help="With new: the file to begin, or with --model what to compute.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="With new: who writes the task from prose, as in generate.")] = None,
    source: Annotated[str | None, typer.Option("--from", help="With new: path.py:function or path.py:Class to take.")] = None,
    inputs: Annotated[
        str, typer.Option(help='With --from: what it is called with, e.g. "f32[128,512], i64[128]<1000, 0.5".')
    ] = "",
    init: Annotated[str, typer.Option(help='With --from: constructor arguments, e.g. "512, eps=1e-5".')] = "",
    out: Annotated[Path | None, typer.Option(help="With new: the file to write.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Describe a task and say what it cannot tell, or write a new one. Exit code 0 if it can be judged, 2 if not."""
    from kernelwright import suites
    from kernelwright.core.errors import ConfigError

    if task == "new" and (subject is not None or source is not None):
        from kernelwright.cli.task_new import new_task

        return new_task(subject, model=model, source=source, inputs=inputs, init=init, out=out, as_json=as_json)
    if task == "new" and not Path(task).exists():
        raise ConfigError('say what to write: kernelwright task new FILE.py, or "prose" --model M, or --from path.py:name')
    if subject is not None:
        raise ConfigError(f"one task at a time: {subject!r} is left over")
    the_task = suites.task(task)
    from kernelwright.judge.describe import describe

    description = describe(the_task)
    if as_json:
        print(json.dumps({"task": the_task.name, "path": the_task.path, **description.as_json()}))
    else:
        from rich.console import Console

        Console().print(task_panel(the_task.name, description))
    return 0


def task_panel(name: str, description: Description) -> Panel:
    """The description for people."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    facts = description.facts
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column()
    moved = facts["input_bytes"] + facts["output_bytes"] + facts["parameter_bytes"]
    rows = {
        "inputs": facts["inputs"] + (f"  (and {facts['shapes'] - 1} more shapes)" if facts["shapes"] > 1 else ""),
        "outputs": facts["outputs"],
        "parameters": f"{facts['parameters']:,}",
        "moves": f"{moved / 1e6:.3g} MB at least",
        "computes": f"{facts['flops'] / 1e9:.3g} GFLOP in products, longest sum {facts['longest_reduction']:,} terms",
        "eager": f"about {facts['eager_seconds'] * 1e3:.3g} ms",
        "trials": f"{len(description.trials)}, against {description.reference}: {_distributions(description)}",
        "hash": facts["hash"][:16],
    }
    for label, value in rows.items():
        table.add_row(label, Text(str(value)))
    flags = [Text(f"! {flag}", style="yellow") for flag in description.flags]
    verdict = flags or [Text("no null candidate passes: this task can tell", style="green")]
    return Panel(Group(table, Text(), *verdict), title=f"task {name}", title_align="left", expand=False)


def _distributions(description: Description) -> str:
    seen = dict.fromkeys(trial["distribution"] for trial in description.trials)
    strided = any(trial["strided"] for trial in description.trials)
    return ", ".join([*seen, *(["not contiguous"] if strided else [])])
