"""C++ in, a shared object out: the runtime and the precompiled header once for each machine, kernels by their content.

All go into one cache folder; what is there is never built twice, and two processes that build the same never see half a file.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kernelwright.core.errors import ToolMissing
from kernelwright.core.folders import cache_folder

_RUNTIME = Path(__file__).parent / "runtime"
_COMMON = ("lanes", "system", "scheduler", "matrix")
_FLAGS = [
    *("-std=gnu++20", "-march=native", "-mprefer-vector-width=512", "-ffp-contract=off", "-fPIC", "-fno-strict-aliasing"),
    *("-fno-math-errno", "-fno-trapping-math", "-Wno-psabi", "-pthread", "-w"),
]


_kernels: list[Path] = []


def keep_kernels_in(folder: Path) -> None:
    """Build kernels into a folder of this process from now on: a process that runs foreign code must not reach the cache of others."""
    _kernels[:] = [folder]


def executable() -> bool:
    """Whether PTX can be executed on this machine: translations of it want a compiler."""
    return shutil.which(os.environ.get("CXX", "g++")) is not None


def build(source: str, *, checks: bool) -> Path:
    """The shared object of a translated module, linked with the plain or the checked runtime."""
    runtime = runtime_folder()
    key = hashlib.sha256(f"{runtime.name}\n{source}".encode()).hexdigest()[:24]
    folder = _kernels[0] if _kernels else _root() / "kernels"
    folder.mkdir(parents=True, exist_ok=True)
    kernel = folder / f"{key}.o"
    shared = folder / f"{key}{'-checked' if checks else ''}.so"
    if shared.exists():
        return shared
    if not kernel.exists():
        text = folder / f"{key}.cpp"
        _write(text, source)
        level = "-O1" if _wide_vectors() else "-O2"
        _compile(
            [*_FLAGS, level, "-fno-ipa-sra", "-I", str(runtime), "-include", str(runtime / "kernel.h"), "-c", str(text)], kernel
        )
    objects = [str(runtime / f"{n}.o") for n in (*_COMMON, "checked" if checks else "memory")]
    _compile(["-shared", "-pthread", str(kernel), *objects], shared)
    return shared


@functools.lru_cache(maxsize=1)
def runtime_folder() -> Path:
    """The folder with the runtime's objects and the precompiled header; built where it is not there."""
    compiler = _compiler()
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout.splitlines()[0]
    digest = hashlib.sha256(f"readable\n{version}\n{_FLAGS}\n{_processor()}".encode())
    files = sorted(p for p in _RUNTIME.iterdir() if p.suffix in (".h", ".cpp"))
    for file in files:
        digest.update(file.name.encode() + file.read_bytes())
    folder = _root() / f"runtime-{digest.hexdigest()[:16]}"
    if (folder / "complete").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        if file.suffix == ".h":
            _write(folder / file.name, file.read_text())
    level = "-O1" if _wide_vectors() else "-O2"
    jobs: list[tuple[list[str], Path]] = [
        ([*_FLAGS, "-O3", "-c", str(_RUNTIME / f"{n}.cpp")], folder / f"{n}.o") for n in (*_COMMON, "memory")
    ]
    jobs.append(([*_FLAGS, "-O3", "-DKW_CHECKED", "-c", str(_RUNTIME / "memory.cpp")], folder / "checked.o"))
    jobs.append(([*_FLAGS, level, "-fno-ipa-sra", "-x", "c++-header", str(folder / "kernel.h")], folder / "kernel.h.gch"))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(lambda job: _compile(*job), jobs))
    _write(folder / "complete", "")
    return folder


def compile_library(arguments: list[str], folder: str, name: str) -> Path:
    """A library of the host side, built by `arguments` where it is not there yet."""
    place = _root() / f"{folder}-r" / name
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        _compile(arguments, place)
    return place


def _root() -> Path:
    return cache_folder() / "gpu"


def _compiler() -> str:
    found = shutil.which(os.environ.get("CXX", "g++"))
    if found is None:
        raise ToolMissing("g++", "executing PTX on the CPU", "apt install g++")
    return found


def _compile(arguments: list[str], to: Path) -> None:
    """Run the compiler; the file appears whole or not at all."""
    with tempfile.NamedTemporaryFile(dir=to.parent, prefix=to.name, delete=False) as made:
        temporary = Path(made.name)
    try:
        result = subprocess.run([_compiler(), *arguments, "-o", str(temporary)], capture_output=True, text=True, check=False)
        if result.returncode:
            lines = [line for line in result.stderr.splitlines() if "error" in line] or result.stderr.splitlines()
            raise RuntimeError(f"the translation of PTX did not build: {' | '.join(lines[:3])}")
        temporary.chmod(0o755)  # sandboxed processes of another user read it
        temporary.replace(to)
    finally:
        temporary.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)


@functools.lru_cache(maxsize=1)
def _processor() -> str:
    """What `-march=native` depends on: a cache that moves to another machine must not run there."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return os.uname().machine
    return "\n".join(sorted({line for line in lines if line.startswith(("flags", "Features", "model name"))}))


def _wide_vectors() -> bool:
    return " avx512bw" in _processor() and " avx512dq" in _processor()
