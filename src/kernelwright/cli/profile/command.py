"""`kernelwright profile`: what a kernel does on a GPU that is not here: counted, read off the compiled code, predicted.

In: a kernel file with the task that it is for, or a whole Triton or CUDA program. Out: for each launch what was counted while its compiled
code ran here, what the assembler says, the predicted time with its error and what bounds it, the hottest lines, what to change.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelwright.core.errors import ConfigError, KernelFileError, KernelwrightError

if TYPE_CHECKING:
    from kernelwright.cli.profile.told import Told


def profile_command(
    kernel: Annotated[
        Path,
        typer.Argument(help="A file that defines ModelNew (with --task), or a Triton or CUDA program.", show_default=False),
    ],
    task: Annotated[str | None, typer.Option(help="The task file that the kernel is for, or module.py:ClassName.")] = None,
    target: Annotated[str, typer.Option(help="The device to compile for and to predict: h100, a100, rtx4090, …")] = "h100",
    dsl: Annotated[str | None, typer.Option(help="Language of the kernel; guessed if not given.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write the profile as a page, with its roofline.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the profile as one JSON object.")] = False,
    arguments: Annotated[list[str] | None, typer.Argument(help="Arguments of a program, after --.", show_default=False)] = None,
) -> int:
    """Profile a kernel or a program on a GPU that is not attached. Nothing is measured: figures are counted, read off the compiled
    code, or predicted, and marked as such. Exit code 1 if nothing could be profiled, or the kernel is wrong on the task's inputs.

    With --task the kernel runs in the judge's sandbox; a program (no --task) runs with your rights."""
    from kernelwright.agents.profiled import with_sources
    from kernelwright.cli.profile.told import as_text
    from kernelwright.target import Target

    if not kernel.is_file():
        raise KernelFileError(kernel, "there is no such file")
    sheet = Target.load(target)
    if sheet.kind == "cpu":
        raise ConfigError("a CPU is here: kernels for it are timed by kernelwright verify; name a GPU such as h100")
    if task is None:
        from kernelwright.cli.profile.programs import profiled

        told = profiled(kernel, sheet, arguments or [])
    else:
        told = _of_task(kernel, task, target, dsl)
    source = kernel.read_text(encoding="utf-8", errors="replace")
    told = replace(told, launches=with_sources(told.launches, source, kernel.name))
    if html is not None:
        from kernelwright.cli.profile.profile_page import page

        try:
            html.write_text(page(told), encoding="utf-8")
        except OSError as error:
            raise KernelwrightError(f"{html} cannot be written: {error.strerror}") from None
    if as_json:
        print(json.dumps(told.as_json()))
    else:
        from rich.console import Console

        Console().print(as_text(told))
    return 0 if told.launches and not told.wrong else 1


def _of_task(kernel: Path, task: str, target: str, dsl: str | None) -> Told:
    from kernelwright import suites
    from kernelwright.cli.profile.told import Told
    from kernelwright.core.config import load
    from kernelwright.core.kernel import Kernel
    from kernelwright.judge import Judge
    from kernelwright.judge.profiled_call import profile

    settings = load({}).settings
    the_task, the_kernel = suites.task(task), Kernel.from_path(kernel, dsl=dsl)
    with Judge(threads=settings.threads or None, confined=settings.sandbox_tasks) as judge:
        found = profile(judge, the_task, the_kernel, target, dsl=dsl)
    compiled, work = found.compiled, found.work
    return Told(
        kernel=str(kernel),
        task=the_task.name,
        target=found.target,
        launches=compiled.launches if compiled else (),
        predicted_ms=compiled.predicted_ms if compiled else None,
        error=compiled.predicted_error if compiled else None,
        speed_of_light_ms=compiled.speed_of_light_ms if compiled else None,
        work_bytes=work.read_bytes + work.written_bytes if work else 0,
        work_flops=work.flops if work else 0,
        dtype=work.dtype if work else "float32",
        compiler=compiled.compiler if compiled else "",
        coarse=compiled.kernels if compiled and not compiled.launches else (),
        wrong=found.wrong,
        notes=found.notes,
    )
