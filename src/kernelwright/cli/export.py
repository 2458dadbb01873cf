"""`kernelwright export KERNEL|RUN --as FORM`: a verified kernel in, a package that installs like any other out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from kernelwright.cli.options import AsJson


def export_command(
    kernel: Annotated[str, typer.Argument(metavar="RUN|KERNEL", help="A kernel file of ours, or a run's name.")],
    form: Annotated[str, typer.Option("--as", help="torch-op, wheel, hf-kernels or c.")],
    out: Annotated[Path, typer.Option(help="Folder for the package.")] = Path("kernelwright-out"),
    name: Annotated[str | None, typer.Option(help="The operator's name; without it the kernel's own.")] = None,
    as_json: AsJson = False,
) -> int:
    """Make a package of a kernel. Exit code 0: it was written."""
    from kernelwright.api.packages import export

    made = export(kernel, form, out, name=name)
    print(json.dumps({"package": str(made), "form": form}) if as_json else f"wrote {made}")
    return 0
