"""Triton without a GPU: what the judge's sandboxed process needs, imported before the sandbox closes (see `OffDeviceRuntime`).

A kernel for a CUDA target is compiled for it and its PTX is executed (`compiled`). Triton's interpreter (`interpreted`) is for AMD and
Ascend, for machines without g++, and for kernels whose PTX has something that is not executed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from kernelwright.compiler.backends.triton import copies, interpreted
from kernelwright.compiler.backends.triton.ascend.lower import REMARKS
from kernelwright.compiler.offdevice.redirect import Redirect, host_work
from kernelwright.compiler.offdevice.redirect import install as redirect

with copies.compiling():
    from kernelwright.compiler.backends.triton import compiled

_way: ModuleType = interpreted


def install(target: Mapping[str, Any]) -> None:
    """Before the kernel file is loaded. A sheet says how (`execution`) where it was decided; else its kind does."""
    global _way
    # The default changes between releases of Triton: fused multiply-adds, as nvcc has them.
    os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"
    emulated = target["kind"] == "cuda" and target.get("execution", "emulator") == "emulator"
    _way = compiled if emulated else interpreted
    redirect(target)
    _way.install(target)


class _Context(Redirect):
    def __enter__(self) -> Any:
        if self.calling:
            _way.begin_call()
        return super().__enter__()


def context(*, calling: bool) -> Any:
    """Around foreign code."""
    return _Context(calling=calling)


def launches() -> int:
    """Kernels launched so far."""
    return int(_way.launches())


def compile_for(target: Mapping[str, Any]) -> Mapping[str, Any]:
    """Compile what was launched."""
    found: Mapping[str, Any] = _way.compile_for(target)
    return found


def notes() -> list[str]:
    """How it was executed, where that is not what the device does."""
    return [*_way.notes(), *REMARKS]


__all__ = ["compile_for", "context", "host_work", "install", "launches", "notes"]
