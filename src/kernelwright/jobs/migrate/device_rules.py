"""Rules that a device has of its own, beyond sizes: sketches and a target's name in, remarks out; what cannot be is refused.

Ascend's cores have no float64 units and no 64-bit vector arithmetic, move memory in blocks of 32 bytes, and take as many programs as
there are cores (the documentation of triton-ascend); a grid larger than that is walked by the runtime, core after core.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from kernelwright.compiler.backends.triton.ascend import environment
from kernelwright.core.errors import KernelwrightError
from kernelwright.sketch.index import evaluate
from kernelwright.sketch.nodes import DType, Sketch
from kernelwright.target import Target

BLOCK_BYTES = 32
MOST_PROGRAMS = 65535
"""Programs in one launch that Ascend's runtime accepts."""


class NotOnDevice(KernelwrightError):
    """The device cannot run what the kernel asks for."""

    exit_code = 1


def adapted(sketches: Sequence[Sketch], target: str) -> list[str]:
    """Remarks for the report; NotOnDevice where a rule cannot be kept."""
    sheet = Target.load(target)
    return [remark for sketch in sketches for remark in _ascend(sketch, sheet)] if sheet.kind == "ascend" else []


def _ascend(sketch: Sketch, sheet: Target) -> list[str]:
    wide = [tensor.name for tensor in sketch.tensors if tensor.dtype is DType.f64]
    if wide:
        raise NotOnDevice(f"{', '.join(wide)} of {sketch.name} are float64, which {sheet.title} has no units for")
    remarks = []
    sizes = {s.name: s.value for s in sketch.sizes} | {t.name: t.value for t in sketch.tunables}
    for tensor in sketch.tensors:
        shape = [int(evaluate(extent, sizes)) for extent in tensor.shape]
        row = (shape[-1] if shape else 1) * tensor.dtype.size
        if row % BLOCK_BYTES and math.prod(shape) > 1:
            remarks.append(
                f"rows of {tensor.name} are {row} bytes, no multiple of {BLOCK_BYTES}: their copies are not aligned on Ascend"
            )
        if tensor.dtype is DType.i64 and tensor.role in ("input", "output"):
            remarks.append(f"{tensor.name} is int64, which Ascend's vector units compute in scalars")
    if environment.find() is None:
        remarks.append(f"not checked by lowering: triton-ascend is missing; to add it: {environment.how_to_add()}")
    return remarks
