"""The loops of a nest on a CPU, and what a nest knows of the kernel around it."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelwright.compiler.backends.cpp.codegen_options import CodegenOptions
from kernelwright.compiler.lower.c_family.nest import KernelContext
from kernelwright.sketch.index import Poly


@dataclass
class CpuContext(KernelContext):
    """What a nest needs to know of its kernel on a CPU."""

    streamed: set[str] = field(default_factory=set)  # C names of outputs that are written past the caches
    ahead: tuple[str, Poly, Poly] | None = (
        None  # variable and step of the loop around, and where it goes next: that can be fetched
    )
    steps: dict[str, Poly] = field(default_factory=dict)  # of the loops around, by variable; they begin at multiples of them
    options: CodegenOptions = field(default_factory=CodegenOptions)
    touched: set[str] = field(default_factory=set)  # tensors read in this iteration


@dataclass
class Loop:
    """One loop of the nest: its variable, extent and bounds after clipping."""

    var: str
    axis: int
    extent: Poly
    low: list[str] = field(default_factory=list)
    high: list[str] = field(default_factory=list)
