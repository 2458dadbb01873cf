"""A sketch as a TileLang kernel file: launches of all its kernels (kernel.py) inside the module file that GPU languages share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelwright.compiler.backends.tilelang.kernel import Launch, launches
from kernelwright.compiler.hardware import capabilities_of
from kernelwright.compiler.language import State, language
from kernelwright.compiler.lower.module_file.launches import Call, contiguous, programs_of, render
from kernelwright.compiler.lower.module_file.values import extents
from kernelwright.sketch import nodes
from kernelwright.target import Capabilities


def lower(
    sketch: nodes.Sketch, *, state: State = (), shapes: Sequence[nodes.Sketch] = (), capabilities: Capabilities | None = None
) -> str:
    """One Python file. `shapes` are sketches of the same module for other input shapes."""
    machine = capabilities or capabilities_of(language("tilelang"))
    taken: set[str] = set()
    functions: list[str] = []

    def calls(each: nodes.Sketch, step: nodes.Kernel) -> Iterator[Call]:
        root = {t.name: t.source if t.role == "view" else t.name for t in each.tensors}
        for launch in launches(each, step, taken, machine):
            functions.append(launch.text)
            names = tuple(dict.fromkeys(root[name] for name in launch.tensors))
            blocks = "" if launch.grid.constant is not None else str(launch.grid)
            yield Call((_call(each, launch),), names, launch.once, blocks)

    programs = programs_of((sketch, *shapes), calls)
    body = "\n\n".join(functions)
    imports = "import tilelang\nimport tilelang.language as T"
    return render(programs, state, imports=imports, kernels=f"\n{body}", needs="TileLang")


def _call(sketch: nodes.Sketch, launch: Launch) -> str:
    """The launch as a line of forward. An input that is also returned has a contiguous twin; views are torch's."""
    twins = contiguous(sketch)
    tensors = {tensor.name: tensor for tensor in sketch.tensors}
    given = []
    for name in launch.tensors:
        tensor = tensors[name]
        view = tensor.role == "view"
        text = twins[tensor.source if view else name]
        given.append(
            f"{text}.view({extents(sketch, tensor) if tensor.shape else '(1,)'})" if view or not tensor.shape else text
        )
    return f"{launch.name}({', '.join(launch.fitted)})({', '.join([*given, *launch.sizes])})"
