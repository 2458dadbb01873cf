"""What a loop nest computes, and what it knows of the kernel around it.

A root is one thing done with each element of a value: stored in a tensor (`Put`), kept in a tile (`Fill`), reduced into one (`Fold`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelwright.compiler.backends.cpp.codegen_options import CodegenOptions
from kernelwright.compiler.backends.cpp.elements import Index, TensorPlace
from kernelwright.compiler.lower.tile_values import Access, Storage, Value
from kernelwright.sketch.index import Poly, Ranges


@dataclass(eq=False)
class Fill:
    """Stores each element of a value into a kept tile."""

    storage: Storage
    value: Value
    index: Index = ()


@dataclass(eq=False)
class Put:
    """Stores each element into a tensor."""

    tensor: str
    axes: tuple[Access, ...]
    value: Value
    mode: str


@dataclass(eq=False)
class Fold:
    """Reduces a value over `axes` into a kept tile."""

    storage: Storage
    value: Value
    op: str
    axes: tuple[int, ...]


Root = Fill | Put | Fold


@dataclass
class Surroundings:
    """What a nest needs to know of its kernel."""

    tensors: dict[str, TensorPlace]
    ranges: Ranges
    taken: set[str]
    axis_names: list[str]
    used: set[str] = field(default_factory=set)
    streamed: set[str] = field(default_factory=set)  # C names of outputs that are written past the caches
    ahead: tuple[str, Poly, Poly] | None = (
        None  # variable and step of the loop around, and where it goes next: that can be fetched
    )
    steps: dict[str, Poly] = field(default_factory=dict)  # of the loops around, by variable; they begin at multiples of them
    knobs: CodegenOptions = field(default_factory=CodegenOptions)
    touched: set[str] = field(default_factory=set)  # tensors read in this iteration


@dataclass
class Loop:
    """One loop of the nest: its variable, extent and bounds after clipping."""

    var: str
    axis: int
    extent: Poly
    low: list[str] = field(default_factory=list)
    high: list[str] = field(default_factory=list)
