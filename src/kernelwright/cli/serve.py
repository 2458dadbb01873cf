"""`kernelwright serve`: the runs, the benchmarks and a workbench, in a browser."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

DEFAULT_PORT = 8765


def serve_command(
    run: Annotated[str | None, typer.Argument(help="A run whose page is named, by its beginning.", metavar="[RUN]")] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen at; others than loopback need the token that is printed.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 means any that is free.")] = DEFAULT_PORT,
    reports: Annotated[
        list[Path] | None, typer.Option(help="Folder with reports of bench, also in its folders; may be given again.")
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="A name by which browsers call this server, of a proxy in front; may be given again."),
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=1, max=64, help="Runs that the page starts at once; more than one disturb each other's timing.")
    ] = 1,
    store: Annotated[str | None, typer.Option(help="Folder or database URL of the store.")] = None,
) -> int:
    """Show runs and benchmarks in a browser, and start jobs from there. Ends with Ctrl-C; runs that it started go on."""
    from kernelwright.core import config
    from kernelwright.core.errors import ConfigError, ToolMissing

    try:
        from kernelwright.web.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("kernelwright"):
            raise
        raise ToolMissing(str(error.name), "the page", "pip install 'kernelwright[web]'") from None
    for folder in reports or ():
        if not folder.is_dir():
            raise ConfigError(f"{folder}: this is no folder")
    settings = config.load({"store": store}).settings
    usual = [Path(name) for name in ("kernelwright-out", "bench/results") if Path(name).is_dir()]
    serve(
        run=run,
        host=host,
        port=port,
        place=settings.store,
        model=settings.model,
        reports=reports or usual,
        allowed=allow_host or (),
        abreast=jobs,
        say=lambda line: print(line, file=sys.stdout, flush=True),
    )
    return 0
