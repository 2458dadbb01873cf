"""`kernelwright tune`: a task, or a kernel and its task, in; the fastest variant found within the budget out, and what brought how much.

What a kernel computes is said by `--task`, or by the run in the store that made it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kernelwright.cli import options

if TYPE_CHECKING:
    from kernelwright.core.kernel import Kernel
    from kernelwright.core.task import Task


def tune_command(
    what: Annotated[str, typer.Argument(metavar="TASK|KERNEL", help="A task file, a suite's task, or a kernel file.")],
    task: Annotated[
        str | None,
        typer.Option(help="What the kernel computes, where no run in the store made it: a task file, module.py:ClassName."),
    ] = None,
    dsl: Annotated[str | None, typer.Option(help="Language of the kernel.")] = None,
    budget: Annotated[str, typer.Option(help="Time for the search, e.g. 60s or 5m.")] = "60s",
    model: options.ModelName = None,
    designer_model: options.DesignerModel = None,
    coder_model: options.CoderModel = None,
    max_cost: options.MaxCost = None,
    max_tokens: options.MaxTokens = None,
    record: options.Record = None,
    track: options.Track = "pure",
    dynamic: options.Dynamic = None,
    shapes: Annotated[
        str | None,
        typer.Option(
            help='Variants for the sizes that occur, and a table that chooses among them: "512,768; 64,768*10" (how often), or a file of '
            "kernelwright.record_shapes()."
        ),
    ] = None,
    out: options.Out = None,
    no_compile: options.NoCompile = False,
    as_json: options.AsJson = False,
) -> int:
    """Search for a faster variant of a kernel: tile sizes, orders of loops, other designs, and with --model what a model proposes. "No
    gain found" is an answer."""
    from kernelwright import suites
    from kernelwright.cli.generate import report
    from kernelwright.cli.progress import watching
    from kernelwright.compiler.language import HasVariants, language
    from kernelwright.core import effort as efforts
    from kernelwright.core.errors import ConfigError
    from kernelwright.core.job import JobSpec
    from kernelwright.core.kernel import Kernel
    from kernelwright.core.plugins import DEFAULT_LANGUAGE
    from kernelwright.core.task.shape_counts import shapes_text
    from kernelwright.jobs.start import start
    from kernelwright.judge import offdevice

    models, store = options.thinking(
        record, model=model, designer_model=designer_model, coder_model=coder_model, max_cost=max_cost, max_tokens=max_tokens
    )
    kernel = Kernel.from_path(what, dsl=dsl) if task is not None or _is_kernel(what) else None
    chosen = dsl or (kernel.dsl if kernel is not None else DEFAULT_LANGUAGE)
    coder = language(chosen)
    if shapes is not None and not isinstance(coder, HasVariants):
        raise ConfigError(f"--shapes makes variants for several sizes, which {chosen} kernel files do not hold yet")
    if not offdevice.timed(chosen):
        raise ConfigError(f"{chosen} kernels are tuned on their device, which this machine does not have")
    job = JobSpec(
        _made_from(kernel, store, dynamic) if kernel and task is None else suites.task(task or what, dynamic),
        chosen,
        track,
        compile_contender=not no_compile,
        kernel=kernel,
        tune_seconds=efforts.seconds(budget),
        shapes=shapes_text(shapes) if shapes is not None else "",
        models=models,
        out=str(out) if out else None,
        store=store,
    )
    with watching(job.name) as observer:
        done = start(job, observer)
    return report(done, show_sketch=False, as_json=as_json)


def _is_kernel(what: str) -> bool:
    """A file that defines ModelNew and no Model."""
    import re
    from pathlib import Path

    try:
        text = Path(what).read_text(encoding="utf-8", errors="replace") if Path(what).is_file() else ""
    except OSError:
        return False
    return bool(re.search(r"^class ModelNew\b", text, re.MULTILINE)) and not re.search(r"^class Model\b", text, re.MULTILINE)


def _made_from(kernel: Kernel, place: str, dynamic: str | None = None) -> Task:
    """The task of the newest run that made a kernel."""
    from kernelwright.core.errors import ConfigError
    from kernelwright.core.task import Task
    from kernelwright.store import Store

    with Store.open(place or None) as store:
        makers = [run.job for run in store.runs() if run.best == kernel.hash and run.job.get("source")]
    if not makers:
        raise ConfigError(f"{kernel.path}: no run in the store made this kernel; say what it computes with --task")
    job = makers[0]
    return Task.from_source(
        str(job["source"]),
        path=str(job["path"]),
        class_name=str(job["class_name"]),
        dynamic=dynamic or str(job.get("dynamic", "")),
    )
