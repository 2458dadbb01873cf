"""Triton: tiles as blocks of a GPU program, written from a sketch and executed with or without a GPU.

1. `runtime`        what the judge's sandboxed process loads: the interpreter made ready, the compiler for the target
2. `copies`       two copies of Triton in one process: one interprets, one compiles
3. `interpreter/` Triton's interpreter, patched; `driver` what stands for a GPU's
4. `aot`            launches → the compiler's figures; `ascend` for NPUs, by triton-ascend of an environment of its own
5. `emit`         a sketch as a kernel file: `kernel` (launches), `program` (loops and stores), `registers` (reductions, products,
                  scans, sorts), `elements` (on the spot), `lines`, `op_table`; what tile programs share is in compiler/lower
6. `simulated`    whole Triton programs of others, their PTX executed by `gpu/`; `guards` puts room around tensors for its checks
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kernelwright.compiler.language import Language
from kernelwright.core.tools import Tool, package


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
    execution = "interpreter"
    runtime = "kernelwright.compiler.backends.triton.runtime"

    @property
    def devices(self) -> tuple[str, ...]:
        """Kinds of devices that the Triton of this environment launches on: Ascend's is another package of the same name."""
        try:
            version("triton-ascend")
        except PackageNotFoundError:
            return ("cuda", "rocm")
        return ("ascend",)

    @property
    def reads(self) -> tuple[str, ...]:
        """For Ascend, in the candidate's sandbox: triton-ascend's environment and CANN, where they are."""
        from kernelwright.compiler.backends.triton.ascend import environment

        return environment.reads()

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

    def further_ways(self) -> Sequence[tuple[str, Sequence[Tool]]]:
        """Whether kernels are lowered for Ascend, how far, and whether an NPU could run them."""
        from kernelwright.compiler.backends.triton.ascend import environment

        return (("lowered for Ascend", environment.needs()),)


LANGUAGE = Triton()
