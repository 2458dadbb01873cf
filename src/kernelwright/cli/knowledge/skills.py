"""`kernelwright skills`: what the team can be given to read: list, show, diff against the shipped one, disable, enable, install a pack."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from kernelwright.agents.knowledge.shelf import Placed

ACTIONS = ("list", "show", "diff", "disable", "enable", "install")


def skills_command(
    action: Annotated[str, typer.Argument(help=f"One of {', '.join(ACTIONS)}.")] = "list",
    name: Annotated[str, typer.Argument(help="A skill, NAME or LANGUAGE/NAME; for install a folder.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """List, show, compare, switch off or install skills."""
    from kernelwright.agents.knowledge import shelf
    from kernelwright.core.errors import ConfigError

    if action not in ACTIONS:
        raise ConfigError(f"{action!r} is nothing that can be done with skills; choose one of {', '.join(ACTIONS)}")
    if action == "list":
        return _list(shelf.all_skills(), as_json)
    if not name:
        raise ConfigError(f"skills {action} needs a name; `kernelwright skills list` shows all")
    if action == "install":
        return _say({"installed": shelf.install(Path(name))}, as_json)
    if action in ("disable", "enable"):
        return _say({f"{action}d": shelf.disable(name, off=action == "disable")}, as_json)
    found = shelf.find(name)
    text = found.path.read_text()
    if action == "diff":
        text = _difference(found.replaces, text)
    if as_json:
        told = {"name": found.skill.name, "path": str(found.path), "origin": found.origin, "disabled": found.disabled}
        return _say({**told, action: text}, as_json)
    print(text)
    return 0


def _list(placed: list[Placed], as_json: bool) -> int:
    rows = [
        {
            "name": f"{one.skill.language}/{one.skill.name}",
            "title": one.skill.title,
            "families": list(one.skill.families),
            "stages": list(one.skill.stages),
            "version": one.skill.version,
            "provenance": one.skill.provenance,
            "origin": one.origin,
            "disabled": one.disabled,
        }
        for one in placed
    ]
    if as_json:
        print(json.dumps({"skills": rows}))
        return 0
    from rich.console import Console
    from rich.table import Table

    table = Table("skill", "title", "families", "origin", box=None)
    for row in rows:
        origin = str(row["origin"])
        origin += f", version {row['version']}" if row["provenance"] else ""
        origin += ", disabled" if row["disabled"] else ""
        table.add_row(
            str(row["name"]),
            str(row["title"]),
            " ".join(map(str, row["families"])) if isinstance(row["families"], list) else "",
            origin,
        )
    Console().print(table)
    return 0


def _difference(shipped: Path | None, text: str) -> str:
    import difflib

    if shipped is None:
        return "there is no other skill of this name\n"
    lines = difflib.unified_diff(shipped.read_text().splitlines(True), text.splitlines(True), str(shipped), "in use")
    return "".join(lines) or "no difference\n"


def _say(told: dict[str, object], as_json: bool) -> int:
    if as_json:
        print(json.dumps(told))
    else:
        for key, value in told.items():
            print(f"{key}: {', '.join(value) if isinstance(value, list) else value}")
    return 0
