"""TileLang without a GPU: what the judge's sandboxed process needs, imported before the sandbox closes (see `OffDeviceRuntime`).

Kernels are lowered by TileLang, compiled by nvcc and executed as compiled (`compiled`). Our interpreter of tile programs
(interpreter.py) is for targets that are not NVIDIA's, for machines without nvcc, and for kernels whose PTX has something that is not
executed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.compiler.backends.tilelang import aot, compiled, launch
from kernelwright.compiler.offdevice import profiling
from kernelwright.compiler.offdevice.redirect import Redirect, host_work
from kernelwright.compiler.offdevice.redirect import install as redirect


def install(target: Mapping[str, Any]) -> None:
    """Before the kernel file is loaded. A sheet says how (`execution`) where it was decided; else its kind does."""
    redirect(target)
    if target["kind"] == "cuda" and target.get("execution", "emulator") == "emulator":
        compiled.install()
        launch.teach(compiled.made)
    else:
        launch.teach()


class _Context(Redirect):
    def __enter__(self) -> Any:
        if self.calling:
            compiled.begin_call()
        return super().__enter__()


def context(*, calling: bool) -> Any:
    """Around foreign code."""
    return _Context(calling=calling)


def launches() -> int:
    """Kernels launched so far."""
    return launch.RECORD.count


def compile_for(target: Mapping[str, Any]) -> Mapping[str, Any]:
    """Compile what was launched, and profile the launches of the first call where they were executed."""
    recorder = compiled.STATE.recorder
    return {**aot.compile_launches(target), **(profiling.reply(recorder, target) if recorder is not None else {})}


def notes() -> list[str]:
    """How it was executed, where that is not what the device does."""
    told = []
    if launch.RECORD.executed:
        told.append(f"executed as compiled for sm_{compiled.ARCHITECTURE} with no device")
    if launch.RECORD.tf32:
        told.append("T.gemm multiplies fp32 tiles in tf32 on the device; the interpreter used fp32")
    if launch.RECORD.autotuned:
        told.append("autotuned kernels ran with their first configuration; nothing was measured")
    return told


__all__ = ["compile_for", "context", "host_work", "install", "launches", "notes"]
