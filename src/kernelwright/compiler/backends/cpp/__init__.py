"""C++ for CPUs: OpenMP threads, SIMD loops, a C ABI called by ctypes.

1. `kernel`       a sketch as C++ source: a function for each kernel
2. `schedule`     blocks of effects → statements; `keeping` says which tiles are stored, `scan` and `sort` do what their names say
3. `nest`         one loop nest over its `roots`: order, clipping, interior and borders, lanes of a reduction
4. `elements`     one element as a C expression; `vectors` writes loops over floats with explicit vectors
5. `gemm`         the register-blocked matrix product; `product` calls it, `sums` where loops only add products
   `knobs`        what of all this can be done another way, for a search to try
6. `prelude_text` the C++ functions a source uses, from prelude/*.h
7. `module_file`  the Python file around it, whose methods `forward` writes
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelwright.compiler.language import State
from kernelwright.sketch.nodes import Sketch
from kernelwright.target import Capabilities

NO_OPTIONS: Mapping[str, int] = {}


class Cpp:
    """The language object that the entry point names."""

    name = "cpp"
    sign = r"load_inline|cpp_extension|extern \"C\"|g\+\+|clang\+\+|ctypes\.CDLL"
    precedence = 4  # files of other languages name a compiler, too
    skills = Path(__file__).parent / "skills"

    def lower(
        self,
        sketch: Sketch,
        *,
        state: State = (),
        shapes: Sequence[Sketch] = (),
        capabilities: Capabilities | None = None,
        options: Mapping[str, int] = NO_OPTIONS,
    ) -> str:
        """One Python file with the sketch, the C++ source, a loader and `ModelNew`."""
        return lower(sketch, state=state, shapes=shapes, options=options)

    def options(self, kernel: str) -> dict[str, tuple[int, tuple[int, ...]]]:
        """What `lower` could have done another way in this kernel: name → (default, values worth trying)."""
        from kernelwright.compiler.backends.cpp.codegen_options import worth_turning

        return worth_turning(kernel)

    def facts(self) -> dict[str, str]:
        """The compiler and what it would compile for."""
        compiler = shutil.which(os.environ.get("CXX", "g++"))
        if compiler is None:
            return {"compiler": "missing: apt install g++"}
        version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout.splitlines()
        return {"compiler": version[0] if version else compiler, "threads": str(os.cpu_count())}


def lower(
    sketch: Sketch,
    *,
    state: State = (),
    shapes: Sequence[Sketch] = (),
    options: Mapping[str, int] = NO_OPTIONS,
) -> str:
    """Lowers a sketch to a kernel file. `state` lists the reference's state_dict so that it can be loaded in full; `shapes` are
    sketches of the same module for other input shapes, among which the file chooses when it is called; `options` are knobs.py's."""
    from kernelwright.compiler.backends.cpp import kernel, module_file
    from kernelwright.compiler.backends.cpp.codegen_options import CodegenOptions
    from kernelwright.compiler.lower.module_file.compiled import Program
    from kernelwright.sketch.print import to_source

    knobs = CodegenOptions.of(options)
    programs = [Program(each, kernel.source(each, knobs=knobs), to_source(each)) for each in (sketch, *shapes)]
    return module_file.render(programs, state, knobs)


LANGUAGE = Cpp()
