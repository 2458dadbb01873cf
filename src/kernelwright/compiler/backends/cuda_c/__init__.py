"""CUDA-C: kernels for NVIDIA GPUs as C++ source, built by nvcc; executed as compiled, by `gpu/`, where there is no GPU.

1. `host_api/`   headers of torch, pybind11 and cuBLAS in small, which host code includes
2. `runtime`     what the judge's sandboxed process loads: `builds` (builds and libraries), `inline` (load_inline), `aot` (figures)
3. `emit`        a sketch as a kernel file; `module_file` how that builds its source; `kernel` a sketch as CUDA source: launches
4. `schedule`    what a block does: `cooperate` (nests dealt out to threads), `special` (scans, sorts), `tile_product`
5. `product_kernel`  a kernel that is one large product, in registers or on `tensor_cores`
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernelwright.compiler.language import Language
from kernelwright.core.tools import Tool, program


class CudaC(Language):
    """The language object that the entry point names."""

    name = "cuda_c"
    title = "CUDA C++"
    emitter = "kernelwright.compiler.backends.cuda_c.emit"
    lifter = "kernelwright.compiler.lift.cuda"
    sign = r"__global__|cuda_sources\s*="
    precedence = 3
    skills = Path(__file__).parent / "skills"
    executes = "blocks"
    shared_limit = 44 << 10  # of the 48 KiB that every block may have without asking; the rest is for results that meet
    devices = ("cuda",)
    execution = "emulator"
    runtime = "kernelwright.compiler.backends.cuda_c.runtime"

    def needs(self) -> Sequence[Tool]:
        """CUDA's compiler."""
        from kernelwright.compiler.offdevice import nvcc

        return (nvcc.compiler(),)

    @property
    def reads(self) -> tuple[str, ...]:
        """In the candidate's sandbox: nvcc's toolkit, and the GPU in software, which is built here where it is not there yet."""
        from kernelwright.compiler.offdevice import cuda_build
        from kernelwright.core.errors import ToolMissing
        from kernelwright.gpu.build import runtime_folder

        try:
            toolkit = cuda_build.include_folder().parent
            return (str(toolkit), str(cuda_build.toolkit()), str(cuda_build.cudart().parent), str(runtime_folder()))
        except ToolMissing:
            return ()

    def needs_off_device(self) -> Sequence[Tool]:
        """nvcc compiles kernels and their host code, and what it makes of them becomes a program for this processor."""
        return (*self.needs(), program("g++", "clang++", add="apt-get install g++"))

    def needs_to_lift(self) -> Sequence[Tool]:
        """What executes them off the device: they are lifted by running what they are compiled to."""
        return self.needs_off_device()


LANGUAGE = CudaC()
