"""`kernelwright verify TASK KERNEL`: the judge at the command line. Files in, a panel (or one JSON object) and an exit code
out."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any

import typer

from kernelwright.cli import options


def verify_command(
    task: Annotated[
        str, typer.Argument(metavar="TASK", help="A task file (Model, get_inputs, get_init_inputs), or module.py:ClassName.")
    ],
    kernel: Annotated[
        str, typer.Argument(metavar="KERNEL", help="A Python file that defines ModelNew; or a .cu file (--entry, --inputs).")
    ],
    dsl: Annotated[str | None, typer.Option(help="Language of the kernel (see doctor); guessed if not given.")] = None,
    target: Annotated[
        str | None, typer.Option(help="Hardware the kernel is for: cpu, auto, h100, a100,mi300x …; several with commas.")
    ] = None,
    track: Annotated[
        str | None,
        typer.Option(help="pure: no library may compute; hybrid: library GEMM, convolution, sorting, FFT, linear algebra."),
    ] = None,
    timing: Annotated[bool | None, typer.Option("--timing/--no-timing", help="Time a correct kernel.")] = None,
    compile_: Annotated[bool | None, typer.Option("--compile/--no-compile", help="Time torch.compile too.")] = None,
    dynamic: options.Dynamic = None,
    entry: options.Entry = None,
    inputs: options.Inputs = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as one JSON object.")] = False,
) -> int:
    """Judge a kernel: is it right, is it honest, how fast is it. Exit code 0 if correct, 1 if rejected, 2 if it cannot be
    judged."""
    from kernelwright import suites
    from kernelwright.core.config import load

    settings = load({"target": target, "track": track, "timing": timing, "compile": compile_}).settings
    the_task = suites.task(task, dynamic)
    from kernelwright.core.kernel import Kernel

    the_kernel = Kernel.from_path(kernel, dsl=dsl, entry=entry, inputs=inputs)
    _require_judged(the_kernel.dsl, settings.target)
    from kernelwright.judge import Judge

    with _waiting(as_json), Judge(threads=settings.threads or None, confined=settings.sandbox_tasks) as judge:
        verdict = judge.verify(
            the_task,
            the_kernel,
            target=settings.target,
            track=settings.track,
            timing=settings.timing,
            compile_contender=settings.compile,
            budget_s=settings.clock_seconds,
        )
    if as_json:
        print(verdict.model_dump_json())
    else:
        from rich.console import Console

        from kernelwright.cli.panel import verdict_panel

        Console().print(verdict_panel(verdict))
    return 0 if verdict.ok else 2 if verdict.status == "unusable_task" else 1


def _require_judged(dsl: str, target: str) -> None:
    """Refuse by name what nothing here can execute, instead of failing obscurely."""
    from kernelwright.compiler.language import installed
    from kernelwright.core.errors import ConfigError
    from kernelwright.judge.offdevice import setting
    from kernelwright.target import Target

    known = sorted({*installed(), "python"})
    if dsl not in known:
        raise ConfigError(f"there is no language {dsl!r}; kernels in these can be judged: {', '.join(known)}")
    if setting(dsl, target) is None and target not in ("cpu", "auto"):
        raise ConfigError(f"{dsl} kernels run on the CPU, not on {Target.load(target).title}; leave --target out")


def _waiting(quiet: bool) -> AbstractContextManager[Any]:
    """A spinner on stderr while the judge works, where somebody is looking."""
    from rich.console import Console

    console = Console(stderr=True)
    return nullcontext() if quiet or not console.is_terminal else console.status("judging")
