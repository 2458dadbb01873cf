"""The kernel file: one Python module that builds its CUDA source with nvcc and defines `ModelNew`; here is how it is built."""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.compiler.language import State
from kernelwright.compiler.lower.module_file import compiled
from kernelwright.compiler.lower.module_file.compiled import Program

_PREPARE = """
    major, minor = torch.cuda.get_device_capability()
    command = ["nvcc", "-O3", "-std=c++17", f"-arch=sm_{major}{minor}", "-shared", "-Xcompiler", "-fPIC"]
    key = hashlib.sha256("\\n".join([code, *command]).encode()).hexdigest()[:24]
"""
_COMPILE = """
            try:
                done = subprocess.run([*command, "-o", built, source], capture_output=True, text=True)
            except FileNotFoundError:
                raise RuntimeError("nvcc was not found; it is needed to build this kernel. Install the CUDA toolkit") from None
"""


def render(programs: Sequence[Program], state: State) -> str:
    """The text of the kernel file: memory is the GPU's."""
    loader = compiled.loader(
        doc="Compiles a source once for each source and GPU; the result is kept in a cache folder.",
        prepare=_PREPARE, folder="kernelwright-cuda", ending="cu", compile=_COMPILE, language="CUDA",
    )  # fmt: skip
    return compiled.render(programs, state, loader=loader, needs="nvcc", device="cuda")
