"""Builds of the candidate's process: nvcc calls become programs for the GPU in software, libraries that they made are checked.

In: `install(target)`, once. From then on `subprocess` gives whoever runs nvcc a finished build against our CUDA runtime, `ctypes.CDLL`
opens such libraries with errors as exceptions, and `Tensor.data_ptr` tells the device how far the memory behind the pointer
reaches. `device()` is the one device of the process: it executes, counts and records launches.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from kernelwright.compiler.backends.cuda_c import host_api
from kernelwright.compiler.offdevice import cuda_build
from kernelwright.compiler.offdevice.nvcc import ADD, NVCC
from kernelwright.compiler.offdevice.redirect import on_device
from kernelwright.core.errors import GpuError
from kernelwright.gpu.build import keep_kernels_in, runtime_folder
from kernelwright.gpu.host import Device, Launch
from kernelwright.gpu.profile import Recorder

CUDART = cuda_build.cudart() if NVCC and shutil.which("g++") and runtime_folder() else None
"""Our CUDA runtime, and the machine's: built where no candidate can touch them, and before one waits for them."""
CHECKED_SECONDS = 4.0
"""Launches are checked until they took so long, in the first call of forward always; what comes after runs plain."""
OLD_CUB = re.compile(r"\bcub::(Sum|Max|Min|Difference|Equality|Inequality)\b")
AS_THEY_ARE = ("--version", "-V", "-h", "--help", "--list-gpu-arch", "--list-gpu-code", "-ptx", "--ptx", "-cubin", "--cubin")
MOST_DISTINCT = 64

_device: Device | None = None
_target: Mapping[str, Any] = {}
_built: dict[str, tuple[tuple[Path, ...], tuple[str, ...]]] = {}
_seen: dict[tuple[Any, ...], Launch] = {}
recorder = Recorder()
"""The launches of the first call of forward, for a profile."""
_spans: dict[int, tuple[int, int]] = {}
_Popen, _CDLL, _which = subprocess.Popen, ctypes.CDLL, shutil.which
_data_ptr = torch.Tensor.data_ptr


def install(target: Mapping[str, Any], device: Device | None = None) -> None:
    """Redirect compilers and loaders, for good: a candidate's process has no other use. `device` is another one than the target's."""
    global _device, _target
    _target = target
    if CUDART is not None:
        _device = device or Device(cuda_build.device_attributes(target), title=str(target.get("title", "")), checks=True)
        _device.open(CUDART)
        _device.watch(_note)
        keep_kernels_in(folder())
    subprocess.Popen = Popen  # type: ignore[misc]
    ctypes.CDLL = load_library  # type: ignore[assignment, misc]
    ctypes.cdll._dlltype = load_library  # type: ignore[attr-defined]
    shutil.which = which  # type: ignore[assignment]
    torch.Tensor.data_ptr = data_ptr
    os.environ.setdefault("CUDA_HOME", "/usr/local/cuda")


def device() -> Device:
    """The device of this process."""
    if _device is None:
        raise GpuError(f"there is no nvcc, which compiles CUDA-C: {ADD}")
    return _device


def folder() -> Path:
    """Where headers and builds of this process go."""
    place = Path(tempfile.gettempdir()) / "kernelwright-cuda"
    place.mkdir(exist_ok=True)
    return place


def architecture() -> int:
    """What kernels are compiled for here: the target's, or the newest that is executed."""
    return cuda_build.architecture(_target)


def build(sources: Sequence[Path], output: Path, flags: Sequence[str] = ()) -> Path:
    """Builds sources, and remembers them for further targets."""
    device()
    chosen = header_flags(sources, flags)
    cuda_build.build(sources, output, arch=architecture(), flags=chosen, runtime=CUDART)
    _built[str(output)] = (tuple(sources), tuple(chosen))
    return output


def header_flags(sources: Sequence[Path], flags: Sequence[str]) -> list[str]:
    """An author's flags, and where the headers of ours are."""
    headers = host_api.unpack(folder() / "headers")
    more = [f"-I{headers}"]
    if any(OLD_CUB.search(source.read_text(encoding="utf-8", errors="replace")) for source in sources):
        more += ["-include", str(headers / host_api.CUB_NAMES)]
    return [*more, *flags]


def built() -> list[tuple[tuple[Path, ...], tuple[str, ...]]]:
    """Sources and flags of each build so far."""
    return list(_built.values())


# ---------------------------------------------------------------- nvcc in a subprocess


