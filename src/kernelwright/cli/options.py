"""Options that several commands share: who thinks, what that may cost, and what a result is held against."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

ModelName = Annotated[
    str | None,
    typer.Option(
        help="Who thinks: builtin (no key, no network), openai:NAME, anthropic:NAME, URL:NAME, mailbox:DIR, replay:FILE."
    ),
]
DesignerModel = Annotated[str | None, typer.Option(help="Another model for the Designer.")]
CoderModel = Annotated[str | None, typer.Option(help="Another model for the Coder.")]
MaxCost = Annotated[float | None, typer.Option(help="US dollars that the run may spend on models.")]
MaxTokens = Annotated[int | None, typer.Option(help="Tokens that the run may spend on models.")]
Record = Annotated[Path | None, typer.Option(help="Record the models' answers into this file, for replay:FILE.")]
Track = Annotated[
    Literal["pure", "hybrid"], typer.Option(help="pure: no library computes; hybrid: library GEMM and convolution allowed.")
]
Out = Annotated[Path | None, typer.Option(help="Folder for the result.")]
NoCompile = Annotated[bool, typer.Option("--no-compile", help="Leave torch.compile out of the contenders.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def thinking(record: Path | None, **flags: str | float | None) -> dict[str, Any]:
    """The fields of an order that say who thinks, at what cost, and where it is remembered: by the flags, else by the configuration."""
    from kernelwright.core import config

    settings = config.load(flags).settings
    names = ("model", "designer_model", "coder_model", "base_url", "max_cost", "max_tokens", "store")
    return {**{name: getattr(settings, name) for name in names}, "record": str(record.resolve()) if record else None}
