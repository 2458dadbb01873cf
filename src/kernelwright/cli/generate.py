"""`kernelwright generate`: a task file in; kernel.py, sketch.py and verdict.json out, and a panel that says how good they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kernelwright.cli import options
from kernelwright.core.plugins import DEFAULT_LANGUAGE

if TYPE_CHECKING:
    from kernelwright.jobs.start import Finished


def generate_command(
    task: Annotated[str, typer.Argument(help="A task file, module.py:ClassName, or a suite's task such as core/relu.")],
    dsl: Annotated[str, typer.Option(help="Language of the kernel.")] = DEFAULT_LANGUAGE,
    target: Annotated[str, typer.Option(help="Hardware the kernel is for.")] = "auto",
    model: options.ModelName = None,
    designer_model: options.DesignerModel = None,
    coder_model: options.CoderModel = None,
    max_cost: options.MaxCost = None,
    max_tokens: options.MaxTokens = None,
    record: options.Record = None,
    knowledge: Annotated[Literal["on", "off"], typer.Option(help="Use and keep what runs have learnt.")] = "on",
    track: options.Track = "pure",
    effort: Annotated[str, typer.Option(help="quick, standard or thorough.")] = "quick",
    budget: Annotated[str | None, typer.Option(help="Stop after this long, e.g. 60s or 5m.")] = None,
    dynamic: options.Dynamic = None,
    out: options.Out = None,
    no_timing: Annotated[bool, typer.Option("--no-timing", help="Judge, but do not time.")] = False,
    no_compile: options.NoCompile = False,
    show_sketch: Annotated[bool, typer.Option("--show-sketch", help="Print the sketch too.")] = False,
    as_json: options.AsJson = False,
) -> int:
    """Make a verified kernel for a task."""
    from kernelwright import suites
    from kernelwright.cli.progress import watching
    from kernelwright.core import effort as efforts
    from kernelwright.core.job import JobSpec
    from kernelwright.jobs.start import start
    from kernelwright.judge import offdevice

    models, store = options.thinking(
        record,
        knowledge=knowledge == "on",
        model=model,
        designer_model=designer_model,
        coder_model=coder_model,
        max_cost=max_cost,
        max_tokens=max_tokens,
    )
    offdevice.require_device(dsl, target)
    job = JobSpec(
        effort=efforts.preset(effort),
        task=suites.task(task, dynamic),
        dsl=dsl,
        target=target,
        track=track,
        budget=efforts.seconds(budget) if budget else None,
        timing=not no_timing,
        compile_contender=not no_compile,
        models=models,
        out=str(out) if out else None,
        store=store,
    )
    with watching(job.name) as observer:
        done = start(job, observer)
    return report(done, show_sketch=show_sketch, as_json=as_json)


def report(done: Finished, *, show_sketch: bool, as_json: bool) -> int:
    """What came of a run, for people or as one object; the exit code."""
    import json

    from rich.console import Console

    from kernelwright.cli.panel import page_of, verdict_panel
    from kernelwright.jobs.generate import Generated

    result, folder = done.result, done.folder
    assert isinstance(result, Generated)
    if as_json:
        told = {
            "kernel": str(folder.kernel),
            "sketch": str(folder.sketch),
            "verdict": result.verdict.model_dump(mode="json"),
            "run": done.run,
            "seconds": round(result.seconds, 3),
            "author": result.author,
            "ended": result.ended,
            "path": [{"change": what, "factor": round(factor, 4)} for what, factor in result.path],
        }
        print(json.dumps(told))
    else:
        console = Console()
        if show_sketch:
            from rich.syntax import Syntax

            console.print(Syntax(result.draft.sketch, "python", word_wrap=True, background_color="default"))
        console.print(verdict_panel(result.verdict))
        for what, factor in result.path:
            console.print(f"{factor:5.2f}x  {what}", highlight=False, markup=False)
        if result.ended:
            console.print(
                f"kernel by: {result.author or 'whoever wrote it'}; ended because {result.ended}", highlight=False, markup=False
            )
        console.print(f"{folder.kernel}  {folder.sketch}  [dim]{result.seconds:.1f} s, {result.tried} judged[/dim]")
        console.print(page_of(done.run))
    return 0 if result.verdict.ok else 1
