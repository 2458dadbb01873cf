"""`kernelwright config`: every setting, its value, and the layer it came from."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def config_command(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> int:
    """Show every setting and where its value came from: default, kernelwright.toml, environment."""
    from kernelwright.core.config import Settings, load

    loaded = load()
    values = loaded.settings.model_dump()
    if as_json:
        print(json.dumps({key: {"value": value, "from": loaded.origins[key]} for key, value in values.items()}))
        return 0
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("setting", "value", "from", "what it does"):
        table.add_column(title)
    for key, value in values.items():
        table.add_row(
            key, str(value).lower() if isinstance(value, bool) else str(value), loaded.origins[key], _doc(Settings, key)
        )
    console = Console()
    console.print(table)
    for variable in loaded.ignored:
        console.print(f"[yellow]{variable} is set but is no setting of Kernelwright[/yellow]")
    return 0


def _doc(model: type, key: str) -> str:
    return str(model.model_fields[key].description)  # type: ignore[attr-defined]
