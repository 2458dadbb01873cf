"""Where an element of a tile value lies: what every writer of elements knows before it writes a text.

In: a value of the tile graph and an index (a polynomial) for each of its axes. Out: the index of a view's operand, the element itself
where it is an integer made of positions, the positions in a tensor that an access reaches, and the conditions under which those lie
inside. The C family (c_family/elements.py) and tile programs (tile_programs/elements.py) write their texts on top of this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from kernelwright.compiler.lower.tile_values import AtAccess, PickAccess, SpanAccess, Value
from kernelwright.sketch.index import Poly, Ranges, combine, poly, rejoined
from kernelwright.sketch.nodes import DType

Index = tuple[Poly, ...]

INTEGERS = (DType.i64, DType.i32)


class ElementIndex(ABC):
    """Index arithmetic of one place: a loop nest, or a block of a tile program."""

    @property
    @abstractmethod
    def bounds(self) -> Ranges:
        """What is known about the names that positions are made of."""

    @abstractmethod
    def is_stored(self, value: Value) -> bool:
        """Whether the value is read from where it is kept, not computed at the element's own place."""

    @abstractmethod
    def picked(self, indices: Value, index: Index) -> Poly:
        """An element of a tile of indices, known only at run time, as a name that polynomials can use."""

    # ------------------------------------------------------------ integers

    def integer(self, value: Value, index: Index) -> Poly | None:
        """An element that is a polynomial of positions and sizes, or None."""
        if self.is_stored(value):
            return None
        match value.op:
            case "const" if value.dtype in INTEGERS and not isinstance(value.data, bool | float):
                return poly(value.data)
            case "index":
                found: Poly = value.data
                return found
            case "iota":
                return index[0]
            case "cast" if value.dtype in INTEGERS:
                return self.integer(value.args[0], index)
            case "unary" if value.data == "neg":
                inner = self.integer(value.args[0], index)
                return None if inner is None else inner * -1
            case "binary":
                return self._integer_binary(value, index)
            case "permute" | "squeeze" | "unsqueeze" | "expand" | "part":
                return self.integer(value.args[0], self.viewed(value, index))
        return None

    def _integer_binary(self, value: Value, index: Index) -> Poly | None:
        a, b = (self.integer(arg, fitting(arg, index)) for arg in value.args)
        if a is None or b is None:
            return None
        match value.data:
            case "add":
                return a + b
            case "sub":
                return a - b
            case "mul":
                return a * b
            case "maximum" | "minimum":
                return combine("max" if value.data == "maximum" else "min", a, b)
            case "floordiv" | "mod" if b.constant is not None and b.constant > 0:
                return self.bounds.divide(a, b)[value.data == "mod"]
        return None

    def comparison(self, value: Value, index: Index) -> Poly | None:
        """For a comparison of positions the polynomial that is not negative where it holds."""
        if value.op != "binary" or value.data not in ("lt", "le", "gt", "ge"):
            return None
        a, b = (self.integer(arg, fitting(arg, index)) for arg in value.args)
        if a is None or b is None:
            return None
        gap = b - a if value.data in ("lt", "le") else a - b
        return gap if value.data in ("le", "ge") else gap - 1

    # ------------------------------------------------------------ views

    def viewed(self, value: Value, index: Index) -> Index:
        """The operand's index for an element of a view."""
        x = value.args[0]
        match value.op:
            case "permute":
                inner = [poly(0)] * len(index)
                for axis, p in zip(value.data, index, strict=True):
                    inner[axis] = p
                return tuple(inner)
            case "squeeze":
                return (*index[: value.data], poly(0), *index[value.data :])
            case "unsqueeze":
                return index[: value.data] + index[value.data + 1 :]
            case "expand":
                return fitting(x, index)
            case "part":
                spans = iter(index)
                return tuple(a.index if isinstance(a, AtAccess) else a.start + a.step * next(spans) for a in value.data)
        return self.unflatten(flat(value.shape, index), x.shape)

    def unflatten(self, position: Poly, shape: tuple[Poly, ...]) -> Index:
        """A row-major position as an index of a shape."""
        inner: list[Poly] = []
        for extent in reversed(shape[1:]):
            position, rest = self.bounds.divide(position, extent)
            inner.append(rest)
        return (position, *reversed(inner)) if shape else ()

    # ------------------------------------------------------------ tensors

    def positions(self, axes: Sequence[object], index: Index) -> list[Poly]:
        """Where along each axis of a tensor the element at `index` of a region lies."""
        rank = max((len(a.indices.shape) for a in axes if isinstance(a, PickAccess)), default=0)
        spans = iter(index[rank:])
        found: list[Poly] = []
        for axis in axes:
            if isinstance(axis, SpanAccess):
                found.append(axis.start + axis.step * next(spans))
            elif isinstance(axis, AtAccess):
                found.append(axis.index)
            elif isinstance(axis, PickAccess):
                own = fitting(axis.indices, index[:rank])
                known = self.integer(axis.indices, own)
                found.append(known if known is not None else self.picked(axis.indices, own))
        return found

    def outside(self, shape: Sequence[Poly | int], positions: Sequence[Poly]) -> list[Poly]:
        """Conditions `p >= 0` under which positions lie inside a tensor of this shape, those that always hold left out."""
        conditions = []
        for p, extent in zip(positions, shape, strict=True):
            at_run_time = any(is_picked(name) for name in p.names)
            if at_run_time or not self.bounds.nonnegative(p):
                conditions.append(p)
            if at_run_time or not self.bounds.below(p, poly(extent)):
                conditions.append(poly(extent) - 1 - p)
        return conditions


def offset(strides: Sequence[Poly | int], positions: Sequence[Poly]) -> Poly:
    """How far from a tensor's first element these positions lie."""
    total = poly(0)
    for p, stride in zip(positions, strides, strict=True):
        total = total + p * stride
    return rejoined(total)


def is_picked(name: str) -> bool:
    """Whether a name in a polynomial stands for an index that is known only at run time."""
    return name.startswith("@")


def fitting(value: Value, index: Index) -> Index:
    """NumPy's broadcasting: the operand's own axes, at 0 where its extent is 1."""
    own = index[len(index) - len(value.shape) :] if value.shape else ()
    return tuple(poly(0) if extent.constant == 1 else p for extent, p in zip(value.shape, own, strict=True))


def flat(shape: tuple[Poly, ...], index: Index) -> Poly:
    """The row-major position of an index."""
    position = poly(0)
    for extent, p in zip(shape, index, strict=True):
        position = position * extent + (poly(0) if extent.constant == 1 else p)
    return position
