"""OpenCL as a language of Kernelwright: a sketch in, a kernel file that needs torch and pyopencl out.

1. `writer`       a sketch's kernels as OpenCL C: what the CUDA-C coder decides, with work-groups that meet in local memory
2. `dialect`      the words of OpenCL C for what CUDA writes in C++; `prelude` the functions that a source names
3. `module_file`  the Python file around it

A kernel runs natively on any OpenCL device; PoCL makes one of the CPU, so the judge needs no runtime for this language.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernelwright.compiler.language import Language
from kernelwright.core.tools import Tool, package

REGISTRY = Path("/etc/OpenCL")


class OpenCL(Language):
    """The language object that the entry point names."""

    name = "opencl"
    title = "OpenCL C (pyopencl)"
    emitter = "kernelwright_opencl.module_file"
    skills = Path(__file__).parent / "skills"
    executes = "blocks"
    reads = (str(REGISTRY),)  # where the loader finds the names of the drivers
    sign = r"^\s*(import|from)\s+pyopencl\b"

    def needs(self) -> Sequence[Tool]:
        """pyopencl, and a driver that is registered; neither is loaded."""
        drivers = sorted(file.stem for file in (REGISTRY / "vendors").glob("*.icd"))
        return (package("pyopencl"), Tool("an OpenCL driver", ", ".join(drivers), "apt install pocl-opencl-icd"))


LANGUAGE = OpenCL()
