"""`kernelwright tune`: a task, or a kernel and its task, in; the fastest variant found within the budget out, and what brought how much."""

from __future__ import annotations

from typing import Annotated

import typer

from kernelwright.cli import options


def tune_command(
    what: Annotated[str, typer.Argument(metavar="TASK|KERNEL", help="A task file, or a kernel file (with --task).")],
    task: Annotated[str | None, typer.Option(help="What the kernel computes: a task file, or module.py:ClassName.")] = None,
    dsl: Annotated[str | None, typer.Option(help="Language of the kernel.")] = None,
    budget: Annotated[str, typer.Option(help="Time for the search, e.g. 60s or 5m.")] = "60s",
    model: options.ModelName = None,
    designer_model: options.DesignerModel = None,
    coder_model: options.CoderModel = None,
    max_cost: options.MaxCost = None,
    max_tokens: options.MaxTokens = None,
    record: options.Record = None,
    track: options.Track = "pure",
    out: options.Out = None,
    no_compile: options.NoCompile = False,
    as_json: options.AsJson = False,
) -> int:
    """Search for a faster variant of a kernel: tile sizes, orders of loops, other designs, and with --model what a model proposes. "No
    gain found" is an answer."""
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

    flags = {
        "model": model,
        "designer_model": designer_model,
        "coder_model": coder_model,
        "max_cost": max_cost,
        "max_tokens": max_tokens,
    }
    settings = config.load(flags).settings
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
        model=settings.model,
        designer_model=settings.designer_model,
        coder_model=settings.coder_model,
        base_url=settings.base_url,
        max_cost=settings.max_cost,
        max_tokens=settings.max_tokens,
        record=str(record.resolve()) if record else None,
        store=settings.store,
        tune_seconds=efforts.seconds(budget),
        kernel=kernel.source if kernel is not None else "",
    )
    with watching(found.name) as watch:
        done = fulfil(order, watch)
    return report(done, show_sketch=False, as_json=as_json)
