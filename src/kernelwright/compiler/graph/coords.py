"""Coordinates: exact integer functions of loop axes, on which all index remapping of the designer is done.

A coordinate is an index expression (`sketch.index`) whose leaves are atoms, each one axis of a kernel's iteration space, and indices
read from a tensor at run time (`Datum`). Views (permute, slice, reshape, pad …) are functions from coordinates to coordinates;
nothing here knows about tiles or torch. What is said here is only what the algebra cannot know: which axes there are, how a
position in a shape is made and taken apart, and which axes should be split for a quotient to become linear.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kernelwright.sketch.index import OWN, Leaf, Poly, poly, rejoined

UNBOUNDED = 1 << 60
_serial = itertools.count()

Coord = Poly


@dataclass(frozen=True, eq=False, slots=True)
class Atom(Leaf):
    """One axis of an iteration space, `0 <= value < extent`. It is equal to nothing but itself; `whole` forbids splitting it."""

    extent: int
    serial: int = field(default_factory=lambda: next(_serial))
    whole: bool = False
    low: int = 0

    @property
    def key(self) -> str:
        return f"|{self.serial:012d}"

    def __repr__(self) -> str:
        return f"axis{self.serial}"

    def bounds(self) -> tuple[int, int]:
        """Smallest and largest value."""
        return self.low, self.low + self.extent - 1


def free_start() -> Atom:
    """An atom of unknown range: the start of a span that a schedule family asks for."""
    return Atom(2 * UNBOUNDED, whole=True, low=-UNBOUNDED)


@dataclass(frozen=True)
class Datum(Leaf):
    """An index computed at run time, by an expression of compiler/schedule/scalar.py, that lies in `0 … extent-1`."""

    expression: Any
    extent: int

    @property
    def key(self) -> str:
        return f"}}{self.expression.number:09d},{self.extent}"

    def __repr__(self) -> str:
        return f"datum{self.expression.number}"

    def bounds(self) -> tuple[int, int]:
        """Smallest and largest value."""
        return 0, max(self.extent - 1, 0)


def atom_coord(atom: Atom | Datum) -> Coord:
    """The coordinate that is this atom."""
    return poly(atom)


def number_coord(value: int) -> Coord:
    """The coordinate that stands still."""
    return poly(value)


def linear_coord(offset: int, terms: Mapping[Any, int]) -> Coord:
    """`offset + sum(coefficient * term)`."""
    return Poly.of({(term,): k for term, k in terms.items()}) + offset


def atoms_of(c: Coord) -> frozenset[Atom]:
    """All atoms a coordinate depends on, also inside divisions and run-time indices."""
    found: set[Atom] = set()
    for leaf in c.leaves:
        if isinstance(leaf, Atom):
            found.add(leaf)
        elif isinstance(leaf, Datum):
            found |= leaf.expression.free
    return frozenset(found)


def only_atom(c: Coord) -> Atom | None:
    """The atom, when the coordinate is exactly that atom."""
    return c.atom if isinstance(c.atom, Atom) else None


def range_of(c: Coord) -> tuple[int, int]:
    """Interval that certainly contains every value: atoms and run-time indices have one, so there is one."""
    low, high = OWN.interval(c)
    assert low is not None
    assert high is not None
    return low, high


def data_of(c: Coord) -> list[Datum]:
    """Run-time indices inside a coordinate."""
    return sorted((leaf for leaf in c.leaves if isinstance(leaf, Datum)), key=lambda datum: datum.key)


def substituted(c: Coord, mapping: Mapping[Atom, Coord], datum: Callable[[Any], Any]) -> Coord:
    """Atoms replaced by coordinates; `datum` rewrites the expressions of run-time indices."""
    values: dict[str | Leaf, Coord] = {leaf: poly(Datum(datum(leaf.expression), leaf.extent)) for leaf in data_of(c)}
    for atom, image in mapping.items():
        values[atom] = image
    return rejoined(c.substitute(values, OWN.combine))


def wanted_splits(c: Coord) -> list[tuple[Atom, int]]:
    """(atom, inner extent) pairs whose split would turn a division or remainder into a linear form."""
    wanted: list[tuple[Atom, int]] = []
    for term in c.opaques():
        by = term.right.constant or 0
        for atom, coefficient in term.left.linear():
            if isinstance(atom, Atom) and not atom.whole and coefficient > 0 and by % coefficient == 0:
                inner = by // coefficient
                if inner < atom.extent and atom.extent % inner == 0:
                    wanted.append((atom, inner))
    return wanted


def flatten(coords: tuple[Coord, ...], shape: tuple[int, ...]) -> Coord:
    """Row-major position of coordinates in a shape."""
    position = poly(0)
    for coord, extent in zip(coords, shape, strict=True):
        position = position * extent + coord
    return rejoined(position)


def unflatten(position: Coord, shape: tuple[int, ...]) -> tuple[Coord, ...]:
    """Coordinates of a row-major position."""
    coords: list[Coord] = []
    for extent in reversed(shape):
        coords.append(position % extent if len(coords) < len(shape) - 1 else position)
        position = position // extent if extent else position
    return tuple(reversed(coords))
