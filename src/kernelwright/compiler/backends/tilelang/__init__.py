"""TileLang: tile programs for GPUs, written from a sketch and executed with or without a GPU.

1. `runtime`        what the judge's sandboxed process loads: kernels executed as `compiled`, or interpreted
2. `launch`       what stands for a compiled kernel: arguments checked, outputs made, launches put down
3. `interpreter`  statements of a PrimFunc: `expressions` (values over lanes), `tileops` (copies, products, reductions), `arrays`
                  (memory), `races` (global memory that is read back with no barrier)
4. `aot`            launches → CUDA source → nvcc's figures
5. `emit`         a sketch as a kernel file: `kernel` (launches), `program` (tiles, loops and stores), `elements` (on the spot), `lines`,
                  `op_table`; what tile programs share is in compiler/lower
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernelwright.compiler.language import Language
from kernelwright.core.tools import Tool, package, program
from kernelwright.core.verdict import Execution
from kernelwright.gpu.build import executable


class TileLang(Language):
    """The language object that the entry point names."""

    name = "tilelang"
    title = "TileLang"
    emitter = "kernelwright.compiler.backends.tilelang.emit"
    lifter = "kernelwright.compiler.lift.tilelang"
    sign = r"^\s*(import|from)\s+tilelang\b"
    precedence = 1
    skills = Path(__file__).parent / "skills"
    executes = "blocks"
    devices = ("cuda", "rocm")
    fallback = "interpreter"
    runtime = "kernelwright.compiler.backends.tilelang.runtime"

    def execution_on(self, kind: str) -> Execution:
        """Executed as nvcc compiles it, where there is one; else, and for other devices, tile programs are interpreted."""
        from kernelwright.compiler.offdevice.nvcc import NVCC

        return "emulator" if kind == "cuda" and NVCC is not None and executable() else "interpreter"

    @property
    def reads(self) -> tuple[str, ...]:
        """In the candidate's sandbox: nvcc's toolkit, and the GPU in software, which is built here where it is not there yet."""
        from kernelwright.compiler.offdevice import cuda_build
        from kernelwright.core.errors import ToolMissing
        from kernelwright.gpu.build import runtime_folder

        try:
            return (str(cuda_build.include_folder().parent), str(cuda_build.toolkit()), str(runtime_folder()))
        except ToolMissing:
            return ()

    def needs(self) -> Sequence[Tool]:
        """TileLang."""
        return (package("tilelang"),)

    def needs_off_device(self) -> Sequence[Tool]:
        """nvcc compiles what TileLang writes, and what it makes of it becomes a program for this processor."""
        from kernelwright.compiler.offdevice import nvcc

        return (*self.needs(), nvcc.compiler(), program("g++", add="apt-get install g++"))


LANGUAGE = TileLang()
