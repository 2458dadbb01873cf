"""Builds of the candidate's process: nvcc calls become emulator builds, libraries that they made become checked ones.

In: `install()`, once. From then on `subprocess` gives whoever runs nvcc a finished build, `ctypes.CDLL` opens emulated libraries
with their checks, and `Tensor.data_ptr` tells the emulator how far the memory behind the pointer reaches. Sources are kept for
the real compiler (ahead.py).
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from kernelwright.compiler.backends.cuda_c.emulator import build as emulator
from kernelwright.compiler.backends.cuda_c.emulator.library import MEMORY, Emulated, Launched
from kernelwright.compiler.offdevice.redirect import on_device
from kernelwright.core.folders import cache_folder

RUNTIME = emulator.runtime(str(cache_folder("cuda_c")))
"""Compiled in the judge's template, so that no candidate waits for it, and none can touch it."""
VERSION = "nvcc: NVIDIA (R) Cuda compiler driver\\nCuda compilation tools, release 13.0, V13.0.0 (emulated)"
FAST = re.compile(r"\b(__(?:exp|exp10|log|log2|log10|sin|cos|tan|pow|tanh)f|__fdividef|__frsqrt_rn|use_fast_math)\b")

SOURCES: list[tuple[str, tuple[str, ...]]] = []
"""Each CUDA source built so far, with the author's -D and -I flags."""
_libraries: list[Emulated] = []
_Popen, _CDLL, _which = subprocess.Popen, ctypes.CDLL, shutil.which
_data_ptr = torch.Tensor.data_ptr


def install() -> None:
    """Redirect compilers and loaders, for good: a candidate's process has no other use."""
    subprocess.Popen = Popen  # type: ignore[misc]
    ctypes.CDLL = load_library  # type: ignore[assignment, misc]
    ctypes.cdll._dlltype = load_library  # type: ignore[attr-defined]
    shutil.which = which  # type: ignore[assignment]
    torch.Tensor.data_ptr = data_ptr
    os.environ.setdefault("CUDA_HOME", "/usr/local/cuda")


def folder() -> Path:
    """Where the emulator's headers and builds of this process go."""
    place = Path(tempfile.gettempdir()) / "kernelwright-emulator"
    place.mkdir(exist_ok=True)
    return place


def build(source: str, output: Path, flags: Sequence[str] = (), after: str = "") -> Path:
    """Builds a source and remembers it for the real compiler."""
    chosen = note(source, flags)
    return emulator.build(source, output, folder=folder(), flags=chosen, ready=RUNTIME, after=after)


def note(source: str, flags: Sequence[str]) -> tuple[str, ...]:
    """Keeps a source for the real compiler; gives the flags that concern it."""
    chosen = tuple(flag for flag in flags if re.match(r"-[DIU]", flag))
    if (source, chosen) not in SOURCES:
        SOURCES.append((source, chosen))
    return chosen


# ---------------------------------------------------------------- nvcc in a subprocess


class Popen(subprocess.Popen):  # type: ignore[type-arg]
    """A process; one that would be nvcc finds its work done and only reports how it went."""

    def __init__(self, args: Any, *rest: Any, **options: Any) -> None:
        words = _nvcc_words(args, bool(options.get("shell")))
        if words is not None:
            args = _report(*_compile(words))
            options["shell"] = False
            options.pop("executable", None)
        super().__init__(args, *rest, **options)


def _nvcc_words(args: Any, shell: bool) -> list[str] | None:
    """The words of an nvcc command line, or None for any other program."""
    if isinstance(args, str | bytes | os.PathLike):
        import shlex

        text = os.fsdecode(args)
        words = shlex.split(text) if shell else [text]
    else:
        words = [os.fsdecode(word) for word in args]
    return words[1:] if words and os.path.basename(words[0]) == "nvcc" else None


def _compile(words: list[str]) -> tuple[int, str]:
    if any(word in ("--version", "-V") for word in words):
        return 0, VERSION
    sources, flags, output = [], [], "a.out"
    k = 0
    while k < len(words):
        word = words[k]
        if word in ("-o", "--output-file"):
            k += 1
            output = words[k]
        elif word in ("-I", "-D", "-isystem"):
            k += 1
            flags.append(("-I" if word != "-D" else word) + words[k])
        elif word.startswith(("-I", "-D", "-U")):
            flags.append(word)
        elif word.endswith((".cu", ".cpp", ".cc", ".cxx")) and not word.startswith("-"):
            sources.append(word)
        k += 1
    try:
        text = "\n".join(Path(source).read_text(encoding="utf-8") for source in sources)
        build(text, Path(output), flags)
    except (emulator.BuildFailed, OSError) as error:
        return 1, str(error)
    return 0, ""


def _report(code: int, text: str) -> list[str]:
    stream = "" if code == 0 else ">&2"
    return ["/bin/sh", "-c", f'printf "%b\\n" "$1" {stream}; exit {code}', "nvcc", text] if text else ["/bin/true"]


def which(name: Any, *args: Any, **kwargs: Any) -> Any:
    """nvcc is always there: the emulator answers for it."""
    return "/usr/local/cuda/bin/nvcc" if name == "nvcc" else _which(name, *args, **kwargs)


def real_run(command: list[str], seconds: float) -> tuple[int, str]:
    """Runs a program as it is, nvcc included: exit code and both outputs."""
    with _Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            said, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return 1, f"{command[0]} did not finish within {seconds:.0f} s"
        return process.returncode, said


# ---------------------------------------------------------------- libraries and memory


def load_library(name: Any = None, *args: Any, **kwargs: Any) -> Any:
    """`ctypes.CDLL`: libraries with the emulator inside are checked after every call."""
    if isinstance(name, str | os.PathLike) and _has_emulator(os.fsdecode(name)):
        library = Emulated(os.fsdecode(name), *args, **kwargs)
        _libraries.append(library)
        return library
    return _CDLL(name, *args, **kwargs)


def _has_emulator(path: str) -> bool:
    try:
        return b"libkwruntime.so" in Path(path).read_bytes()
    except OSError:
        return False


def data_ptr(tensor: Any) -> int:
    """The pointer; the emulator learns how far a kernel may go from it."""
    pointer = int(_data_ptr(tensor))
    remember(tensor, pointer)
    return pointer


def remember(tensor: Any, pointer: int) -> None:
    if pointer and tensor.layout is torch.strided and tensor.numel():
        span = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
        shape = "x".join(map(str, tensor.shape))
        storage = tensor.untyped_storage().data_ptr()
        side = "" if on_device(tensor) else "!"
        MEMORY.add(storage, pointer, span * tensor.element_size(), f"{side}tensor {shape}")


def begin_call() -> None:
    """Tensors of an earlier call may be gone: what lies there now must be given again."""
    MEMORY.forget()


def launch_count() -> int:
    return _libraries[-1].launch_count() if _libraries else 0  # they share one runtime


def library_calls() -> list[str]:
    """Routines of libraries that host code called, named like operators."""
    return [f"cublas::{name}" for name in _libraries[-1].library_calls()] if _libraries else []


def launched() -> list[Launched]:
    """The distinct launches of all libraries."""
    return _libraries[-1].launches() if _libraries else []


def notes() -> list[str]:
    """What of the sources the emulator does otherwise than the device."""
    fast = sorted({name for source, flags in SOURCES for name in FAST.findall(source + " ".join(flags))})
    return [f"{', '.join(fast)}: less accurate on the device than in the emulator"] if fast else []
