"""The interpreter's way: for targets whose code is not executed here (AMD, Ascend), and for kernels whose PTX is refused.

Numbers come from Triton's interpreter, resources from its compiler: the interpreter accepts what the compiler does not (tiles that
are too small, Python objects, races), so a kernel counts only when both accept it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from kernelwright.compiler.backends.triton import aot
from kernelwright.compiler.backends.triton.interpreter import patches


def install(target: Mapping[str, Any]) -> None:
    """Before the kernel file is loaded."""
    os.environ["TRITON_INTERPRET"] = "1"
    patches.teach(target)


def begin_call() -> None:
    """A call of forward begins."""


def launches() -> int:
    """Kernels launched so far."""
    return patches.RECORD.count


def compile_for(target: Mapping[str, Any]) -> Mapping[str, Any]:
    """Compile what was launched."""
    return aot.compile_launches(target, patches.RECORD.launches)


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
    return told
