"""Options that several commands share: who thinks, what that may cost, and what a result is held against."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from kernelwright.core.job import ModelChoice

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
Dynamic = Annotated[
    str | None,
    typer.Option(help='Sizes that vary: "x[0]=1..4096, x[1]", batch, all, or listed (what get_inputs_dyn_list varies).'),
]
Entry = Annotated[
    str | None,
    typer.Option(help="Of a .cu file: the function to call, or a kernel with its launch: 'scale<<<(n+255)/256, 256>>>'."),
]
Inputs = Annotated[
    str | None,
    typer.Option(
        help='Without a task: what forward is called with, e.g. "f32[128,512], f32[512]"; of a .cu file each parameter of the function, '
        'e.g. "out f32[N,C], f32[N,C], N, C; N=64, C=100".'
    ),
]
Out = Annotated[Path | None, typer.Option(help="Folder for the result.")]
NoCompile = Annotated[bool, typer.Option("--no-compile", help="Leave torch.compile out of the contenders.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def thinking(record: Path | None = None, *, knowledge: bool = True, **flags: str | float | None) -> tuple[ModelChoice, str]:
    """Who thinks, at what cost, and where it is remembered (the store): by the flags, else by the configuration."""
    from kernelwright.core import config
    from kernelwright.core.job import ModelChoice

    settings = config.load(flags).settings
    choice = ModelChoice(
        settings.model,
        settings.designer_model,
        settings.coder_model,
        settings.base_url,
        settings.max_cost,
        settings.max_tokens,
        str(record.resolve()) if record else None,
        knowledge,
    )
    return choice, settings.store
