"""Lazy tensors: the normalised graph between ATen and schedules.

Every operator of the captured graph becomes a few of these. A value says how one element follows from elements of its sources;
nothing is stored until the partition (schedule/partition.py) decides that a value is *materialized* in memory. Values compare by
identity. `dtype` is torch's dtype of the value; maths on f16 and bf16 is done in f32 (`dtype.computed`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from kernelwright.compiler.graph.index_maps import IndexExpr
from kernelwright.compiler.graph.symbolic import Extent, Size
from kernelwright.sketch.nodes import DType

MultiIndex = tuple[IndexExpr, ...]


@dataclass(eq=False)
class Value:
    """One tensor of the graph. `origin` is the ATen operator it came from, for messages and comments; `triangle` is the part of
    its matrices outside which it is zero ("lower", "upper", or "full"), `diagonal_of` what a diagonal matrix is made of,
    `softplus_of` the x of a log(1 + e^x). `stored` asks for a tensor of its own: many users would compute it again; `shared` says that
    several operators of the graph use it, so that none of them saves making it."""

    shape: tuple[Extent, ...]
    dtype: DType
    origin: str = field(default="", kw_only=True)
    triangle: str = field(default="full", kw_only=True)
    diagonal_of: Value | None = field(default=None, kw_only=True, repr=False)
    softplus_of: Value | None = field(default=None, kw_only=True, repr=False)
    stored: bool = field(default=False, kw_only=True)
    shared: bool = field(default=False, kw_only=True)

    def sources(self) -> tuple[Value, ...]:
        """The values it is made of."""
        return ()

    @property
    def size(self) -> Extent:
        return math.prod(self.shape)


@dataclass(eq=False)
class Leaf(Value):
    """A tensor in memory: an input, a parameter, a constant, or a materialized value."""

    tensor: str = ""


@dataclass(eq=False)
class Const(Value):
    """One number everywhere."""

    value: float | int | bool | Size = 0


@dataclass(eq=False)
class Position(Value):
    """The coordinate along an axis, times `step`, plus `start` (arange and its kin)."""

    axis: int = 0


@dataclass(eq=False)
class Map(Value):
    """A pointwise operation; sources broadcast as in NumPy. `op` is a name of the sketch's UNARY or BINARY, `where`, or `cast`
    (to this value's dtype), or `bitcast`. `compute` is the dtype that the sources are brought to first (None: as they are)."""

    op: str = ""
    args: tuple[Value, ...] = ()
    compute: DType | None = None

    def sources(self) -> tuple[Value, ...]:
        return self.args


@dataclass(eq=False)
class View(Value):
    """Element at `coords` is the source's element at `move(coords)`. With `fill`, positions outside the source have that value.
    `bijective` tells that elements are only renamed (reshape, permute), so that work can flow through it both ways."""

    source: Value = None  # type: ignore[assignment]
    move: Callable[[MultiIndex], MultiIndex] = tuple
    fill: float | int | bool | None = None
    bijective: bool = False
    kind: str = ""

    def sources(self) -> tuple[Value, ...]:
        return (self.source,)


@dataclass(eq=False)
class Reduce(Value):
    """A reduction over `axes`, which disappear from the shape."""

    op: str = ""
    source: Value = None  # type: ignore[assignment]
    axes: tuple[int, ...] = ()

    def sources(self) -> tuple[Value, ...]:
        return (self.source,)


@dataclass(eq=False)
class ArgReduce(Value):
    """Position of the max or min along `axis`, which disappears from the shape."""

    op: str = ""
    source: Value = None  # type: ignore[assignment]
    axis: int = 0

    def sources(self) -> tuple[Value, ...]:
        return (self.source,)


@dataclass(eq=False)
class Scan(Value):
    """A running reduction along `axis`."""

    op: str = ""
    source: Value = None  # type: ignore[assignment]
    axis: int = 0
    reverse: bool = False
    exclusive: bool = False

    def sources(self) -> tuple[Value, ...]:
        return (self.source,)


@dataclass(eq=False)
class Concat(Value):
    """Concatenation along `axis`."""

    parts: tuple[Value, ...] = ()
    axis: int = 0

    def sources(self) -> tuple[Value, ...]:
        return self.parts


@dataclass(eq=False)
class Gather(Value):
    """Element at `coords` is the source's element at positions read at run time: `build(coords, read)` gives the source's
    coordinates, where `read(i, coords, extent)` is the coordinate found in `indices[i]`, wrapped if negative."""

    source: Value = None  # type: ignore[assignment]
    indices: tuple[Value, ...] = ()
    build: Callable[[MultiIndex, Callable[[int, MultiIndex, Extent], IndexExpr]], MultiIndex] = None  # type: ignore[assignment]

    def sources(self) -> tuple[Value, ...]:
        return (self.source, *self.indices)


@dataclass(eq=False)
class Contraction(Value):
    """A matrix product, convolution or attention, made by a family of schedule/contraction. `problem` is that family's description."""

    family: str = ""
    operands: tuple[Value, ...] = ()
    problem: Any = None

    def sources(self) -> tuple[Value, ...]:
        return self.operands


class KernelBuilder(Protocol):
    """What a custom kernel asks of the sketch in the making (compiler/schedule/sketch_builder.py): so the graph knows no schedules."""

    placed: dict[int, str]

    def sort_rows(self, x: Value, axis: int, descending: bool, values: Value, places: Value) -> None:
        """Sorts along an axis and stores the first elements and their positions, as far as they are wanted."""

    def scatter(
        self,
        made: Value,
        base: Value,
        updates: Value,
        serial: tuple[int, ...],
        place: Callable[[MultiIndex, Any], MultiIndex],
        combine: str,
    ) -> None:
        """Copies `base`, then writes every element of `updates` at `place(coords)`."""

    def step_through_time(
        self, cell: Cell, given: Value, again: Value, begin: Sequence[Value], bias: Value | None, history: Value,
        kept: Sequence[Value],
    ) -> None:  # fmt: skip
        """The kernels of one direction of one recurrent layer."""

    def library_call(self, name: str, inputs: Sequence[Value], outputs: Sequence[Value], attributes: str, note: str) -> None:
        """A call that is left to torch."""


Cell = Literal["lstm", "gru", "rnn_tanh", "rnn_relu"]
GATES: dict[Cell, int] = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


@dataclass(eq=False)
class CustomKernel(Value):
    """A value whose kernel is written by hand for its kind (sort, scatter): always materialized. `write` is called with the
    builder (compiler/schedule/assemble.py) and writes all of `group`, the values that one kernel makes together."""

    write: Callable[[KernelBuilder, tuple[Value, ...]], None] = None  # type: ignore[assignment]
    args: tuple[Value, ...] = ()
    group: list[Value] = field(default_factory=list)

    def sources(self) -> tuple[Value, ...]:
        return self.args


class MustMaterialize(Exception):
    """This value has to be in memory before its user can be made."""

    def __init__(self, value: Value) -> None:
        super().__init__(value.origin)
        self.value = value


def topological(roots: list[Value]) -> list[Value]:
    """All values that the roots need, sources before users."""
    order: list[Value] = []
    seen: set[int] = set()
    for root in roots:
        stack: list[tuple[Value, Iterator[Value]]] = [(root, iter(root.sources()))] if id(root) not in seen else []
        seen.add(id(root))
        while stack:
            value, rest = stack[-1]
            for source in rest:
                if id(source) not in seen:
                    seen.add(id(source))
                    stack.append((source, iter(source.sources())))
                    break
            else:
                order.append(value)
                stack.pop()
    return order
