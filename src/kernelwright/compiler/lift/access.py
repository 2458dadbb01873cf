"""Addresses to slices: where a kernel reads or writes, as a region of a sketch's tensor.

In: a flat address (elements from the buffer's begin) as an `Index` over loop variables and the axes of a tile (`axis(0)`, `axis(1)`
…, which run from 0 to the tile's extents), and a mask as a list of expressions that are all `>= 0` where the access happens. Out: a
`Slice`: the shape under which the buffer is best seen, one coordinate for each of its axes, and those parts of the mask that
the tensor's own borders do not already say. Example: `row * 781 + axis(0)` under `[780 - axis(0)]` in a buffer [64, 781] is
`x[row, 0:1024]` with nothing left of the mask.

What is relied on: the access itself is legal, that is, no element under the mask lies outside the buffer. So the slowest axis needs
no proof; every other coordinate is shown to stay inside its axis, by intervals or by looking at all values there are.

An integer tile computed at run time stands in an address as a name made by `data_symbol`; a coordinate with one in it is picked,
not sliced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import prod
from typing import Any

from kernelwright.compiler.lift.launches import row_major
from kernelwright.sketch.index import Interval, Monomial, Poly, polynomial, rejoined, simplify, symbols, to_index
from kernelwright.sketch.index import Ranges as Facts
from kernelwright.sketch.index.exhaustive import never_negative
from kernelwright.sketch.nodes import Index, IndexOp, Int, Sym

Ranges = Mapping[str, Interval]
AXIS = "@"
DATA = "?"


def axis(number: int) -> Sym:
    """The position along an axis of the tile."""
    return Sym(f"{AXIS}{number}")


def data_symbol(name: str, axes: Sequence[int]) -> Sym:
    """An integer tile by name; `axes` are the tile's axes along which it varies."""
    return Sym(f"{DATA}{name}:{','.join(map(str, axes))}")


def axes_in(index: Index) -> list[int]:
    """The tile's axes that an expression depends on."""
    found: set[int] = set()
    for name in symbols(index):
        if name.startswith(AXIS):
            found.add(int(name[len(AXIS) :]))
        elif name.startswith(DATA):
            found.update(int(part) for part in name.rpartition(":")[2].split(",") if part)
    return sorted(found)


def minus(left: Index, right: Index) -> Index:
    """`left - right`, simplified."""
    return simplify(IndexOp("-", left, right))


def folded(index: Index, ranges: Ranges) -> Index:
    """The expression with every `//`, `%`, `min`, `max` taken away that the ranges decide."""
    return to_index(Facts(dict(ranges), others=None).simplified(polynomial(index)))


def with_axes(ranges: Ranges, extents: Sequence[int]) -> dict[str, Interval]:
    """Ranges of all names, the tile's axes included."""
    return {**ranges, **{axis(k).name: (0, extent - 1) for k, extent in enumerate(extents)}}


# ---------------------------------------------------------------- slices


@dataclass(frozen=True)
class Slice:
    """`coordinates` in a tensor of `shape` (the buffer seen under it); `left` are the conditions of the mask that the borders of
    the tensor do not say; `inside` means that no element leaves the tensor, mask or not."""

    shape: tuple[int, ...]
    coordinates: tuple[Index, ...]
    left: tuple[Index, ...]
    inside: bool

    def gathers(self) -> bool:
        """Whether some coordinate has to be picked."""
        return any(kind == "pick" for kind in self.kinds())

    def picked(self) -> int:
        """How many axes of the tile are picked along: the work of finding positions grows with their extents."""
        pairs = zip(self.coordinates, self.kinds(), strict=True)
        return len({number for coordinate, kind in pairs if kind == "pick" for number in (-1, *axes_in(coordinate))})

    def kinds(self) -> list[str]:
        """For each coordinate: "at" (no axis of the tile), "span" (one axis, evenly), "pick" (anything else)."""
        used: dict[int, int] = {}
        for coordinate in self.coordinates:
            for number in axes_in(coordinate):
                used[number] = used.get(number, 0) + 1
        kinds = []
        for coordinate in self.coordinates:
            own = axes_in(coordinate)
            if any(name.startswith(DATA) for name in symbols(coordinate)):
                kinds.append("pick")
            elif not own:
                kinds.append("at")
            elif len(own) == 1 and used[own[0]] == 1 and step_of(coordinate, own[0]) is not None:
                kinds.append("span")
            else:
                kinds.append("pick")
        return kinds


def step_of(index: Index, number: int) -> int | None:
    """The constant by which an expression moves along an axis, or None where it does not do so evenly."""
    poly = polynomial(index)
    return (stride.constant or None) if (stride := poly.coefficient(axis(number).name)) is not None else None


