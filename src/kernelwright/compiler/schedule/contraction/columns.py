"""The columns of a product's right operand, as a schedule walks them: as they lie, or in panels that another kernel made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kernelwright.compiler.graph.symbolic import Extent
from kernelwright.sketch import nodes
from kernelwright.sketch.nodes import Kernel, Tensor, Tile


@dataclass(frozen=True)
class Columns:
    """How the tiles of B along n are walked: the loop (variable, end, step), the first column of a tile, the tile at (k, deep), and the
    kernels and tensors that this needs."""

    var: str
    stop: Extent
    step: int
    first: nodes.Index
    load: Callable[[str, int], Tile]
    kernels: tuple[Kernel, ...] = ()
    tensors: tuple[Tensor, ...] = ()
