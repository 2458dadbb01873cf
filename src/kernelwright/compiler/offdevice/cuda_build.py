"""CUDA programs built for the device in software: a `.cu` source in, a shared object out whose kernels are PTX.

nvcc compiles it whole, host and device code, so that macros, templates and `<<<>>>` mean what they mean; instead of NVIDIA's runtime it is
linked to ours (`gpu/host`), and a function that ours lacks is named here, not at the call that would have crashed.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from kernelwright.compiler.offdevice.cuda_api import properties
from kernelwright.compiler.offdevice.nvcc import ADD, NVCC
from kernelwright.core.errors import GpuError, ToolMissing
from kernelwright.gpu.host import runtime_library
from kernelwright.gpu.host.images import NEWEST

SECONDS = 600.0
_ERRORS_SHOWN = 6
_FOREIGN = re.compile(
    r"-arch|-gencode|-code|--gpu-|-cudart|--cudart|-G$|-lcuda|-lnv|-lineinfo|-ptx$|-cubin$|-c$|-dc$|-shared$|-O\d?$|-std"
)
"""Flags of the author that say for which device, or how to link: decided here. A following value goes with `-gencode`, `-arch`."""
_WITH_OWN_INSTRUCTIONS = (90, 100, 101, 103, 120)
_Popen = subprocess.Popen


def toolkit() -> Path:
    """The folder of the toolkit whose nvcc is used."""
    if NVCC is None:
        raise ToolMissing("nvcc", "compiling CUDA programs", ADD)
    return Path(NVCC).resolve().parent.parent


@cache
def include_folder() -> Path:
    """Where the toolkit's headers are."""
    for place in (toolkit() / "include", *sorted(toolkit().glob("targets/*/include")), Path("/usr/local/cuda/include")):
        if (place / "cuda_runtime_api.h").exists():
            return place
    raise ToolMissing("cuda_runtime_api.h", "compiling CUDA programs", "install the CUDA toolkit with its headers")


@cache
def cudart() -> Path:
    """Our runtime for this toolkit."""
    return runtime_library(include_folder())


def architecture(target: Mapping[str, Any]) -> int:
    """The architecture to compile for: the target's, or the newest that is executed."""
    digits = re.sub(r"\D", "", str(target.get("arch", "")))
    return min(int(digits or 80), NEWEST)


def feature_architecture(arch: int, kind: str) -> str:
    """`compute_90a`: architectures whose own instructions need the suffix have it."""
    return f"{kind}_{arch}{'a' if arch in _WITH_OWN_INSTRUCTIONS else ''}"


def device_attributes(target: Mapping[str, Any]) -> dict[int, int]:
    """Answers of `cudaDeviceGetAttribute` by number (`cudaDeviceAttr` in driver_types.h); -1: bytes of memory."""
    p = properties(target)
    arch = architecture(target)
    return {
        -1: p.total_memory or 80 << 30, 1: 1024, 2: 1024, 3: 1024, 4: 64, 5: 2**31 - 1, 6: 65535, 7: 65535, 8: p.shared_memory_per_block,
        9: 65536, 10: p.warp_size, 11: 2**31 - 1, 12: p.regs_per_multiprocessor, 13: 1410000, 16: p.multi_processor_count, 17: 0, 19: 1,
        31: 1, 36: 1215000, 37: 5120, 38: p.L2_cache_size, 39: p.max_threads_per_multi_processor, 41: 1, 75: arch // 10, 76: arch % 10,
        78: 1, 81: p.shared_memory_per_multiprocessor, 82: p.regs_per_multiprocessor, 83: 1, 88: 1, 89: 1, 95: 1, 96: 1,
        97: p.shared_memory_per_block_optin, 106: 32 if arch != 89 and arch != 86 else 24, 111: 1024, 115: 1, 120: int(arch >= 90),
    }  # fmt: skip


def author_flags(flags: Sequence[str]) -> list[str]:
    """What of an author's command line concerns the meaning of the source: the rest is decided here."""
    kept, words = [], list(flags)
    while words:
        word = words.pop(0)
        if word in (
            "-Xptxas",
            "--ptxas-options",
            "-Xlinker",
            "-gencode",
            "--generate-code",
            "-arch",
            "-code",
            "-o",
            "-odir",
            "-ccbin",
        ):
            words[:1] = []
        elif word.startswith(("-Xptxas=", "--ptxas-options=")) or _FOREIGN.match(word):
            continue
        else:
            kept.append(word)
    return kept


def build(sources: Sequence[Path], output: Path, *, arch: int, flags: Sequence[str] = (), runtime: Path | None = None) -> Path:
    """Compile and link; GpuError with nvcc's errors by the author's lines."""
    toolkit()
    standard = next((f for f in reversed(flags) if f.startswith(("-std=", "--std="))), "-std=c++17")
    virtual = feature_architecture(arch, "compute")
    command = [
        str(NVCC), "-gencode", f"arch={virtual},code={virtual}", "--no-compress", "-lineinfo", "--cudart=none", "-shared", "-O2", "-w",
        "-Xcompiler", "-fPIC,-w,-fno-gnu-unique", standard, "--expt-relaxed-constexpr", "--extended-lambda", *author_flags(flags),
        "-Xlinker", "--no-undefined", *map(str, sources), str(runtime or cudart()), "-o", str(output),
    ]  # fmt: skip
    try:
        with _Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            said, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        raise GpuError(f"nvcc did not finish within {SECONDS:.0f} s") from None
    if process.returncode:
        raise GpuError(_reason(said))
    return output


def _reason(said: str) -> str:
    missing = sorted(set(re.findall(r"undefined reference to [`'](\w+)", said)))
    if missing:
        shown = ", ".join(missing[:_ERRORS_SHOWN])
        return f"the program calls {shown}, which the CUDA runtime in software does not offer"
    errors = [
        re.sub(r"^\S*/", "", line)
        for line in said.splitlines()
        if re.search(r"\berror\b:?(?! detected)|\bcannot find\b", line) and "collect2" not in line
    ]
    return "; ".join(errors[:_ERRORS_SHOWN]) or said.strip()[-500:] or "nvcc failed without a word"
