"""CUDA-C: kernels for NVIDIA GPUs as C++ source, built by nvcc; executed here by an emulator where there is no GPU.

1. `emulator/`   CUDA C++ on the CPU, with the checks a GPU does not give
2. `runtime`     what the judge's sandboxed process loads: `builds` (builds and libraries), `inline` (load_inline), `aot` (nvcc)
3. `emit`        a sketch as a kernel file; `module_file` how that builds its source; `kernel` a sketch as CUDA source: launches
4. `schedule`    what a block does: `cooperate` (nests dealt out to threads), `special` (scans, sorts), `tile_product`
5. `product_kernel`  a kernel that is one large product, in registers or on `tensor_cores`
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kernelwright.compiler.language import State
from kernelwright.sketch.nodes import Sketch
from kernelwright.target import Capabilities


class CudaC:
    """The language object that the entry point names."""

    name = "cuda_c"
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

    def facts(self) -> dict[str, str]:
        """The emulator's compiler, and nvcc."""
        known = {"without a GPU": "emulated with g++" if shutil.which("g++") else "g++ is missing: apt install g++"}
        nvcc = shutil.which("nvcc")
        if nvcc is None:
            return {**known, "nvcc": "missing: install the CUDA toolkit; without it nothing is compiled for the target"}
        said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=False).stdout
        release = next((line for line in said.splitlines() if "release" in line), nvcc)
        return {**known, "nvcc": release.strip()}


LANGUAGE = CudaC()
