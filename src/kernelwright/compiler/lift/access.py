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

import numpy as np

from kernelwright.compiler.lift.launches import row_major
from kernelwright.sketch.index.symbolic import (
    Atom,
    Interval,
    Monomial,
    Poly,
    bounds,
    constant,
    polynomial,
    simplify,
    symbols,
    to_index,
)
from kernelwright.sketch.nodes import Index, IndexOp, Int, Sym

Ranges = Mapping[str, Interval]
MOST_POINTS = 1 << 20
"""Points that a proof by looking at all of them may take."""
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


def with_axes(ranges: Ranges, extents: Sequence[int]) -> dict[str, Interval]:
    """Ranges of all names, the tile's axes included."""
    return {**ranges, **{axis(k).name: (0, extent - 1) for k, extent in enumerate(extents)}}


# ---------------------------------------------------------------- proofs


def evaluate_all(index: Index, env: Mapping[str, Any]) -> Any:
    """The values of an expression for arrays of values of its names."""
    match index:
        case Int(value):
            return np.int64(value)
        case Sym(name):
            return env[name]
        case IndexOp(op, left, right):
            a, b = evaluate_all(left, env), evaluate_all(right, env)
            match op:
                case "+":
                    return a + b
                case "-":
                    return a - b
                case "*":
                    return a * b
                case "//":
                    return a // b
                case "%":
                    return a % b
                case "min":
                    return np.minimum(a, b)
                case "max":
                    return np.maximum(a, b)
    raise TypeError(f"not an index: {index!r}")


def never_negative(index: Index, ranges: Ranges, given: Sequence[Index] = ()) -> bool:
    """Whether `index >= 0` wherever all of `given` are, for all values of the names in their ranges."""
    low = bounds(index, ranges)[0]
    if low is not None and low >= 0:
        return True
    for known in given:
        rest = bounds(minus(index, known), ranges)[0]
        if rest is not None and rest >= 0:
            return True
        for factor in _factors(index, known):
            rest = bounds(minus(index, simplify(IndexOp("*", known, Int(factor)))), ranges)[0]
            if rest is not None and rest >= 0:
                return True
    return _by_all_values(index, ranges, given)


def _factors(index: Index, known: Index) -> Iterator[int]:
    """By what a known expression could be multiplied to take the first terms of another away."""
    wanted, have = polynomial(index), polynomial(known)
    found = {wanted[m] // have[m] for m in have if m and m in wanted and wanted[m] % have[m] == 0}
    yield from sorted(factor for factor in found if factor > 1)


def _by_all_values(index: Index, ranges: Ranges, given: Sequence[Index]) -> bool:
    names = sorted(symbols(index))
    useful = [known for known in given if symbols(known) & set(names)]
    names = sorted(set(names).union(*(symbols(known) for known in useful)))
    spans: list[tuple[int, int]] = []
    for name in names:
        low, high = ranges.get(name, (None, None))
        if low is None or high is None:
            return False
        spans.append((low, high))
    if prod(high - low + 1 for low, high in spans) > MOST_POINTS:
        return False
    env: dict[str, Any] = {}
    for position, (name, (low, high)) in enumerate(zip(names, spans, strict=True)):
        shape = [1] * len(names)
        shape[position] = high - low + 1
        env[name] = np.arange(low, high + 1, dtype=np.int64).reshape(shape)
    try:
        with np.errstate(all="raise"):
            wrong = evaluate_all(index, env) < 0
            for known in useful:
                wrong = wrong & (evaluate_all(known, env) >= 0)
    except FloatingPointError:
        return False
    return not bool(np.any(wrong))


def folded(index: Index, ranges: Ranges) -> Index:
    """The expression with every `//`, `%`, `min`, `max` taken away that the ranges decide."""
    match index:
        case IndexOp(op, left, right):
            a, b = folded(left, ranges), folded(right, ranges)
            low, high = bounds(a, ranges)
            least, most = bounds(b, ranges)
            if op in ("//", "%") and isinstance(b, Int) and b.value > 0 and low is not None and high is not None:
                if low // b.value == high // b.value:
                    return Int(low // b.value) if op == "//" else minus(a, Int(low // b.value * b.value))
                inner = _split(a, b.value, ranges)
                if inner is not None:
                    return inner[0] if op == "//" else inner[1]
            if op in ("min", "max") and None not in (low, high, least, most):
                gap = bounds(minus(a, b), ranges)
                if gap[1] is not None and gap[1] <= 0:
                    return a if op == "min" else b
                if gap[0] is not None and gap[0] >= 0:
                    return b if op == "min" else a
            return simplify(IndexOp(op, a, b))
    return index


def _split(index: Index, divisor: int, ranges: Ranges) -> tuple[Index, Index] | None:
    """Quotient and remainder of a sum in which the terms that the divisor does not divide stay within one multiple of it."""
    poly = polynomial(index)
    whole = {m: c // divisor for m, c in poly.items() if c % divisor == 0}
    rest = to_index({m: c for m, c in poly.items() if c % divisor})
    low, high = bounds(rest, ranges)
    if not whole or low is None or high is None or low // divisor != high // divisor:
        return None
    shift = low // divisor
    quotient = simplify(IndexOp("+", to_index(whole), Int(shift)))
    return quotient, minus(rest, Int(shift * divisor))


def recombined(index: Index) -> Index:
    """The expression with `(x // d) * d + x % d` put together to x again."""
    poly = polynomial(index)
    changed = True
    while changed:
        changed = False
        for monomial, scale in list(poly.items()):
            for atom in monomial:
                if not isinstance(atom, IndexOp) or atom.op != "%" or not isinstance(atom.right, Int):
                    continue
                others = list(monomial)
                others.remove(atom)
                quotient = polynomial(IndexOp("//", atom.left, atom.right))
                want: Poly = {}
                for m, c in quotient.items():
                    want[_sorted((*m, *others))] = c * atom.right.value * scale
                if all(poly.get(m) == c for m, c in want.items()):
                    for m in (*want, monomial):
                        del poly[m]
                    term: Index = simplify(IndexOp("*", atom.left, to_index({tuple(others): scale})))
                    poly = polynomial(IndexOp("+", to_index(poly), term))
                    changed = True
                    break
            if changed:
                break
    return to_index(poly)


def _sorted(monomial: tuple[Atom, ...]) -> Monomial:
    whole: Index = Int(1)
    for atom in monomial:
        whole = IndexOp("*", whole, atom)
    return next(iter(polynomial(whole)))


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
    factor = poly.get((axis(number),))
    others = [m for m in poly if m != (axis(number),) and any(axis(number).name in symbols(a) for a in m)]
    return factor if factor and not others else None


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
    plain = folded(simplify(address), every)
    forms = [recombined(plain)]
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
    strides = sorted({abs(c) for m, c in polynomial(address).items() if m} | {1}, reverse=True)
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
    parts: list[Poly] = [{} for _ in shape]
    offset = 0
    for monomial, factor in polynomial(address).items():
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
        yield tuple(simplify(IndexOp("+", to_index(part), Int(number))) for part, number in zip(parts, numbers, strict=True))


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
    return constant(polynomial(index))
