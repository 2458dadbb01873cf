"""Coordinates: exact integer functions of loop axes, on which all index remapping of the designer is done.

A coordinate is an index expression (`sketch.index`) whose leaves are axes, each one axis of a kernel's iteration space, and indices
read from a tensor at run time (`Datum`). Views (permute, slice, reshape, pad …) are functions from coordinates to coordinates;
nothing here knows about tiles or torch. What is said here is only what the algebra cannot know: which axes there are, how a
position in a shape is made and taken apart, and which axes should be split for a quotient to become linear.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kernelwright.compiler.graph.symbolic import Extent, Size, SizeLeaf, size_poly, sized
from kernelwright.core.errors import UnsupportedOperator
from kernelwright.sketch.index import OWN, Leaf, Opaque, Poly, poly, rejoined

UNBOUNDED = 1 << 60
_serial = itertools.count()

IndexExpr = Poly


@dataclass(frozen=True, eq=False, slots=True)
class LoopAxis(Leaf):
    """One axis of an iteration space, `0 <= value < extent`. It is equal to nothing but itself; `whole` forbids splitting it."""

    extent: Extent
    serial: int = field(default_factory=lambda: next(_serial))
    whole: bool = False
    low: int = 0

    @property
    def key(self) -> str:
        return f"|{self.serial:012d}"

    def __repr__(self) -> str:
        return f"axis{self.serial}"

    def bounds(self) -> tuple[int, int | Poly]:
        """Smallest and largest value."""
        last = self.low + self.extent - 1
        return self.low, last.poly if isinstance(last, Size) else last


def free_start() -> LoopAxis:
    """An axis of unknown range: the start of a span that a schedule family asks for."""
    return LoopAxis(2 * UNBOUNDED, whole=True, low=-UNBOUNDED)


@dataclass(frozen=True)
class Datum(Leaf):
    """An index computed at run time, by an expression of compiler/schedule/scalar.py, that lies in `0 … extent-1`."""

    expression: Any
    extent: Extent

    @property
    def key(self) -> str:
        return f"}}{self.expression.number:09d},{self.extent}"

    def __repr__(self) -> str:
        return f"datum{self.expression.number}"

    def bounds(self) -> tuple[int, int | Poly]:
        """Smallest and largest value."""
        if isinstance(self.extent, Size):
            return 0, self.extent.poly - 1
        return 0, max(self.extent - 1, 0)


def axis_index(loop_axis: LoopAxis | Datum) -> IndexExpr:
    """The coordinate that is this axis."""
    return poly(loop_axis)


def constant_index(value: Extent) -> IndexExpr:
    """The coordinate that stands still."""
    return size_poly(value)


def linear_index(offset: Extent, terms: Mapping[Any, Extent]) -> IndexExpr:
    """`offset + sum(coefficient * term)`."""
    if all(isinstance(k, int) for k in terms.values()):
        return Poly.of({(term,): k for term, k in terms.items()}) + size_poly(offset)
    total = size_poly(offset)
    for term, k in terms.items():
        total = total + poly(term) * size_poly(k)
    return total


def linear(c: IndexExpr) -> list[tuple[Any, Extent]]:
    """Its axes, run-time indices and quotients, each with its factor, which may be a size; without what stands still."""
    region = _region(c)
    if region is None:
        return list(c.linear())
    found: dict[Any, Poly] = {}
    for monomial, count in c.terms:
        term, factor = _apart(monomial, count)
        if term is not None:
            found[term] = found.get(term, poly(0)) + factor
    return [(term, sized(factor, region)) for term, factor in found.items()]


def offset(c: IndexExpr) -> Extent:
    """What is added to everything that moves."""
    region = _region(c)
    if region is None:
        return c.offset
    total = poly(0)
    for monomial, count in c.terms:
        term, factor = _apart(monomial, count)
        if term is None:
            total = total + factor
    return sized(total, region)


def _region(c: IndexExpr) -> Any:
    return next((leaf.region for leaf in c.leaves if isinstance(leaf, SizeLeaf)), None)


def _still(loop_axis: Any) -> bool:
    """Whether a factor depends on sizes alone."""
    if isinstance(loop_axis, Opaque):
        return all(isinstance(leaf, SizeLeaf) for leaf in (*loop_axis.left.leaves, *loop_axis.right.leaves))
    return isinstance(loop_axis, SizeLeaf)


def _apart(monomial: tuple[Any, ...], count: int) -> tuple[Any, Poly]:
    """The one factor of a product that moves, and the rest."""
    moving = [loop_axis for loop_axis in monomial if not _still(loop_axis)]
    factor = poly(count)
    for loop_axis in monomial:
        if _still(loop_axis):
            factor = factor * poly(loop_axis)
    if len(moving) > 1:
        raise UnsupportedOperator("these dynamic sizes", "two positions are multiplied")
    return (moving[0] if moving else None), factor


def axes_in(c: IndexExpr) -> frozenset[LoopAxis]:
    """All axes a coordinate depends on, also inside divisions and run-time indices."""
    found: set[LoopAxis] = set()
    for leaf in c.leaves:
        if isinstance(leaf, LoopAxis):
            found.add(leaf)
        elif isinstance(leaf, Datum):
            found |= leaf.expression.free
    return frozenset(found)


def only_axis(c: IndexExpr) -> LoopAxis | None:
    """The axis, when the coordinate is exactly that axis."""
    return c.atom if isinstance(c.atom, LoopAxis) else None


def certainly_inside(c: IndexExpr, extent: Extent) -> bool:
    """Whether every value lies in `0 ... extent - 1`, whatever the sizes are."""
    return certainly_natural(c) and certainly_below(c, extent)


def certainly_natural(c: IndexExpr) -> bool:
    """Whether no value is negative, whatever the sizes are."""
    low = OWN.interval(c)[0]
    return low >= 0 if low is not None and _region(c) is None else OWN.nonnegative(c)


def certainly_below(c: IndexExpr, limit: Extent) -> bool:
    """Whether every value lies below a limit, whatever the sizes are."""
    if isinstance(limit, int) and _region(c) is None:
        high = OWN.interval(c)[1]
        return high is not None and high < limit
    return OWN.below(c, size_poly(limit))


def certainly_outside(c: IndexExpr, extent: Extent) -> bool:
    """Whether no value lies in `0 ... extent - 1`, whatever the sizes are."""
    if isinstance(extent, int) and _region(c) is None:
        low, high = OWN.interval(c)
        return (high is not None and high < 0) or (low is not None and low >= extent)
    return OWN.below(c, 0) or OWN.nonnegative(c - size_poly(extent))


def data_of(c: IndexExpr) -> list[Datum]:
    """Run-time indices inside a coordinate."""
    return sorted((leaf for leaf in c.leaves if isinstance(leaf, Datum)), key=lambda datum: datum.key)


def substituted(c: IndexExpr, mapping: Mapping[LoopAxis, IndexExpr], datum: Callable[[Any], Any]) -> IndexExpr:
    """Axes replaced by coordinates; `datum` rewrites the expressions of run-time indices."""
    values: dict[str | Leaf, IndexExpr] = {leaf: poly(Datum(datum(leaf.expression), leaf.extent)) for leaf in data_of(c)}
    for loop_axis, image in mapping.items():
        values[loop_axis] = image
    return rejoined(c.substitute(values, OWN.combine))


def divides(by: Extent, extent: Extent) -> bool:
    """Whether a positive number certainly divides an extent."""
    if isinstance(by, int) and isinstance(extent, int):
        return by > 0 and extent % by == 0
    if not OWN.nonnegative(size_poly(by) - 1) and not isinstance(by, Size):
        return False
    return OWN.divisible(size_poly(extent), size_poly(by))


def wanted_splits(c: IndexExpr) -> list[tuple[LoopAxis, Extent]]:
    """(axis, inner extent) pairs whose split would turn a division or remainder into a linear form."""
    wanted: list[tuple[LoopAxis, int]] = []
    for term in c.opaques():
        by = sized(term.right, _region(term.right))
        for loop_axis, coefficient in linear(term.left):
            if isinstance(loop_axis, LoopAxis) and not loop_axis.whole and divides(coefficient, by):
                inner = by // coefficient
                numbers = isinstance(inner, int) and isinstance(loop_axis.extent, int)
                if (inner < loop_axis.extent if numbers else inner != loop_axis.extent) and divides(inner, loop_axis.extent):
                    wanted.append((loop_axis, inner))
    return wanted


def flatten(coords: tuple[IndexExpr, ...], shape: tuple[Extent, ...]) -> IndexExpr:
    """Row-major position of coordinates in a shape."""
    position = poly(0)
    for index_expr, extent in zip(coords, shape, strict=True):
        position = position * size_poly(extent) + index_expr
    return rejoined(position)


def unflatten(position: IndexExpr, shape: tuple[Extent, ...]) -> tuple[IndexExpr, ...]:
    """Coordinates of a row-major position."""
    coords: list[IndexExpr] = []
    for extent in reversed(shape):
        by = size_poly(extent)
        coords.append(position % by if len(coords) < len(shape) - 1 else position)
        position = position // by if extent else position
    return tuple(reversed(coords))
