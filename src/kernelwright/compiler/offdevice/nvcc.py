"""The real nvcc where there is one, and what it says: the first error, and the figures of each kernel.

Every language whose kernels become CUDA source has them compiled by it; nothing is executed and no GPU is needed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kernelwright.core import tools
from kernelwright.core.errors import GpuError


def find_nvcc() -> str | None:
    """The real compiler, found before anything is redirected: a toolkit of the machine, or pip's (`kernelwright[cuda]`)."""
    found = shutil.which("nvcc")
    places = [found, "/usr/local/cuda/bin/nvcc", *map(str, sorted(Path("/usr/local").glob("cuda*/bin/nvcc"), reverse=True))]
    packages = (Path(place) / "nvidia" for place in sys.path if place.endswith("-packages"))
    places += [str(place) for package in packages for place in sorted(package.glob("cu*/bin/nvcc"), reverse=True)]
    return next((place for place in places if place and Path(place).exists()), None)


NVCC = find_nvcc()
ADD = "install the CUDA toolkit, or: pip install 'kernelwright[cuda]'"
"""How to get one, in every sentence that misses it."""
SECONDS = 240.0
_Popen = subprocess.Popen


def compiler() -> tools.Tool:
    """The compiler, for `doctor`: one on the PATH by its name, another with its place."""
    found = tools.program("nvcc", add=ADD)
    version = tools.program_version(NVCC) if NVCC and not found.found else None
    return tools.Tool("nvcc", version, ADD) if version else found


@dataclass(frozen=True)
class Assembled:
    """What the assembler made of a module: machine code, and the figures of each kernel by its name."""

    cubin: bytes
    figures: dict[str, dict[str, int]]


def run(command: list[str], seconds: float) -> tuple[int, str]:
    """Runs a program as it is, nvcc included: exit code and both outputs."""
    with _Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            said, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return 1, f"{command[0]} did not finish within {seconds:.0f} s"
        return process.returncode, said


def find_assemblers() -> list[str]:
    """NVIDIA's assemblers, the toolkit's first: those in Triton's package read newer PTX, and may be the only ones."""
    beside = [str(Path(NVCC).resolve().parent / "ptxas")] if NVCC else []
    packages = (Path(place) / "triton/backends/nvidia/bin" for place in sys.path if place.endswith("-packages"))
    places = [*beside, *(str(place) for package in packages for place in sorted(package.glob("ptxas*")))]
    return [place for place in places if Path(place).is_file()]


ASSEMBLERS = find_assemblers()


def assemble(ptx: str, arch: str) -> Assembled:
    """PTX to machine code of an architecture (`sm_90a`); GpuError with the assembler's first error."""
    if not ASSEMBLERS:
        raise GpuError("there is no ptxas: install the CUDA toolkit, or pip install 'kernelwright[cuda]'")
    with tempfile.TemporaryDirectory() as work:
        text, cubin = Path(work) / "kernel.ptx", Path(work) / "kernel.cubin"
        text.write_text(ptx, encoding="utf-8")
        for assembler in ASSEMBLERS:
            code, said = run([assembler, "-v", f"-arch={arch}", str(text), "-o", str(cubin)], SECONDS)
            if code == 0:
                return Assembled(cubin.read_bytes(), read_ptxas(said))
            if "Unsupported .version" not in said and "is not defined for option 'gpu-name'" not in said:
                break
        raise GpuError(first_error(said, str(text)))


def read_ptxas(said: str) -> dict[str, dict[str, int]]:
    """The figures of each entry function by its mangled name."""
    found: dict[str, dict[str, int]] = {}
    name = ""
    for line in said.splitlines():
        entry = re.search(r"Compiling entry function '(\S+)'", line)
        if entry:
            name = entry.group(1)
            found[name] = {"registers": 0, "shared_memory": 0, "spills": 0}
            continue
        properties = re.search(r"Function properties for (\S+)", line)
        if properties:
            name = properties.group(1)
        if name not in found:
            continue
        spilled = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", line)
        if spilled:
            found[name]["spills"] = int(spilled.group(1)) + int(spilled.group(2))
        used = re.search(r"Used (\d+) registers", line)
        if used:
            found[name]["registers"] = int(used.group(1))
            shared = re.search(r"(\d+) bytes smem", line)
            found[name]["shared_memory"] = int(shared.group(1)) if shared else 0
    return found


def first_error(said: str, path: str) -> str:
    """nvcc's first error, with the author's line."""
    for line in said.splitlines():
        if re.search(r"\berror\b", line):
            return re.sub(r"^\S*/", "", line.replace(path, "kernel.cu")).strip()
    return said.strip()[-500:] or "nvcc failed without a word"
