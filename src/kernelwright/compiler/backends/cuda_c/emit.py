"""A sketch as a kernel file in CUDA-C: the sources of all its shapes (kernel.py) inside a module file (module_file.py)."""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.compiler.backends.cuda_c import kernel, module_file
from kernelwright.compiler.language import State
from kernelwright.compiler.lower.module_file.compiled import Program
from kernelwright.sketch.nodes import Sketch
from kernelwright.sketch.print import to_source
from kernelwright.target import Capabilities


def lower(sketch: Sketch, *, state: State = (), shapes: Sequence[Sketch] = (), capabilities: Capabilities | None = None) -> str:
    """Lowers a sketch to a kernel file; `shapes` are sketches of the same module for other input shapes."""
    programs = [Program(each, kernel.source(each), to_source(each)) for each in (sketch, *shapes)]
    return module_file.render(programs, state)
