"""CUDA-C: kernels for NVIDIA GPUs as C++ source, built by nvcc; executed here by an emulator where there is no GPU.

1. `emulator/`   CUDA C++ on the CPU, with the checks a GPU does not give
2. `runtime`     what the judge's sandboxed process loads: `builds` (builds and libraries), `inline` (load_inline), `aot` (nvcc)
3. `emit`        a sketch as a kernel file; `module_file` how that builds its source; `kernel` a sketch as CUDA source: launches
4. `schedule`    what a block does: `cooperate` (nests dealt out to threads), `special` (scans, sorts), `tile_product`
5. `product_kernel`  a kernel that is one large product, in registers or on `tensor_cores`
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernelwright.compiler.language import Language, State
from kernelwright.core.tools import Tool, package, program
from kernelwright.sketch.nodes import Sketch
from kernelwright.target import Capabilities


class CudaC(Language):
    """The language object that the entry point names."""

    name = "cuda_c"
    title = "CUDA C++"
    lifter = "kernelwright.compiler.lift.cuda"
    sign = r"__global__|cuda_sources\s*="
    precedence = 3
    skills = Path(__file__).parent / "skills"
    executes = "blocks"
    shared_limit = 44 << 10  # of the 48 KiB that every block may have without asking; the rest is for results that meet
    devices = ("cuda",)
    execution = "emulator"
    runtime = "kernelwright.compiler.backends.cuda_c.runtime"

    def lower(
        self, sketch: Sketch, *, state: State = (), shapes: Sequence[Sketch] = (), capabilities: Capabilities | None = None
    ) -> str:
        """One Python file with the sketch, the CUDA source, a loader and `ModelNew`."""
        from kernelwright.compiler.backends.cuda_c.emit import lower

        return lower(sketch, state=state, shapes=shapes)

    def needs(self) -> Sequence[Tool]:
        """CUDA's compiler."""
        return (program("nvcc", add="install the CUDA toolkit"),)

    def needs_off_device(self) -> Sequence[Tool]:
        """The emulator is built by the C++ compiler; nvcc only compiles for targets."""
        nvcc = program("nvcc", add="install the CUDA toolkit", without="nothing is compiled for targets")
        return (program("g++", "clang++", add="apt-get install g++"), nvcc)

    def needs_to_lift(self) -> Sequence[Tool]:
        """A parser, and the emulator's compiler."""
        parsers = (package(name, "pip install 'kernelwright[lift]'") for name in ("tree-sitter", "tree-sitter-cuda"))
        return (*parsers, program("g++", add="apt-get install g++"))


LANGUAGE = CudaC()
