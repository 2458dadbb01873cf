"""TileLang without a GPU: what the judge's sandboxed process needs, imported before the sandbox closes (see `OffDeviceRuntime`).

Numbers come from our interpreter of tile programs (interpreter.py), resources from TileLang's own lowering and nvcc (ahead.py): a kernel
counts only when both accept it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.compiler.backends.tilelang import aot, launch
from kernelwright.compiler.offdevice.redirect import Redirect, host_work
from kernelwright.compiler.offdevice.redirect import install as redirect


def install(target: Mapping[str, Any]) -> None:
    """Before the kernel file is loaded."""
    redirect(target)
    launch.teach()


def context(*, calling: bool) -> Any:
    """Around foreign code."""
    return Redirect(calling=calling)


def launches() -> int:
    """Kernels launched so far."""
    return launch.RECORD.count


def compile_for(target: Mapping[str, Any]) -> Mapping[str, Any]:
    """Compile what was launched."""
    return aot.compile_launches(target)


def notes() -> list[str]:
    """How it was executed, where that is not what the device does."""
    told = []
    if launch.RECORD.tf32:
        told.append("T.gemm multiplies fp32 tiles in tf32 on the device; the interpreter used fp32")
    if launch.RECORD.autotuned:
        told.append("autotuned kernels ran with their first configuration; nothing was measured")
    return told


__all__ = ["compile_for", "context", "host_work", "install", "launches", "notes"]
