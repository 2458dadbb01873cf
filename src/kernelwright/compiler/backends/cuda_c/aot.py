"""nvcc for the target: CUDA sources and launches in, registers, shared memory and spills of each kernel out.

`ptxas -v` prints the figures; nothing is executed and no GPU is needed. A source written against torch's C++ interface is compiled
with the small stand-in of that interface (emulator/device/torch), since only its kernels are of interest.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelwright.compiler.backends.cuda_c.builds import real_run
from kernelwright.compiler.backends.cuda_c.emulator import build as emulator
from kernelwright.compiler.backends.cuda_c.emulator.library import Launched
from kernelwright.compiler.language import CompileFailed
from kernelwright.compiler.offdevice.nvcc import NVCC, first_error, read_ptxas

SECONDS = 240.0
OLD_CUB = re.compile(r"\bcub::(Sum|Max|Min|Difference|Equality|Inequality)\b")
CUB_NAMES = """#include <cub/version.cuh>
#if CUB_MAJOR_VERSION >= 3
#include <cuda/functional>
#include <cuda/std/functional>
namespace cub {
using Sum = ::cuda::std::plus<>;
using Difference = ::cuda::std::minus<>;
using Max = ::cuda::maximum<>;
using Min = ::cuda::minimum<>;
using Equality = ::cuda::std::equal_to<>;
using Inequality = ::cuda::std::not_equal_to<>;
}
#endif
"""
"""cub's own function objects went with CUDA 13 (https://nvidia.github.io/cccl/cccl/3.0_migration_guide.html); kernels written before
that are compiled with their successors under the old names."""


HAS_CUBLAS = any(
    (place / "include" / "cublas_v2.h").exists()
    for place in (Path(NVCC or "/").resolve().parent.parent, Path("/usr/local/cuda"))
)
"""Toolkits are installed with and without their libraries; a kernel's figures do not depend on them."""


def compile_sources(
    sources: Sequence[tuple[str, tuple[str, ...]]], launches: Sequence[Launched], target: Mapping[str, Any]
) -> dict[str, Any]:
    """Figures of every launch; CompileFailed with the compiler's first error."""
    if NVCC is None:
        return {"compiler": "nvcc is missing: install the CUDA toolkit to compile for the target", "kernels": []}
    arch = re.sub(r"\D", "", str(target.get("arch", "")))
    if str(target.get("kind")) != "cuda" or not arch:
        raise CompileFailed(f"CUDA-C is not compiled for {target.get('title') or target.get('name')}: it is no NVIDIA GPU")
    figures: dict[str, dict[str, int]] = {}
    with tempfile.TemporaryDirectory() as work:
        stand_in = _stand_in(Path(work))
        for number, (source, flags) in enumerate(sources):
            text = Path(work) / f"kernel_{number}.cu"
            text.write_text(source, encoding="utf-8")
            if OLD_CUB.search(source):
                flags = (*flags, "-include", str(stand_in / "cub_names.h"))
            command = [
                NVCC, "-cubin", "-Xptxas", "-v", f"-arch=sm_{arch}", "-std=c++17", "--expt-relaxed-constexpr", "--extended-lambda",
                f"-I{stand_in}", *flags, "-o", str(text.with_suffix(".cubin")), str(text),
            ]  # fmt: skip
            code, said = real_run(command, SECONDS)
            if code:
                raise CompileFailed(first_error(said, str(text)))
            figures |= read_ptxas(said)
    _, version = real_run([NVCC, "--version"], 30.0)
    release = re.search(r"release ([\d.]+)", version)
    kernels = [kernel for launch in launches if (kernel := _kernel(launch, figures)) is not None]
    return {"compiler": f"nvcc {release.group(1) if release else ''}".strip(), "kernels": kernels}


def _stand_in(work: Path) -> Path:
    """torch's C++ interface in small, without the emulator's own CUDA headers."""
    place = work / "torch_stand_in"
    for name, text in emulator.FILES.items():
        if name.startswith(("torch/", "ATen/", "c10/", "pybind11/")) or (name == "cublas_v2.h" and not HAS_CUBLAS):
            path = place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    place.mkdir(exist_ok=True)
    (place / "cub_names.h").write_text(CUB_NAMES, encoding="utf-8")
    return place


def _kernel(launch: Launched, figures: Mapping[str, Mapping[str, int]]) -> dict[str, Any] | None:
    """A launch with the figures of its kernel; of several instances of a template, the hungriest. A launch through a pointer names
    the pointer: then any kernel of the source may be meant."""
    plain = launch.name.rpartition("::")[2].strip()
    fitting = [known for name, known in figures.items() if f"{len(plain)}{plain}" in name or name == plain]
    fitting = fitting or list(figures.values())
    if not fitting:
        return None
    known = max(fitting, key=lambda item: (item["spills"], item["registers"]))
    return {
        "name": plain,
        "registers": known["registers"],
        "spills": known["spills"],
        "shared_memory": known["shared_memory"] + launch.shared,
        "threads": launch.block[0] * launch.block[1] * launch.block[2],
        "blocks": launch.grid[0] * launch.grid[1] * launch.grid[2],
    }
