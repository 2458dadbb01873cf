"""Compiling ahead of time: functions that were interpreted in, CUDA source by TileLang and the figures of nvcc out.

TileLang lowers for a target that is only described; nvcc and ptxas need no GPU. The dynamic shared memory of a kernel stands in its
attributes, the rest is what `ptxas -v` prints.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tilelang
from tilelang import tvm

from kernelwright.compiler.backends.tilelang.launch import RECORD, Launched
from kernelwright.compiler.language import CompileFailed
from kernelwright.compiler.offdevice.nvcc import ADD, NVCC, assemble, first_error, read_ptxas
from kernelwright.core.errors import GpuError

SECONDS = 240.0
_Popen = subprocess.Popen
_HOME = Path(tilelang.__file__).parent
INCLUDES = (_HOME / "src", _HOME / "3rdparty" / "cutlass" / "include")
ACCELERATED = ("90", "100", "101", "103", "120")
"""Architectures whose own instructions (wgmma, TMA) need the suffix a."""


def compile_launches(target: Mapping[str, Any]) -> dict[str, Any]:
    """Figures of every function that ran; CompileFailed with the compiler's first error."""
    title = target.get("title") or target.get("name")
    version = f"tilelang {tilelang.__version__.partition('+')[0]}"
    if target.get("kind") != "cuda":
        return {"compiler": f"{version}: nothing here compiles its code for {title}", "kernels": []}
    digits = re.sub(r"\D", "", str(target.get("arch", "")))
    arch = f"sm_{digits}{'a' if digits in ACCELERATED else ''}"
    if RECORD.executed and all(RECORD.executed[each].arch == arch for each in RECORD.launches):
        return {"compiler": f"{version} and nvcc", "kernels": _assembled(arch)}
    parts: list[str] = []
    wanted: list[tuple[str, Mapping[str, Any], int, Launched]] = []
    flags: dict[str, None] = {}
    for number, launch in enumerate(RECORD.launches.values()):
        source, entries, _ = lowered(launch, arch)
        for place, (name, attributes) in enumerate(entries):
            # All functions go into one file, because reading TileLang's headers takes most of nvcc's time.
            unique = f"{name}_{number}"
            source = re.sub(rf"\b{re.escape(name)}\b", unique, source)
            wanted.append((unique, attributes, place, launch))
        parts.append(source)
        flags |= dict.fromkeys(launch.flags)
    if NVCC is None:
        return {"compiler": f"{version}; nvcc is missing: {ADD}", "kernels": []}
    figures = _compiled("\n".join(parts), arch, tuple(flags)) if parts else {}
    return {"compiler": f"{version} and nvcc", "kernels": [_kernel(*each, figures) for each in wanted]}


def _assembled(arch: str) -> list[dict[str, Any]]:
    """Figures of what was executed: its PTX is what the assembler gets."""
    kernels = []
    for key, launch in RECORD.launches.items():
        executed = RECORD.executed[key]
        try:
            figures = assemble(executed.ptx, arch).figures
        except GpuError as error:
            raise CompileFailed(str(error)) from None
        for place, (name, attributes) in enumerate(executed.entries):
            kernels.append(_kernel(f"{name}_{place}", attributes, place, launch, {f"{name}_{place}": figures.get(name, {})}))
    return kernels


def command(kind: str, arch: str, flags: Sequence[str], source: Path, output: Path) -> list[str]:
    """nvcc's command line for source that TileLang wrote."""
    places = (f"-I{place}" for place in INCLUDES)
    return [str(NVCC), kind, f"-arch={arch}", "-std=c++20", "-w", *places, *flags, "-o", str(output), str(source)]


def lowered(launch: Launched, arch: str) -> tuple[str, list[tuple[str, Mapping[str, Any]]], Any]:
    """CUDA source, the name and attributes of each kernel in it, in the order of launches, and the device's module."""
    target = tvm.target.Target({"kind": "cuda", "arch": arch})
    try:
        with tvm.transform.PassContext(opt_level=3, config=dict(launch.passes)), target:
            artifact = tilelang.lower(launch.function, target=target)
    except Exception as error:
        raise CompileFailed(f"TileLang does not lower the kernel for {arch}: {_first_line(error)}") from None
    entries = [(str(var.name_hint), dict(function.attrs)) for var, function in artifact.device_mod.functions.items()]
    source = str(artifact.kernel_source)
    return source, sorted(entries, key=lambda entry: source.find(f" {entry[0]}(")), artifact.device_mod


def _first_line(error: BaseException) -> str:
    """What TVM complains about, without the trace before it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = [line for line in lines if re.search(r"Error|error|Check failed|check failed", line)]
    return (said or lines or [type(error).__name__])[-1][:400]


def _compiled(source: str, arch: str, flags: tuple[str, ...]) -> dict[str, dict[str, int]]:
    with tempfile.TemporaryDirectory() as work:
        text = Path(work) / "kernel.cu"
        text.write_text(source, encoding="utf-8")
        words = command("-cubin", arch, ("-Xptxas", "-v", *flags), text, text.with_suffix(".cubin"))
        with _Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            try:
                said, _ = process.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise CompileFailed(f"nvcc did not finish within {SECONDS:.0f} s") from None
        if process.returncode:
            raise CompileFailed(first_error(said, str(text)))
        return read_ptxas(said)


def _kernel(
    name: str, attributes: Mapping[str, Any], number: int, launch: Launched, figures: Mapping[str, Mapping[str, int]]
) -> dict[str, Any]:
    known = figures.get(name, {})
    grid = launch.grids[number] if number < len(launch.grids) else None
    blocks = 1
    for extent in grid.blocks if grid else ():
        blocks *= extent
    threads = 1
    for axis, extent in dict(attributes.get("thread_extent") or {}).items():
        if str(axis).startswith("threadIdx"):
            threads *= int(extent)
    return {
        "name": name.rpartition("_")[0],
        "registers": known.get("registers"),
        "spills": known.get("spills"),
        "shared_memory": known.get("shared_memory", 0) + int(attributes.get("dyn_shared_memory_buf") or 0),
        "threads": threads,
        "blocks": blocks,
    }
