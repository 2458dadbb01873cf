"""What a value of a kernel is while its program is read: an integer expression, a condition, a number, a tile, or a pointer.

Integers stay expressions for as long as they can, because addresses are made of them; they become tiles where they meet data.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from kernelwright.sketch import nodes
from kernelwright.sketch.nodes import DType, Index, Int, Tile

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Ints:
    """An integer for each element, as an expression over loop variables and the tile's axes."""

    index: Index
    shape: Shape
    bits: int = 32


@dataclass(frozen=True)
class Mask:
    """A condition: all of `conditions` are `>= 0`, and `rest` (a bool tile) holds."""

    conditions: tuple[Index, ...]
    shape: Shape
    rest: Data | None = None


@dataclass(frozen=True)
class Num:
    """One float everywhere."""

    value: float
    shape: Shape
    dtype: DType


@dataclass(frozen=True)
class Data:
    """A tile. `actual` are its extents as it stands: 1 where it is only meant to be broadcast to `shape`."""

    node: Tile
    shape: Shape
    actual: Shape
    dtype: DType

    def full(self) -> Tile:
        """The tile with all its extents."""
        return self.node if self.actual == self.shape else nodes.Expand(self.node, tuple(map(Int, self.shape)))


@dataclass(frozen=True)
class Ptr:
    """Addresses in a buffer, in elements."""

    buffer: str
    index: Index
    shape: Shape


Value = Ints | Mask | Num | Data | Ptr


def joined_shape(*shapes: Shape) -> Shape:
    """The extents of a broadcast of tiles of one rank (scalars have none)."""
    rank = max(map(len, shapes), default=0)
    full = [shape if len(shape) == rank else (1,) * rank for shape in shapes]
    return tuple(max(extents) if 0 not in extents else 0 for extents in zip(*full, strict=True))


def elements(shape: Shape) -> int:
    """How many elements a tile has."""
    return prod(shape)
