"""Tile values as a graph, and the effects that order them.

A `Value` is one tile: an operation over other values, with shape and dtype; nothing says yet where or whether it is stored. A `Block`
is a list of effects in program order: stores, loops with their carried tiles, comments, and points where a value must be kept.
`graph` makes these from statements; a language's scheduler decides what is recomputed, what is kept, and writes the loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kernelwright.sketch.index import Poly
from kernelwright.sketch.nodes import DType

ELEMENTWISE = frozenset({"unary", "binary", "where", "cast", "bitcast"})
VIEWS = frozenset({"permute", "reshape", "squeeze", "unsqueeze", "expand", "part"})
LEAVES = frozenset({"const", "index", "iota", "load", "stored"})
MATERIALIZED = frozenset({"reduce", "scan", "argsort", "gemm"})
"""Operations whose result always gets storage of its own; `take` is neither: it indexes its operand at run time."""


@dataclass
class Storage:
    """A place for a tile: a scalar variable if all extents are 1, else a row-major array. Written by the schedule only."""

    name: str
    shape: tuple[Poly, ...]
    dtype: DType
    pitch: Poly | None = None  # elements from one row (last axis) to the next, where that is more than the row's extent
    rows: Poly | None = None  # rows from one plane (last two axes) to the next, where there are more than the plane has

    @property
    def scalar(self) -> bool:
        return self.pitch is None and all(extent.constant == 1 for extent in self.shape)

    @property
    def extents(self) -> tuple[Poly, ...]:
        """The extents in memory: the last two widened to the pitch and the rows of a plane."""
        if self.rows is not None:
            return (*self.shape[:-2], self.rows, self.pitch or self.shape[-1])
        return self.shape if self.pitch is None else (*self.shape[:-1], self.pitch)


@dataclass(frozen=True)
class SpanAccess:
    start: Poly
    extent: Poly
    step: Poly


@dataclass(frozen=True)
class AtAccess:
    index: Poly


@dataclass(frozen=True, eq=False)
class PickAccess:
    indices: Value


Access = SpanAccess | AtAccess | PickAccess


@dataclass(frozen=True, eq=False)
class LoadData:
    tensor: str
    axes: tuple[Access, ...]
    pad: float | int | bool | None
    level: str


@dataclass(eq=False)
class Value:
    """One tile. `data` belongs to the operation: its name, axes, region, number … ; `home` is the block that made it."""

    id: int
    op: str
    args: tuple[Value, ...]
    shape: tuple[Poly, ...]
    dtype: DType
    data: Any = None
    name: str = ""
    weak: bool = False  # a number that takes the dtype of what it meets
    home: Block = field(default=None, repr=False)  # type: ignore[assignment]
    storage: Storage | None = None  # set once the value is kept
    kept: bool = False  # decided: to be stored when first needed
    cost: float | None = None  # cycles per vector of elements when computed on the spot

    @property
    def operands(self) -> tuple[Value, ...]:
        """All values this one reads, those inside regions included."""
        if self.op == "load":
            return tuple(axis.indices for axis in self.data.axes if isinstance(axis, PickAccess))
        return self.args


@dataclass(eq=False)
class StoreEffect:
    tensor: str
    axes: tuple[Access, ...]
    value: Value
    mode: str

    @property
    def operands(self) -> tuple[Value, ...]:
        return (self.value, *(axis.indices for axis in self.axes if isinstance(axis, PickAccess)))


@dataclass(eq=False)
class MaterializeEffect:
    """The value must be stored here, before later effects change what it reads."""

    value: Value


@dataclass(eq=False)
class Carried:
    """A tile carried by a loop: what it starts from (None: unset), how the body reads it, what it becomes, how it is read after."""

    name: str
    initial: Value | None
    inside: Value
    storage: Storage
    final: Value | None = None


@dataclass(eq=False)
class LoopEffect:
    var: str
    kind: str
    start: Poly
    stop: Poly
    step: Poly
    body: Block
    carried: list[Carried]
    hints: dict[str, int]


@dataclass(eq=False)
class CommentEffect:
    text: str


Effect = StoreEffect | MaterializeEffect | LoopEffect | CommentEffect


@dataclass(eq=False)
class Block:
    """Effects in program order; `parent` is the block around it."""

    parent: Block | None
    effects: list[Effect] = field(default_factory=list)

    def encloses(self, other: Block) -> bool:
        """True if `other` is this block or lies inside it."""
        at: Block | None = other
        while at is not None:
            if at is self:
                return True
            at = at.parent
        return False

    def used(self) -> Iterator[Value]:
        """The values that effects use directly, in program order, those of loops inside included."""
        for effect in self.effects:
            match effect:
                case StoreEffect():
                    yield from effect.operands
                case MaterializeEffect():
                    yield effect.value
                case LoopEffect():
                    for item in effect.carried:
                        yield from (value for value in (item.initial, item.final) if value is not None)
                    yield from effect.body.used()


def made_of(values: Iterable[Value]) -> set[Value]:
    """These values and all that they are made of."""
    found: set[Value] = set()
    stack = list(values)
    while stack:
        value = stack.pop()
        if value not in found:
            found.add(value)
            stack += value.operands
    return found
