"""`kernelwright task TASK`: describe and check a task; `kernelwright task new FILE`: write one to start from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.panel import Panel

    from kernelwright.judge.describe import Description

STARTER = '''"""What to compute, in PyTorch: `Model` is the reference, `get_inputs` draws what it is called with."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(x))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(1024, 512)]


def get_init_inputs() -> list[int]:
    """The arguments of Model's constructor."""
    return [512]
'''


def task_command(
    task: Annotated[str, typer.Argument(help="A task file, or module.py:ClassName; or the word new.")],
    file: Annotated[str | None, typer.Argument(help="With new: the file to write.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Describe a task and say what it cannot tell. Exit code 0 if it can be judged, 2 if not."""
    from kernelwright.errors import ConfigError
    from kernelwright.task import Task

    if task == "new" and file is not None:
        return _write_new(Path(file), as_json)
    if task == "new" and not Path(task).exists():
        raise ConfigError("say which file to write: kernelwright task new FILE")
    if file is not None:
        raise ConfigError(f"one task at a time: {file!r} is left over")
    the_task = Task.from_path(task)
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


def _write_new(path: Path, as_json: bool) -> int:
    from kernelwright.errors import ConfigError

    if path.exists():
        raise ConfigError(f"{path} exists already and is not overwritten")
    try:
        path.write_text(STARTER)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error
    print(json.dumps({"written": str(path)}) if as_json else f"{path} written; look at it with: kernelwright task {path}")
    return 0
