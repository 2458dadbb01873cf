"""C++ for CPUs: OpenMP threads, SIMD loops, a C ABI called by ctypes.

1. `emit`         a sketch as a kernel file; `module_file` how that builds its source
2. `kernel`       a sketch as C++ source: a function for each kernel
3. `schedule`     blocks of effects → statements: what a CPU does beyond the C family (compiler/lower/c_family)
4. `nests/`       loops over elements: SIMD, vectors, prefetches, scans, sorts
5. `products/`    the register-blocked matrix product, and tile products as calls of it
6. `codegen_options`  what of all this can be done another way, for a search to try
7. `prelude_sections`  the C++ functions that a source uses, from prelude/*.h
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelwright.compiler.language import Language, State
from kernelwright.core.size_choice import SizeTable
from kernelwright.core.tools import Tool, program
from kernelwright.sketch.nodes import Sketch
from kernelwright.target import Capabilities

NO_OPTIONS: Mapping[str, int] = {}


class Cpp(Language):
    """The language object that the entry point names."""

    name = "cpp"
    title = "C++ (g++, OpenMP, SIMD; a C ABI called by ctypes)"
    sign = r"load_inline|cpp_extension|extern \"C\"|g\+\+|clang\+\+|ctypes\.CDLL"
    precedence = 4  # files of other languages name a compiler, too
    skills = Path(__file__).parent / "skills"
    variants = True

    def lower(
        self,
        sketch: Sketch,
        *,
        state: State = (),
        shapes: Sequence[Sketch] = (),
        capabilities: Capabilities | None = None,
        options: Mapping[str, int] = NO_OPTIONS,
        table: SizeTable | None = None,
    ) -> str:
        """One Python file with the sketch, the C++ source, a loader and `ModelNew`."""
        from kernelwright.compiler.backends.cpp.emit import lower

        return lower(sketch, state=state, shapes=shapes, options=options, table=table)

    def options(self, kernel: str) -> dict[str, tuple[int, tuple[int, ...]]]:
        """What `lower` could have done another way in this kernel: name → (default, values worth trying)."""
        from kernelwright.compiler.backends.cpp.codegen_options import worth_turning

        return worth_turning(kernel)

    def needs(self) -> Sequence[Tool]:
        """A compiler."""
        return (program("g++", "clang++", add="apt-get install g++"),)


LANGUAGE = Cpp()
