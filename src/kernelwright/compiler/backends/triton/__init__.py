"""Triton: tiles as blocks of a GPU program, written from a sketch and executed with or without a GPU.

1. `runtime`        what the judge's sandboxed process loads: kernels executed as `compiled`, or `interpreted`
2. `copies`       two copies of Triton in one process: one interprets, one compiles
3. `interpreter/` Triton's interpreter, patched; `driver` what stands for a GPU's where nothing is launched
4. `aot`            launches → the compiler's figures; `ascend` for NPUs, by triton-ascend of an environment of its own
5. `emit`         a sketch as a kernel file: `kernel` (launches), `program` (loops and stores), `registers` (reductions, products,
                  scans, sorts), `elements` (on the spot), `lines`, `op_table`; what tile programs share is in compiler/lower
6. `simulated`    Triton's driver of `gpu/`, which executes PTX, and whole programs of others on it; `guards` puts room around tensors
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kernelwright.compiler.language import Language
from kernelwright.core.tools import Tool, package, program
from kernelwright.core.verdict import Execution
from kernelwright.gpu.build import executable


class Triton(Language):
    """The language object that the entry point names."""

    name = "triton"
    title = "Triton"
    emitter = "kernelwright.compiler.backends.triton.emit"
    lifter = "kernelwright.compiler.lift.triton"
    sign = r"^\s*(import|from)\s+triton\b"
    precedence = 2
    skills = Path(__file__).parent / "skills"
    executes = "blocks"
    fallback = "interpreter"
    runtime = "kernelwright.compiler.backends.triton.runtime"

    @property
    def devices(self) -> tuple[str, ...]:
        """Kinds of devices that the Triton of this environment launches on: Ascend's is another package of the same name."""
        try:
            version("triton-ascend")
        except PackageNotFoundError:
            return ("cuda", "rocm")
        return ("ascend",)

    def execution_on(self, kind: str) -> Execution:
        """NVIDIA's code is executed; what is compiled for others is not, and the interpreter says what it computes."""
        return "emulator" if kind == "cuda" and executable() else "interpreter"

    @property
    def reads(self) -> tuple[str, ...]:
        """In the candidate's sandbox: the GPU in software, which is built here where it is not there yet; for Ascend
        triton-ascend's environment and CANN, where they are."""
        from kernelwright.compiler.backends.triton.ascend import environment
        from kernelwright.gpu.build import runtime_folder

        return (*environment.reads(), *([str(runtime_folder())] if executable() else []))

    def tools(self, kind: str) -> dict[str, str]:
        """What compiling for such a target needs beyond Triton: for an NPU, triton-ascend, or how to get it."""
        if kind != "ascend":
            return {}
        from kernelwright.compiler.backends.triton.ascend import environment

        found = environment.find()
        return found.tools() if found else {"add": environment.how_to_add()}

    def needs(self) -> Sequence[Tool]:
        """Triton."""
        return (package("triton"),)

    def needs_off_device(self) -> Sequence[Tool]:
        """What Triton compiles becomes a program for this processor."""
        return (*self.needs(), program("g++", add="apt-get install g++"))

    def further_ways(self) -> Sequence[tuple[str, Sequence[Tool]]]:
        """Whether kernels are lowered for Ascend, how far, and whether an NPU could run them."""
        from kernelwright.compiler.backends.triton.ascend import environment

        return (("lowered for Ascend", environment.needs()),)


LANGUAGE = Triton()
