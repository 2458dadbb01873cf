"""Our `libcudart`: built once for each toolkit (its headers say how structures lie) and runtime, kept in the cache."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from kernelwright.gpu.build import compile_library

SOURCE = Path(__file__).with_name("cudart.cpp")
NAME = "libkwcudart.so"


@functools.lru_cache(maxsize=4)
def runtime_library(include: Path) -> Path:
    """The shared object that CUDA programs are linked to; `include` is the toolkit's folder of headers."""
    text = SOURCE.read_text()
    version = (include / "cuda_runtime_api.h").read_bytes()
    key = hashlib.sha256(text.encode() + version).hexdigest()[:16]
    arguments = ["-std=gnu++17", "-O1", "-w", "-fPIC", "-shared", f"-I{include}", f"-Wl,-soname,{NAME}", str(SOURCE)]
    return compile_library(arguments, f"cudart-{key}", NAME)
