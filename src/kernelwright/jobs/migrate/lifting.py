"""The door to lifting: a kernel that carries no sketch in, sketches out; a refusal names the line and the reason.

`kernelwright.compiler.lift` runs the file once in a sandboxed process of its own and reads its program. Without a task it is read
a second time at other sizes that are no multiples of a tile, where it takes them: then both shapes are judged.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernelwright.core.errors import KernelwrightError
from kernelwright.core.job import JobSpec
from kernelwright.jobs.migrate import golden
from kernelwright.jobs.migrate.reference import inputs_of
from kernelwright.sketch.print import to_source

if TYPE_CHECKING:
    from kernelwright.jobs.migrate.steps import Tools

SMALL = 16
"""Extents up to this are left alone when other sizes are tried: heads, channels, taps."""


class Unliftable(KernelwrightError):
    """A kernel without a sketch that cannot be read: nothing was tried, so the request is at fault, not a kernel."""


@dataclass(frozen=True)
class Lift:
    """The sketches of a foreign kernel, one for each set of inputs, and those inputs as `--inputs` writes them."""

    texts: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    init: str = "[]"
    wrapper: str = ""
    """What makes a `ModelNew` of a file that has none."""


def lifted(job: JobSpec, tools: Tools) -> Lift:
    """Lift, or say why not."""
    from kernelwright.compiler.lift import door
    from kernelwright.jobs.migrate.steps import source_of

    source = source_of(job)
    kernel, task = source.kernel, job.task

    def read(inputs: str | None) -> dict[str, Any]:
        found = door.lift(
            kernel.source,
            kernel.dsl,
            task,
            inputs,
            path=kernel.path,
            init=source.init or None,
            original=kernel.original,
        )
        told = {"notes": list(found.notes), "entry": found.entry, "init": found.init}
        return {"sketch": to_source(found.sketch), "inputs": inputs_of(found.sketch), **told}

    given = source.inputs
    if not given and source.golden and task is None:
        given = golden.inputs(tools.drafter, source.golden)
    key = {"kernel": kernel.hash, "dsl": kernel.dsl, "inputs": given, "init": source.init}
    try:
        first = tools.memory.once("lifted", key, lambda: read(given or None))[0]
    except KernelwrightError as error:
        raise Unliftable(str(error)) from error
    notes = list(first["notes"])
    init, wrapper = first["init"], _wrapper(kernel.source, first["entry"])
    if wrapper:
        notes.append(f"the source has no ModelNew: it was judged as one that calls its {first['entry']}")
    if task is not None:
        return Lift((first["sketch"],), (), tuple(notes), init, wrapper)
    texts, inputs = [first["sketch"]], [first["inputs"]]
    other = resized(first["inputs"])
    if other != first["inputs"]:

        def again() -> dict[str, Any]:
            try:
                return read(other)
            except KernelwrightError as error:
                return {"refused": str(error)}

        second = tools.memory.once("lifted", {**key, "inputs": other}, again)[0]
        if "refused" in second:
            notes.append(f"judged at one shape only; at {other} it is not lifted: {second['refused']}")
        elif second["inputs"].replace(" ", "") == other.replace(" ", ""):
            texts.append(second["sketch"])
            inputs.append(other)
    return Lift(tuple(texts), tuple(inputs), tuple(notes), init, wrapper)


def _wrapper(source: str, entry: str) -> str:
    """The text that gives a file its `ModelNew`, where a function or another class was called."""
    if entry == "ModelNew":
        return ""
    named = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    if isinstance(named.get(entry), ast.ClassDef):
        return f"\n\nclass ModelNew({entry}):\n    pass\n"
    return f"\n\nclass ModelNew(__import__('torch').nn.Module):\n    def forward(self, *inputs):\n        return {entry}(*inputs)\n"


def resized(inputs: str) -> str:
    """The same inputs with every larger extent about a fifth smaller and odd; equal extents stay equal."""

    def shape(match: re.Match[str]) -> str:
        extents = [int(part) for part in match[1].split(",") if part.strip()]
        return (
            "[" + ",".join(str((extent - extent // 5) // 2 * 2 - 1 if extent > SMALL else extent) for extent in extents) + "]"
        )

    return re.sub(r"\[([\d,\s]*)\]", shape, inputs)
