"""Triton without a GPU: what the judge's sandboxed process needs, imported before the sandbox closes (see `OffDeviceRuntime`).

Numbers come from Triton's interpreter, resources from its compiler: the interpreter accepts what the compiler does not (tiles that
are too small, Python objects, races), so a kernel counts only when both accept it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from kernelwright.compiler.backends.triton import aot
from kernelwright.compiler.backends.triton.ascend.lower import REMARKS
from kernelwright.compiler.backends.triton.interpreter import patches
from kernelwright.compiler.offdevice.redirect import Redirect, host_work
from kernelwright.compiler.offdevice.redirect import install as redirect


def install(target: Mapping[str, Any]) -> None:
    """Before the kernel file is loaded."""
    os.environ["TRITON_INTERPRET"] = "1"
    # The default changes between releases of Triton: fused multiply-adds, as nvcc has them.
    os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"
    redirect(target)
    patches.teach(target)


def context(*, calling: bool) -> Any:
    """Around foreign code."""
    return Redirect(calling=calling)


def launches() -> int:
    """Kernels launched so far."""
    return patches.RECORD.count


def compile_for(target: Mapping[str, Any]) -> Mapping[str, Any]:
    """Compile what was launched."""
    return aot.compile_launches(target)


def notes() -> list[str]:
    """How it was executed, where that is not what the device does."""
    record, told = patches.RECORD, []
    if record.tf32:
        told.append(
            "tl.dot multiplies fp32 tiles in tf32 on the device unless input_precision is 'ieee'; the interpreter used fp32"
        )
    if record.autotuned:
        told.append("autotuned kernels ran with the first configuration that fits; nothing was measured")
    if record.brain:
        told.append("bf16 arithmetic was done in fp32 and rounded after each operation")
    return [*told, *REMARKS]


__all__ = ["compile_for", "context", "host_work", "install", "launches", "notes"]
