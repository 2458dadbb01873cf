"""The compiler run: CUDA source in, a shared library with the emulator inside out.

Kernel code is compiled with every memory access reported (GCC's thread-sanitizer instrumentation, whose calls the emulator answers
itself) and with uninitialised variables filled with garbage. The emulator's own files are read when this module is imported: a
sandboxed process that uses it later cannot read them any more.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from kernelwright.compiler.backends.cuda_c.emulator.rewrite import rewrite

FILES = {
    str(path.relative_to(Path(__file__).parent / "device")): path.read_text(encoding="utf-8")
    for path in sorted((Path(__file__).parent / "device").rglob("*"))
    if path.is_file() and path.suffix in (".h", ".hpp", ".cuh", ".cpp")
}
"""The emulator's headers and runtime by name."""
TORCH_NAMES = (
    *(
        "ATen/cuda/Atomic.cuh",
        "ATen/cuda/CUDABlas.h",
        "ATen/cuda/CUDADataType.h",
        "ATen/cuda/CUDAEvent.h",
        "ATen/cuda/DeviceUtils.cuh",
    ),
    *(
        "ATen/TensorUtils.h",
        "ATen/ceil_div.h",
        "ATen/core/Tensor.h",
        "ATen/core/TensorAccessor.h",
        "ATen/native/cuda/KernelUtils.cuh",
    ),
    *("c10/core/DeviceGuard.h", "c10/core/TensorOptions.h", "c10/cuda/CUDACachingAllocator.h", "c10/cuda/CUDAMacros.h"),
    *("c10/cuda/CUDAMathCompat.h", "c10/macros/Macros.h", "c10/util/ArrayRef.h", "torch/library.h", "torch/script.h"),
)
STD_NAMES = (
    *("cuda/cmath", "cuda/functional", "cuda/std/algorithm", "cuda/std/array", "cuda/std/cassert", "cuda/std/climits"),
    *("cuda/std/cmath", "cuda/std/complex", "cuda/std/cstddef", "cuda/std/cstdint", "cuda/std/functional", "cuda/std/limits"),
    *("cuda/std/numeric", "cuda/std/optional", "cuda/std/tuple", "cuda/std/type_traits", "cuda/std/utility"),
)
FILES |= dict.fromkeys(TORCH_NAMES, "#pragma once\n#include <torch/kw_torch.h>\n")
FILES |= dict.fromkeys(STD_NAMES, "#pragma once\n#include <kw_cuda_std.h>\n")
"""Headers that people name, of which one of ours holds all that there is."""
FLAGS = ["-std=c++17", "-fPIC", "-march=native", "-fno-math-errno", "-w"]
KERNEL_FLAGS = [
    "-O2", "-g1", "-fsanitize=thread", "--param", "tsan-instrument-func-entry-exit=0", "-ftrivial-auto-var-init=pattern",
    "-D__CUDA_NO_TORCH__=1",
]  # fmt: skip
RUNTIME_FLAGS = ["-O2", "-fopenmp", "-shared"]
SECONDS = 300.0
ERRORS_SHOWN = 12


class BuildFailed(RuntimeError):
    """The CUDA source does not compile; the text names the author's lines."""


def digest() -> str:
    """What the emulator itself is: part of every cache key."""
    return hashlib.sha256("".join(f"{name}\0{text}\0" for name, text in FILES.items()).encode()).hexdigest()[:16]


def compiler() -> str:
    """The C++ compiler; only GCC reports accesses the way the emulator reads them."""
    return os.environ.get("KERNELWRIGHT_GXX", "g++")


def unpack(folder: Path) -> Path:
    """The emulator's files on disk, in a folder of their own."""
    target = folder / f"emulator-{digest()}"
    if not (target / "complete").exists():
        for name, text in FILES.items():
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        (target / "complete").touch()
    return target


@cache
def runtime(folder: str | None = None) -> bytes:
    """The runtime as a library, one for a process whatever it loads; made once (a judge's template hands it to all its candidates)
    and kept in `folder`."""
    place = Path(folder) / f"emulator-runtime-{digest()}.so" if folder else None
    if place is not None and place.exists():
        return place.read_bytes()
    with tempfile.TemporaryDirectory() as work:
        device = unpack(Path(work))
        built = Path(work) / "runtime.so"
        _run([compiler(), *FLAGS, *RUNTIME_FLAGS, str(device / "runtime.cpp"), "-o", str(built)], "the emulator")
        content = built.read_bytes()
    if place is not None:
        place.parent.mkdir(parents=True, exist_ok=True)
        fresh = place.with_suffix(f".{os.getpid()}")
        fresh.write_bytes(content)
        os.replace(fresh, place)
    return content


def translate(source: str) -> str:
    """The C++ text that is compiled: the emulator's header, then the author's lines under their own numbers."""
    return f'#include "kw_cuda.h"\n#include "cuda_runtime.h"\n#line 1 "kernel.cu"\n{rewrite(source)}\n'


def build(
    source: str, output: Path, *, folder: Path, flags: Sequence[str] = (), ready: bytes | None = None, after: str = ""
) -> Path:
    """Compiles a CUDA source into the shared library `output`; `folder` is for the emulator's files, `flags` are the author's
    (-D and -I), `ready` is the runtime if it is at hand, `after` is C++ that is appended as it is."""
    device = unpack(folder)
    beside = device / "libkwruntime.so"
    if not beside.exists():
        beside.write_bytes(ready if ready is not None else runtime())
    with tempfile.TemporaryDirectory(dir=folder) as work:
        text = Path(work) / "kernel.cpp"
        text.write_text(translate(source) + after, encoding="utf-8")
        kernel = Path(work) / "kernel.o"
        common = [*FLAGS, *KERNEL_FLAGS, f"-I{device}", *flags]
        _run([compiler(), *common, "-c", str(text), "-o", str(kernel)], "the CUDA source", work)
        built = Path(work) / "library.so"
        link = [compiler(), "-shared", str(kernel), str(beside), "-o", str(built), "-Wl,-Bsymbolic"]
        _run(link, "the CUDA library", work)
        output.parent.mkdir(parents=True, exist_ok=True)
        fresh = output.with_name(f"{output.name}.{os.getpid()}")
        shutil.copyfile(built, fresh)  # another file system, perhaps
        os.replace(fresh, output)
    return output


def _run(command: list[str], what: str, work: str = "") -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except FileNotFoundError:
        raise BuildFailed(
            f"{command[0]} was not found; it is needed to emulate CUDA. Install it with: apt install g++"
        ) from None
    except subprocess.TimeoutExpired:
        raise BuildFailed(f"{what} did not compile within {SECONDS:.0f} s") from None
    if done.returncode:
        raise BuildFailed(f"{what} does not compile for the emulator:\n{readable(done.stderr, work)}")


def readable(errors: str, work: str = "") -> str:
    """The compiler's errors without the emulator's own names."""
    lines = [
        line for line in errors.splitlines() if ": error:" in line or ": fatal error:" in line or "undefined reference" in line
    ]
    text = "\n".join(lines[:ERRORS_SHOWN]) or errors[-2000:]
    text = re.sub(r"\bkw_(threadIdx|blockIdx|blockDim|gridDim)_([xyz])\(\)", r"\1.\2", text)
    return text.replace(f"{work}/", "") if work else text
