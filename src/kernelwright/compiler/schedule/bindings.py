"""What an axis of a nest is at a place in the kernel: a number that a loop counts, or a tile axis that starts somewhere and has an extent.

Statements in the making stand in nested `Block`s, each of which says which bindings begin to hold in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from kernelwright.compiler.graph.index_maps import LoopAxis
from kernelwright.compiler.graph.symbolic import Extent
from kernelwright.compiler.schedule.scalar import Expr
from kernelwright.compiler.schedule.separable import Separated
from kernelwright.sketch import nodes
from kernelwright.sketch.nodes import FromIndex, Index, Int, Number, Tile


@dataclass(frozen=True)
class Loop:
    """The axis is a number here."""

    index: Index
    largest: Extent


@dataclass(frozen=True)
class Dim:
    """The axis runs along tile axis `dim`, from `start`, over `extent` elements. `largest` is the largest value it takes
    anywhere, which exceeds the axis's range when the last tile sticks out."""

    dim: int
    start: Index
    extent: Index
    largest: Extent
    step: Index = Int(1)  # noqa: RUF009  (frozen)


Binding = Loop | Dim


def integer_tile(index: Index) -> Tile:
    """An integer in arithmetic on tiles."""
    return Number(index.value) if isinstance(index, Int) else FromIndex(index)


@dataclass
class Block:
    """A list of statements in the making. `bindings` are those that begin to hold here."""

    bindings: dict[LoopAxis, Binding]
    parent: Block | None = None
    statements: list[nodes.Statement] = field(default_factory=list)
    tiles: dict[Expr, tuple[Tile, int]] = field(default_factory=dict)

    def lookup(self, loop_axis: LoopAxis) -> Binding | None:
        block: Block | None = self
        while block is not None:
            if loop_axis in block.bindings:
                return block.bindings[loop_axis]
            block = block.parent
        return None

    def home(self, free: frozenset[LoopAxis]) -> Block:
        """The outermost block in which all these axes are bound as they are here."""
        block = self
        while block.parent is not None and not any(a in block.bindings for a in free):
            block = block.parent
        return block


@dataclass(frozen=True)
class LoopedReduce:
    """How a reduction whose axes are not tile axes is run: opens the loops over its axes, outermost first, and calls the body."""

    run: Callable[[Block, Callable[[Block], None]], None]
    loop_axes: tuple[LoopAxis, ...] = ()


@dataclass(frozen=True)
class LineReduce:
    """How a reduction over windows is run in lines: loops over the rows of a window, then over its columns."""

    how: Separated
    rows: LoopedReduce
    columns: LoopedReduce
