"""The assembler for the target: launches that were executed in; registers, shared memory and spills of each kernel out.

What was executed is what is assembled, where it was compiled for the target's architecture; for another one nvcc compiles the sources
again. Nothing is executed and no GPU is needed.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from kernelwright.compiler.language import CompileFailed
from kernelwright.compiler.offdevice import cuda_build
from kernelwright.compiler.offdevice.cuda_names import plain_name
from kernelwright.compiler.offdevice.nvcc import ADD, NVCC, assemble, first_error, read_ptxas, run
from kernelwright.gpu.host import Launch

SECONDS = 240.0


def compile_launches(
    launches: Sequence[Launch], built: Sequence[tuple[tuple[Path, ...], tuple[str, ...]]], target: Mapping[str, Any]
) -> dict[str, Any]:
    """Figures of every launch; CompileFailed with the compiler's first error."""
    if NVCC is None:
        return {"compiler": f"nvcc is missing: {ADD}", "kernels": []}
    arch = re.sub(r"\D", "", str(target.get("arch", "")))
    if str(target.get("kind")) != "cuda" or not arch:
        raise CompileFailed(f"CUDA-C is not compiled for {target.get('title') or target.get('name')}: it is no NVIDIA GPU")
    figures: dict[str, dict[str, int]] = {}
    again = False
    for ptx in dict.fromkeys(launch.ptx for launch in launches):
        found = re.search(r"^\s*\.target\s+sm_(\d+)(a?)", ptx, re.MULTILINE)
        if found and (found[1] == arch or (int(found[1]) < int(arch) and not found[2])):
            figures |= assemble(ptx, f"sm_{arch}{found[2]}").figures
        else:
            again = True
    if again:
        figures |= _compiled_again(built, arch)
    kernels = [kernel for launch in launches if (kernel := _kernel(launch, figures)) is not None]
    return {"compiler": f"nvcc {_release()}".strip(), "kernels": kernels}


def _compiled_again(built: Sequence[tuple[tuple[Path, ...], tuple[str, ...]]], arch: str) -> dict[str, dict[str, int]]:
    """Figures of all kernels of the sources, for an architecture for which they were not compiled to be executed."""
    figures: dict[str, dict[str, int]] = {}
    with tempfile.TemporaryDirectory() as work:
        for sources, flags in built:
            for source in sources:
                command = [
                    str(NVCC), "-cubin", "-Xptxas", "-v", f"-arch={cuda_build.feature_architecture(int(arch), 'sm')}", "-std=c++17", "-w",
                    "--expt-relaxed-constexpr", "--extended-lambda", *cuda_build.author_flags(flags),
                    "-o", str(Path(work) / "kernel.cubin"), str(source),
                ]  # fmt: skip
                code, said = run(command, SECONDS)
                if code:
                    raise CompileFailed(first_error(said, str(source)))
                figures |= read_ptxas(said)
    return figures


def _kernel(launch: Launch, figures: Mapping[str, Mapping[str, int]]) -> dict[str, Any] | None:
    """A launch with the figures of its kernel."""
    known = figures.get(launch.entry)
    if known is None:
        return None
    return {
        "name": plain_name(launch.entry),
        "registers": known["registers"],
        "spills": known["spills"],
        "shared_memory": known["shared_memory"] + launch.shared,
        "threads": launch.block[0] * launch.block[1] * launch.block[2],
        "blocks": launch.grid[0] * launch.grid[1] * launch.grid[2],
    }


@cache
def _release() -> str:
    _, version = run([str(NVCC), "--version"], 30.0)
    found = re.search(r"release ([\d.]+)", version)
    return found[1] if found else ""
