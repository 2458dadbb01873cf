"""A sketch as a kernel file in C++: the sources of all its shapes (kernel.py) inside a module file (module_file.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelwright.compiler.backends.cpp import kernel, module_file
from kernelwright.compiler.backends.cpp.codegen_options import CodegenOptions
from kernelwright.compiler.language import State
from kernelwright.compiler.lower.module_file.compiled import Program
from kernelwright.core.size_choice import SizeTable
from kernelwright.sketch.nodes import Sketch
from kernelwright.sketch.print import to_source

NO_OPTIONS: Mapping[str, int] = {}


def lower(
    sketch: Sketch,
    *,
    state: State = (),
    shapes: Sequence[Sketch] = (),
    options: Mapping[str, int] = NO_OPTIONS,
    table: SizeTable | None = None,
) -> str:
    """Lowers a sketch to a kernel file. `state` lists the reference's state_dict so that it can be loaded in full; `shapes` are
    sketches of the same module for other input shapes, among which the file chooses when it is called; `options` those of
    codegen_options.py. With a `table`, `shapes` are variants for the same dynamic sizes, and the table chooses."""
    chosen = CodegenOptions.of(options)
    programs = [Program(each, kernel.source(each, options=chosen), to_source(each)) for each in (sketch, *shapes)]
    return module_file.render(programs, state, chosen, table)