def sliced(
    address: Index,
    extents: Sequence[int],
    mask: Sequence[Index],
    ranges: Ranges,
    shape: Sequence[int],
    hints: Sequence[Any] = (),
) -> Slice:
    """The best slice of a buffer for an address. `shape` is the buffer's own; `hints` are further shapes to look at first."""
    every = with_axes(ranges, extents)
    conditions = [condition for condition in mask if not never_negative(condition, every)]
    best: tuple[tuple[int, ...], Slice] | None = None
    plain = folded(address, every)
    forms = [to_index(rejoined(polynomial(plain)))]
    if forms[0] != plain:
        forms.append(plain)
    for form in forms:
        for candidate in _shapes(form, tuple(shape), hints):
            for coordinates in _coordinates(form, candidate, every):
                found = _checked(coordinates, candidate, conditions, every)
                if found is None:
                    continue
                score = (found.picked(), len(found.left), len(candidate) if found.gathers() else 0)
                if best is None or score < best[0]:
                    best = score, found
                if not found.gathers() and not found.left:
                    return found
                break
    if best is None:
        raise AssertionError("the flat view always fits")
    return best[1]


def _shapes(address: Index, shape: tuple[int, ...], hints: Sequence[Any]) -> Iterator[tuple[int, ...]]:
    """Shapes under which the buffer can be seen: those given, its own, neighbours put together, flat, and that of the
    address's own strides."""
    total = prod(shape)
    seen: set[tuple[int, ...]] = set()
    tried: list[tuple[int, ...]] = [tuple(hint) for hint in hints] + [shape]
    for cuts in product((True, False), repeat=max(len(shape) - 1, 0)):
        merged = [shape[0]] if shape else []
        for extent, cut in zip(shape[1:], cuts, strict=True):
            if cut:
                merged.append(extent)
            else:
                merged[-1] *= extent
        tried.append(tuple(merged))
    tried.append((total,))
    strides = sorted({abs(c) for m, c in polynomial(address).terms if m} | {1}, reverse=True)
    if all(a % b == 0 for a, b in pairwise(strides)) and total % strides[0] == 0:
        tried.append((total // strides[0], *(a // b for a, b in pairwise(strides))))
    for candidate in tried:
        if candidate not in seen and prod(candidate) == total:
            seen.add(candidate)
            yield candidate


def _coordinates(address: Index, shape: tuple[int, ...], ranges: Ranges) -> Iterator[tuple[Index, ...]]:
    """Ways to write the address as a sum of coordinates times strides. The terms go where their factors say; a number that is
    added may belong to either of two neighbours (`-1` row and `+2` columns)."""
    strides = row_major(shape)
    parts: list[dict[Monomial, int]] = [{} for _ in shape]
    offset = 0
    for monomial, factor in polynomial(address).terms:
        if not monomial:
            offset = factor
            continue
        left = factor
        for k, step in enumerate(strides):
            if shape[k] == 1 and k:
                continue
            count = abs(left) // step * (1 if left > 0 else -1)
            if count:
                parts[k][monomial] = count
                left -= count * step
        if left:
            return
    for numbers in _offsets(offset, shape, strides):
        yield tuple(to_index(Poly.of(part) + number) for part, number in zip(parts, numbers, strict=True))


def _offsets(offset: int, shape: Sequence[int], strides: Sequence[int]) -> Iterator[tuple[int, ...]]:
    if not shape:
        if offset == 0:
            yield ()
        return
    if len(shape) == 1:
        if offset % strides[0] == 0:
            yield (offset // strides[0],)
        return
    toward = abs(offset) // strides[0] * (1 if offset > 0 else -1)
    seen = []
    for count in (toward, offset // strides[0], offset // strides[0] + 1):
        if count in seen or (shape[0] == 1 and count):
            continue
        seen.append(count)
        for rest in _offsets(offset - count * strides[0], shape[1:], strides[1:]):
            yield (count, *rest)


def _checked(coordinates: tuple[Index, ...], shape: tuple[int, ...], mask: Sequence[Index], ranges: Ranges) -> Slice | None:
    """The slice, if every coordinate but the slowest stays on its axis wherever the mask holds."""
    borders: list[Index] = []
    inside = True
    for number, (coordinate, extent) in enumerate(zip(coordinates, shape, strict=True)):
        ends = (coordinate, minus(Int(extent - 1), coordinate))
        for end in ends:
            if never_negative(end, ranges):
                continue
            inside = False
            borders.append(end)
            if number and not never_negative(end, ranges, mask):
                return None
    left = [condition for condition in mask if not never_negative(condition, ranges, borders)]
    return Slice(shape, coordinates, tuple(left), inside)


def fixed(index: Index) -> int | None:
    """The number an expression is, or None."""
    return polynomial(index).constant
