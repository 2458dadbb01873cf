"""`kernelwright tune`: a task, or a kernel and its task, in; the fastest variant found within the budget out, and what brought how much."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def tune_command(
    what: Annotated[str, typer.Argument(metavar="TASK|KERNEL", help="A task file, or a kernel file (with --task).")],
    task: Annotated[str | None, typer.Option(help="What the kernel computes: a task file, or module.py:ClassName.")] = None,
    dsl: Annotated[str | None, typer.Option(help="Language of the kernel.")] = None,
    budget: Annotated[str, typer.Option(help="Time for the search, e.g. 60s or 5m.")] = "60s",
    track: Annotated[
        Literal["pure", "hybrid"], typer.Option(help="pure: no library computes; hybrid: library GEMM and the like allowed.")
    ] = "pure",
    out: Annotated[Path | None, typer.Option(help="Folder for the result.")] = None,
    no_compile: Annotated[bool, typer.Option("--no-compile", help="Leave torch.compile out of the contenders.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Search for a faster variant of a kernel: tile sizes, orders of loops, other designs. "No gain found" is an answer."""
    from kernelwright import config
    from kernelwright.agents import effort as efforts
    from kernelwright.agents.order import Order, fulfil
    from kernelwright.cli.generate import report
    from kernelwright.cli.progress import watching
    from kernelwright.dsl import language
    from kernelwright.dsl.kernel import Kernel
    from kernelwright.errors import ConfigError
    from kernelwright.judge import offdevice
    from kernelwright.task import Task

    kernel = Kernel.from_path(what, dsl=dsl) if task is not None else None
    chosen = dsl or (kernel.dsl if kernel is not None else "cpp")
    language(chosen)
    if not offdevice.timed(chosen):
        raise ConfigError(f"{chosen} kernels are tuned on their device, which this machine does not have")
    found = Task.from_path(task if task is not None else what)
    order = Order(
        path=found.path,
        source=found.source,
        class_name=found.class_name,
        dsl=chosen,
        track=track,
        effort="quick",
        compile_contender=not no_compile,
        out=str(out) if out else None,
        store=config.load({}).settings.store,
        tune_seconds=efforts.seconds(budget),
        kernel=kernel.source if kernel is not None else "",
    )
    with watching(found.name) as watch:
        done = fulfil(order, watch)
    return report(done, show_sketch=False, as_json=as_json)
