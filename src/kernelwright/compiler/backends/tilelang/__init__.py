"""TileLang: tile programs for GPUs, written from a sketch and executed with or without a GPU.

1. `runtime`        what the judge's sandboxed process loads: TileLang made to interpret, the compiler for the target
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
from kernelwright.core.tools import Tool, package


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
    execution = "interpreter"
    runtime = "kernelwright.compiler.backends.tilelang.runtime"

    def needs(self) -> Sequence[Tool]:
        """TileLang."""
        return (package("tilelang"),)


LANGUAGE = TileLang()
