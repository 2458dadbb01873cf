"""C libraries on disk: a text is compiled once for a compiler and a machine, and loaded by whoever asks next.

In: a `Library` of the C++ language. Out: its path, or the loaded functions. Everything lies under the cache folder, by a hash of what was
compiled and how; a file appears under its name only when it is whole, so that processes may build the same at the same time.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import kernelwright
from kernelwright.core.errors import ToolMissing
from kernelwright.core.folders import cache_folder


class BuildFailed(Exception):
    """The compiler refused a text of ours; the first lines of what it said."""


def digest(*parts: object) -> str:
    """A name for what these parts make."""
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:32]


@functools.cache
def machine() -> str:
    """The CPU, the compiler and the versions that a library or a decision holds for."""
    import torch

    cpu = ""
    with open("/proc/cpuinfo") as file:
        cpu = "".join(
            line for line in file.read().split("\n\n")[0].splitlines(True) if line.startswith(("model name", "flags"))
        )
    return digest(cpu, os.cpu_count(), compiler(), kernelwright.__version__, torch.__version__, _sources())


@functools.cache
def compiler() -> str:
    """The compiler's own first line."""
    name = os.environ.get("CXX", "g++")
    try:
        done = subprocess.run([name, "--version"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise ToolMissing(name, "building kernels in C++", "apt install g++") from None
    return done.stdout.splitlines()[0] if done.stdout else name


def _sources() -> str:
    """The state of the compiler's files: someone who works on them must not get yesterday's libraries."""
    root = Path(kernelwright.__file__).parent
    files = [path for room in ("compiler", "api") for path in sorted((root / room).rglob("*.py"))]
    return digest(*((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in files))


def build(text: str, flags: Sequence[str]) -> Path:
    """The path of the built library."""
    folder = cache_folder("libraries")
    library = folder / f"{digest(text, *flags, machine())}.so"
    if not library.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as work:
            source, built = Path(work, "kernel.cpp"), Path(work, "kernel.so")
            source.write_text(text)
            done = subprocess.run(
                [os.environ.get("CXX", "g++"), *flags, str(source), "-o", str(built)],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise BuildFailed("\n".join(done.stderr.splitlines()[:5]))
            os.replace(built, library)
    return library


@functools.cache
def load(path: Path) -> ctypes.CDLL:
    """The library in this process; the GIL is released while it runs."""
    return ctypes.CDLL(str(path))


def write(path: Path, text: str) -> None:
    """A small file that appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    os.replace(name, path)
