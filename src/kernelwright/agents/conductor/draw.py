"""A table for people: its rows in the order in which they are read, and as a graph of moves (Mermaid). In: a table. Out: text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.agents.conductor.situation import FACTS
from kernelwright.agents.conductor.table import AGAIN, FIRST, Row, Table


def as_json(table: Table) -> dict[str, Any]:
    """The rows and the facts that they may ask for."""
    groups = {
        name: [{"name": row.name, "when": dict(row.when), "then": row.then, "because": row.because} for row in rows]
        for name, rows in table.groups.items()
    }
    return {"path": table.path, "groups": groups, "facts": FACTS}


def condition(when: Mapping[str, Any]) -> str:
    """What must hold, in words: `kind is wrong or crashed, patches_left`."""
    parts = []
    for fact, wanted in when.items():
        if isinstance(wanted, bool):
            parts.append(fact if wanted else f"not {fact}")
        elif isinstance(wanted, list):
            parts.append(f"{fact} is {' or '.join(str(one) for one in wanted)}")
        else:
            parts.append(f"{fact} {wanted}" if str(wanted)[:1] in "<>" else f"{fact} is {wanted}")
    return ", ".join(parts) or "otherwise"


def mermaid(table: Table) -> str:
    """The table as a flowchart: from what happened to what comes next."""
    lines = ["flowchart LR"]
    for group, rows in table.groups.items():
        for row in rows:
            source = "h" if group == FIRST else group
            then = "again" if row.then == AGAIN else row.then
            lines.append(f'  {source} -->|"{_label(row)}"| {then}')
    lines.insert(1, "  h((what happened))")
    return "\n".join(lines)


def _label(row: Row) -> str:
    return f"{row.name}: {condition(row.when)}".replace('"', "'").replace("<", "&lt;").replace(">", "&gt;")
