"""`kernelwright show --table [FILE]`: the Conductor's table for people, as JSON or as a flowchart, with its dead ends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernelwright.agents.conductor import Table


def show_table(place: str, *, mermaid: bool, as_json: bool) -> int:
    """Print the table of a file, of the settings, or ours; 1 where it has dead ends."""
    from kernelwright.agents.conductor import draw
    from kernelwright.agents.conductor.check import chosen, dead_ends
    from kernelwright.core import config

    table = chosen(place or config.load().settings.conductor)
    faults = dead_ends(table)
    if as_json:
        print(json.dumps({**draw.as_json(table), "dead_ends": faults}))
    elif mermaid:
        print(draw.mermaid(table))
    else:
        _print(table, faults)
    return 1 if faults else 0


def _print(table: Table, faults: list[str]) -> None:
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    from kernelwright.agents.conductor.draw import condition
    from kernelwright.agents.conductor.situation import FACTS

    console = Console()
    console.print(Text(f"{table.path}: the first row that fits decides", "dim"))
    for group, rows in table.groups.items():
        grid = Grid("row", "when", "then", title=None if group == "row" else f"{group}:", title_justify="left", box=None)
        for row in rows:
            grid.add_row(row.name, Text(condition(row.when)), Text(row.then, "bold"))
        console.print(grid)
    facts = Grid("fact", "meaning", title="what a row may ask for:", title_justify="left", box=None)
    for name, meaning in FACTS.items():
        facts.add_row(name, Text(meaning))
    console.print(facts)
    for fault in faults:
        console.print(Text(fault, "red"))
    console.print(Text("no dead ends" if not faults else f"{len(faults)} dead ends", "green" if not faults else "red"))
