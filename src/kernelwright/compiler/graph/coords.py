"""Coordinates: exact integer functions of loop axes, on which all index remapping of the designer is done.

An `Atom` is one axis of a kernel's iteration space. A `Coord` is `offset + sum(coefficient * term)`, where a term is an atom, or
something that no linear form can say: a floor division, a remainder, or an index read from a tensor at run time (`Datum`).
Views (permute, slice, reshape, pad …) are functions from coordinates to coordinates; nothing here knows about tiles or torch.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

UNBOUNDED = 1 << 60
_serial = itertools.count()


@dataclass(frozen=True)
class Atom:
    """One axis of an iteration space, `0 <= value < extent`. Identity is the serial number; `whole` forbids splitting it."""

    extent: int
    serial: int = field(default_factory=lambda: next(_serial))
    whole: bool = False
    low: int = 0

    def range(self) -> tuple[int, int]:
        """Smallest and largest value."""
        return self.low, self.low + self.extent - 1


def free_start() -> Atom:
    """An atom of unknown range: the start of a span that a schedule family asks for."""
    return Atom(2 * UNBOUNDED, whole=True, low=-UNBOUNDED)


@dataclass(frozen=True)
class Div:
    """`floor(of / by)`."""

    of: Coord
    by: int

    def range(self) -> tuple[int, int]:
        low, high = self.of.range()
        return low // self.by, high // self.by


@dataclass(frozen=True)
class Mod:
    """`of mod by`, in `0 … by-1`."""

    of: Coord
    by: int

    def range(self) -> tuple[int, int]:
        return 0, self.by - 1


@dataclass(frozen=True)
class Datum:
    """An index computed at run time, by an expression of compiler/schedule/scalar.py, that lies in `0 … extent-1`."""

    expression: Any
    extent: int

    def range(self) -> tuple[int, int]:
        return 0, max(self.extent - 1, 0)


Term = Atom | Div | Mod | Datum


class Coord:
    """`offset + sum(coefficient * term)`; immutable, with its hash kept because coordinates are compared all the time."""

    __slots__ = ("_hash", "offset", "terms")

    def __init__(self, offset: int = 0, terms: Mapping[Term, int] | None = None) -> None:
        if terms and any(isinstance(t, Mod) for t in terms):
            offset, terms = _rejoin(offset, dict(terms))
        self.offset = offset
        self.terms: tuple[tuple[Term, int], ...] = tuple(sorted(((t, c) for t, c in (terms or {}).items() if c), key=_order))
        self._hash = hash((offset, self.terms))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Coord) and self._hash == other._hash and self.offset == other.offset and self.terms == other.terms
        )

    def __repr__(self) -> str:
        return " + ".join([*(f"{c}*{t}" for t, c in self.terms), str(self.offset)])

    def __add__(self, other: Coord | int) -> Coord:
        if isinstance(other, int):
            return Coord(self.offset + other, dict(self.terms))
        total = dict(self.terms)
        for term, coefficient in other.terms:
            total[term] = total.get(term, 0) + coefficient
        return Coord(self.offset + other.offset, total)

    def __sub__(self, other: Coord | int) -> Coord:
        return self + (-other if isinstance(other, int) else other * -1)

    def __mul__(self, factor: int) -> Coord:
        return Coord(self.offset * factor, {t: c * factor for t, c in self.terms})

    def range(self) -> tuple[int, int]:
        """Interval that certainly contains every value."""
        low = high = self.offset
        for term, coefficient in self.terms:
            a, b = (coefficient * bound for bound in term.range())
            low, high = low + min(a, b), high + max(a, b)
        return low, high

    def atoms(self) -> frozenset[Atom]:
        """All atoms it depends on, also inside divisions and run-time indices."""
        found: set[Atom] = set()
        for term, _ in self.terms:
            if isinstance(term, Atom):
                found.add(term)
            elif isinstance(term, Datum):
                found |= term.expression.free
            else:
                found |= term.of.atoms()
        return frozenset(found)

    def only_atom(self) -> Atom | None:
        """The atom, when the coordinate is exactly that atom."""
        if self.offset == 0 and len(self.terms) == 1:
            term, coefficient = self.terms[0]
            if coefficient == 1 and isinstance(term, Atom):
                return term
        return None

    def _split(self, by: int) -> tuple[Coord, Coord]:
        """Quotient and rest such that self = by * quotient + rest, with all that `by` divides in the quotient."""
        quotient = {t: c // by for t, c in self.terms if c % by == 0}
        rest = {t: c for t, c in self.terms if c % by}
        return Coord(self.offset // by, quotient), Coord(self.offset % by, rest)

    def __floordiv__(self, by: int) -> Coord:
        if by == 1:
            return self
        quotient, rest = self._split(by)
        low, high = rest.range()
        if low // by == high // by:
            return quotient + low // by
        if len(rest.terms) == 1 and isinstance(rest.terms[0][0], Div) and rest.terms[0][1] == 1 and rest.offset == 0:
            inner = rest.terms[0][0]
            return quotient + inner.of // (inner.by * by)
        return quotient + Coord(0, {Div(rest, by): 1})

    def __mod__(self, by: int) -> Coord:
        if by == 1:
            return Coord(0)
        _, rest = self._split(by)
        low, high = rest.range()
        if low // by == high // by:
            return rest - low // by * by
        return Coord(0, {Mod(rest, by): 1})

    def substitute(self, mapping: Mapping[Atom, Coord], datum: Callable[[Any], Any]) -> Coord:
        """Atoms replaced by coordinates; `datum` rewrites the expressions of run-time indices."""
        total = Coord(self.offset)
        for term, coefficient in self.terms:
            if isinstance(term, Atom):
                part = mapping.get(term) or atom_coord(term)
            elif isinstance(term, Div):
                part = term.of.substitute(mapping, datum) // term.by
            elif isinstance(term, Mod):
                part = term.of.substitute(mapping, datum) % term.by
            else:
                part = Coord(0, {Datum(datum(term.expression), term.extent): 1})
            total = total + part * coefficient
        return total

    def wanted_splits(self) -> list[tuple[Atom, int]]:
        """(atom, inner extent) pairs whose split would turn a division or remainder into a linear form."""
        wanted: list[tuple[Atom, int]] = []
        for term, _ in self.terms:
            if isinstance(term, Div | Mod):
                wanted += term.of.wanted_splits()
                for atom, coefficient in term.of.terms:
                    if isinstance(atom, Atom) and not atom.whole and coefficient > 0 and term.by % coefficient == 0:
                        inner = term.by // coefficient
                        if inner < atom.extent and atom.extent % inner == 0:
                            wanted.append((atom, inner))
        return wanted


def _rejoin(offset: int, terms: dict[Term, int]) -> tuple[int, dict[Term, int]]:
    """`k*by*(x // by) + k*(x % by)` is `k*x`: a reshape of a reshape falls back to what it was."""
    for term in list(terms):
        if isinstance(term, Mod):
            whole = Div(term.of, term.by)
            k = terms.get(term, 0)
            if k and terms.get(whole) == k * term.by:
                del terms[term], terms[whole]
                offset += k * term.of.offset
                for inner, j in term.of.terms:
                    terms[inner] = terms.get(inner, 0) + k * j
    return offset, terms


def _order(item: tuple[Term, int]) -> tuple[int, int]:
    term = item[0]
    return (0, term.serial) if isinstance(term, Atom) else (1, hash(term))


def atom_coord(atom: Atom) -> Coord:
    """The coordinate that is this atom."""
    return Coord(0, {atom: 1})


def flatten(coords: tuple[Coord, ...], shape: tuple[int, ...]) -> Coord:
    """Row-major position of coordinates in a shape."""
    position = Coord(0)
    for coord, extent in zip(coords, shape, strict=True):
        position = position * extent + coord
    return position


def unflatten(position: Coord, shape: tuple[int, ...]) -> tuple[Coord, ...]:
    """Coordinates of a row-major position."""
    coords: list[Coord] = []
    for extent in reversed(shape):
        coords.append(position % extent if len(coords) < len(shape) - 1 else position)
        position = position // extent if extent else position
    return tuple(reversed(coords))
