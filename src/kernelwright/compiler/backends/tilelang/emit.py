"""A sketch as a TileLang kernel file: launches of all its kernels (kernel.py) inside the module file that GPU languages share."""

from __future__ import annotations

import json
from collections.abc import Sequence

from kernelwright.compiler.backends.tilelang.kernel import Launch, launches
from kernelwright.compiler.language import State
from kernelwright.compiler.lower import gpu_module_file
from kernelwright.compiler.lower.gpu_module_file import Call, Program
from kernelwright.sketch import nodes
from kernelwright.sketch.print import to_source


def lower(sketch: nodes.Sketch, *, state: State = (), shapes: Sequence[nodes.Sketch] = ()) -> str:
    """One Python file. `shapes` are sketches of the same module for other input shapes."""
    taken: set[str] = set()
    programs: list[Program] = []
    functions: list[str] = []
    for each in (sketch, *shapes):
        steps: list[Call | nodes.LibraryCall] = []
        for step in each.steps:
            if isinstance(step, nodes.LibraryCall):
                steps.append(step)
                continue
            for launch in launches(each, step, taken):
                functions.append(launch.text)
                root = {t.name: t.source if t.role == "view" else t.name for t in each.tensors}
                names = tuple(dict.fromkeys(root[name] for name, _ in launch.tensors))
                steps.append(Call((_call(each, launch),), names, launch.once))
        programs.append(Program(each, to_source(each), tuple(steps)))
    body = "\n\n".join(functions)
    imports = "import tilelang\nimport tilelang.language as T"
    return gpu_module_file.render(programs, state, imports=imports, kernels=f"\n{body}", needs="TileLang")


def _call(sketch: nodes.Sketch, launch: Launch) -> str:
    """The launch as a line of forward. An input that is also returned has a contiguous twin; views are torch's."""
    returned = set(gpu_module_file._leaves(json.loads(sketch.returns)))
    tensors = {tensor.name: tensor for tensor in sketch.tensors}
    given = []
    for name, shape in launch.tensors:
        tensor = tensors[name]
        root = tensors[tensor.source] if tensor.role == "view" else tensor
        text = f"{root.name}_" if root.name in returned and root.role == "input" else root.name
        given.append(f"{text}.view({shape or (1,)})" if tensor.role == "view" or not shape else text)
    return f"{launch.name}()({', '.join(given)})"