class Popen(subprocess.Popen):  # type: ignore[type-arg]
    """A process; one that would be nvcc finds its work done and only reports how it went."""

    def __init__(self, args: Any, *rest: Any, **options: Any) -> None:
        words = _nvcc_words(args, bool(options.get("shell")))
        if words is not None and NVCC is not None and any(word in AS_THEY_ARE for word in words):
            args = [NVCC, *words]
        elif words is not None:
            args = _report(*_compile(words, options.get("cwd")))
        if words is not None:
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
    return words[1:] if words and os.path.basename(words[0]) == "nvcc" and words[0] != NVCC else None


def _compile(words: list[str], place: Any) -> tuple[int, str]:
    sources, flags, output = [], [], "a.out"
    root = Path(os.fsdecode(place)) if place else Path.cwd()
    k = 0
    while k < len(words):
        word = words[k]
        if word in ("-o", "--output-file"):
            k += 1
            output = words[k]
        elif word in ("-I", "-D", "-isystem"):
            k += 1
            flags.append(("-I" if word != "-D" else word) + words[k])
        elif word.endswith((".cu", ".cpp", ".cc", ".cxx")) and not word.startswith("-"):
            sources.append(root / word)
        else:
            flags.append(word)
        k += 1
    try:
        build(sources, root / output, [flag for flag in flags if not flag.startswith("-l")])
    except (GpuError, OSError) as error:
        return 1, str(error)
    return 0, ""


def _report(code: int, text: str) -> list[str]:
    stream = "" if code == 0 else ">&2"
    return ["/bin/sh", "-c", f'printf "%s\\n" "$1" {stream}; exit {code}', "nvcc", text] if text else ["/bin/true"]


def which(name: Any, *args: Any, **kwargs: Any) -> Any:
    """nvcc is always there: we answer for it."""
    return "/usr/local/cuda/bin/nvcc" if name == "nvcc" else _which(name, *args, **kwargs)


# ---------------------------------------------------------------- libraries and memory


class CudaLibrary(ctypes.CDLL):
    """A library linked to our CUDA runtime; its functions raise what their launches ran into."""

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if not name.startswith("_"):
            found.errcheck = _checked
        return found

    def __getitem__(self, name: Any) -> Any:
        found = super().__getitem__(name)
        found.errcheck = _checked
        return found


def _checked(result: Any, function: Any, arguments: Any) -> Any:
    device().raise_pending()
    return result


def load_library(name: Any = None, *args: Any, **kwargs: Any) -> Any:
    """`ctypes.CDLL`: libraries that call our CUDA runtime are checked after every call."""
    if isinstance(name, str | os.PathLike) and _calls_cuda(os.fsdecode(name)):
        return CudaLibrary(os.fsdecode(name), *args, **kwargs)
    return _CDLL(name, *args, **kwargs)


def _calls_cuda(path: str) -> bool:
    try:
        return CUDART is not None and CUDART.name.encode() in Path(path).read_bytes()
    except OSError:
        return False


def data_ptr(tensor: Any) -> int:
    """The pointer; the device learns how far a kernel may go from it."""
    pointer = int(_data_ptr(tensor))
    remember(tensor, pointer)
    return pointer


def remember(tensor: Any, pointer: int) -> None:
    """A tensor of the device's memory. Tensors of one storage count together: a kernel may walk from one view into another."""
    if not pointer or tensor.layout is not torch.strided or not tensor.numel() or not on_device(tensor) or _device is None:
        return
    span = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    begin, end = pointer, pointer + span * tensor.element_size()
    storage = tensor.untyped_storage().data_ptr()
    known = _spans.get(storage)
    if known is not None:
        begin, end = min(begin, known[0]), max(end, known[1])
        if (begin, end) == known:
            return
        _device.memory.remove(known[0])
    _spans[storage] = (begin, end)
    _device.memory.add(begin, end - begin, f"tensor {'x'.join(map(str, tensor.shape))}")


def begin_call() -> None:
    """Tensors of an earlier call may be gone: what lies there now must be given again."""
    if _device is None:
        return
    recorder.begin()
    for begin, _ in _spans.values():
        _device.memory.remove(begin)
    _spans.clear()
    if _device.launches and _device.seconds > CHECKED_SECONDS:
        _device.checks = False


def _note(launch: Launch) -> None:
    recorder.see_launch(launch)
    if len(_seen) < MOST_DISTINCT:
        _seen.setdefault((launch.entry, launch.grid, launch.block, launch.shared, id(launch.image)), launch)


def launch_count() -> int:
    """Kernels launched so far."""
    return _device.launches if _device else 0


def library_calls() -> list[str]:
    """Routines of libraries that host code called, named like operators."""
    return [f"cublas::{name}" for name in _device.library_calls()] if _device else []


def launched() -> list[Launch]:
    """The distinct launches."""
    return list(_seen.values())
