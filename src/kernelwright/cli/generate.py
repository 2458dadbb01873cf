"""`kernelwright generate`: a task file in; kernel.py, sketch.py and verdict.json out, and a panel that says how good they are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def generate_command(
    task: Annotated[str, typer.Argument(help="A task file, or module.py:ClassName.")],
    dsl: Annotated[str, typer.Option(help="Language of the kernel.")] = "cpp",
    target: Annotated[str, typer.Option(help="Hardware the kernel is for.")] = "cpu",
    model: Annotated[str, typer.Option(help="Who thinks: builtin needs no key and no network.")] = "builtin",
    track: Annotated[
        Literal["pure", "hybrid"], typer.Option(help="pure: no library computes; hybrid: library GEMM and convolution allowed.")
    ] = "pure",
    effort: Annotated[str, typer.Option(help="quick, standard or thorough.")] = "quick",
    budget: Annotated[str | None, typer.Option(help="Stop after this long, e.g. 60s or 5m.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the result.")] = None,
    no_timing: Annotated[bool, typer.Option("--no-timing", help="Judge, but do not time.")] = False,
    no_compile: Annotated[bool, typer.Option("--no-compile", help="Leave torch.compile out of the contenders.")] = False,
    show_sketch: Annotated[bool, typer.Option("--show-sketch", help="Print the sketch too.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Make a verified kernel for a task."""
    import json

    from rich.console import Console

    from kernelwright.agents import effort as efforts
    from kernelwright.agents.drafts import Drafter
    from kernelwright.agents.folder import open_folder
    from kernelwright.agents.generate import Job, generate
    from kernelwright.cli.panel import verdict_panel
    from kernelwright.errors import ConfigError
    from kernelwright.judge import Judge
    from kernelwright.task import Task

    if model != "builtin":
        raise ConfigError(f"model {model!r} is not available yet; the built-in mind is --model builtin")
    if dsl != "cpp":
        raise ConfigError(f"language {dsl!r} cannot be generated yet; choose --dsl cpp")
    if target not in ("cpu", "auto"):
        raise ConfigError(f"target {target!r} cannot be generated for yet; choose --target cpu")
    preset = efforts.preset(effort)
    seconds = efforts.seconds(budget) if budget else None
    found = Task.from_path(task)
    folder = open_folder(out, found.name, dsl)
    job = Job(found, dsl, track, preset, seconds, not no_timing, not no_compile)
    progress = Console(stderr=True)
    with progress.status(f"{found.name}: starting") as status, Drafter() as drafter, Judge() as judge:
        result = generate(job, judge, drafter, folder, lambda line: status.update(f"{found.name}: {line}"))
    if as_json:
        report = {
            "kernel": str(folder.kernel),
            "sketch": str(folder.sketch),
            "verdict": result.verdict.model_dump(mode="json"),
            "run": folder.run,
            "seconds": round(result.seconds, 3),
        }
        print(json.dumps(report))
    else:
        console = Console()
        if show_sketch:
            from rich.syntax import Syntax

            console.print(Syntax(result.draft.sketch, "python", word_wrap=True, background_color="default"))
        console.print(verdict_panel(result.verdict))
        console.print(f"{folder.kernel}  {folder.sketch}  [dim]{result.seconds:.1f} s, draft {result.tried}[/dim]")
    return 0 if result.verdict.ok else 1
