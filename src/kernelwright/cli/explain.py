"""`kernelwright explain KERNEL`: the mathematics of somebody's kernel, as formulas and as PyTorch code, with what was assumed.

A kernel of ours carries its sketch, which is printed.
"""

from __future__ import annotations

from typing import Annotated

import typer

from kernelwright.cli import options


def explain_command(
    kernel: Annotated[
        str, typer.Argument(metavar="KERNEL", help="A kernel file, a .cu file; file.py:Name, package.module:Name.")
    ],
    task: Annotated[str | None, typer.Option(help="A task that says inputs: a task file, or module.py:ClassName.")] = None,
    dsl: Annotated[str | None, typer.Option(help="Language of the kernel, where it cannot be told from the file.")] = None,
    inputs: options.Inputs = None,
    init: Annotated[
        str | None, typer.Option(help='Without a task: what the class is constructed with, e.g. "512, eps=1e-5".')
    ] = None,
    entry: options.Entry = None,
    as_json: options.AsJson = False,
) -> int:
    """Print what a kernel computes: its formulas and the same as PyTorch code, which was run on the example inputs beside the kernel."""
    import json

    from kernelwright import suites
    from kernelwright.agents.task_from_code import constructor
    from kernelwright.core.kernel import Kernel

    source = Kernel.from_path(kernel, dsl=dsl, entry=entry, inputs=inputs)
    if source.sketch is not None:
        print(
            json.dumps({"kernel": kernel, "language": source.dsl, "sketch": source.sketch})
            if as_json
            else source.sketch.strip()
        )
        return 0
    from kernelwright.compiler.lift import door

    found = door.explain(
        source.source,
        source.dsl,
        suites.task(task) if task else None,
        None if source.original else inputs,
        path=source.path,
        init=constructor(init) if init else None,
        original=source.original,
    )
    told = {"kernel": kernel, "language": source.dsl, **found}
    if as_json:
        print(json.dumps(told))
        return 0
    for line in found["launches"]:
        print(f"# launches {line}")
    for line in found["assumptions"]:
        print(f"# {line}")
    print()
    print("\n".join(found["formulas"]))
    if found["pytorch"]:
        print()
        print(found["pytorch"], end="")
    return 0
