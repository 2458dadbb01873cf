"""Slices as nodes of a sketch: loads, stores, and integer expressions as tiles.

In: a `Slice` (access.py) and the tile's extents. Out: a Load whose result has one axis for each axis of the tile (extent 1 where the
address does not depend on it), or the region and the value of a Store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelwright.compiler.lift.access import AXIS, DATA, Slice, axes_in, step_of
from kernelwright.sketch import nodes
from kernelwright.sketch.index import Atom, Opaque, Poly, poly, polynomial, substitute, to_index
from kernelwright.sketch.nodes import Index, Int, Tile

_TILE_OP = {"+": "add", "-": "sub", "*": "mul", "//": "floordiv", "%": "mod", "min": "minimum", "max": "maximum"}


def index_tile(index: Index, extents: Sequence[int], data: Mapping[str, Tile] | None = None) -> Tile:
    """An integer expression as an i64 tile of the tile's rank; `data` has the tiles of the names made by `data_symbol`, as i64 tiles
    of full rank."""
    rank = len(extents)
    moving, still = parted(index)
    total: Tile | None = None
    for monomial, factor in moving.terms:
        scale = to_index(Poly(((tuple(a for a in monomial if not _moves(a)), factor),)))
        term: Tile | None = None
        for atom in monomial:
            if _moves(atom):
                found = _atom(atom, extents, data or {})
                term = found if term is None else nodes.Binary("mul", term, found)
        assert term is not None
        if scale != Int(1):
            term = nodes.Binary("mul", term, scalar(scale))
        total = term if total is None else nodes.Binary("add", total, term)
    if total is None:
        return nodes.Reshape(nodes.FromIndex(index), (Int(1),) * rank) if rank else nodes.FromIndex(index)
    if still:
        total = nodes.Binary("add", total, scalar(to_index(still)))
    return total


def scalar(index: Index) -> Tile:
    """An integer expression without axes, where it meets a tile."""
    return nodes.Number(index.value) if isinstance(index, Int) else nodes.FromIndex(index)


def parted(index: Index) -> tuple[Poly, Poly]:
    """An expression's terms that move along the tile's axes, and those that stand still."""
    terms = polynomial(index).terms
    moving = tuple(term for term in terms if any(map(_moves, term[0])))
    return Poly(moving), Poly(tuple(term for term in terms if term not in moving))


def _moves(atom: Atom) -> bool:
    return any(name.startswith((AXIS, DATA)) for name in poly(atom).names)


def _atom(atom: Atom, extents: Sequence[int], data: Mapping[str, Tile]) -> Tile:
    if isinstance(atom, str):
        if atom.startswith(DATA):
            return data[atom]
        return spread(nodes.Iota(Int(extents[int(atom[len(AXIS) :])])), (int(atom[len(AXIS) :]),), len(extents))
    if isinstance(atom, Opaque):
        parts = [to_index(side) for side in (atom.left, atom.right)]
        sides = [index_tile(side, extents, data) if any(parted(side)[0].terms) else scalar(side) for side in parts]
        return nodes.Binary(_TILE_OP[atom.op], sides[0], sides[1])
    raise TypeError(f"not an atom: {atom!r}")


def spread(tile: Tile, axes: Sequence[int], rank: int) -> Tile:
    """A tile whose axes are these of `rank`, in ascending order, with extent 1 put in for the others."""
    for position in range(rank):
        if position not in axes:
            tile = nodes.Unsqueeze(tile, position)
    return tile


def gathered(tile: Tile, axes: Sequence[int], rank: int) -> Tile:
    """The opposite of `spread`: only these axes stay; the others have extent 1."""
    for position in reversed(range(rank)):
        if position not in axes:
            tile = nodes.Squeeze(tile, position)
    return tile


def region_of(slice: Slice, extents: Sequence[int], data: Mapping[str, Tile]) -> tuple[tuple[nodes.Axis, ...], list[int], bool]:
    """The region, which axis of the tile each axis of the region's shape is, and whether an axis of extent 1 stands first (picks of
    single positions)."""
    rank = len(extents)
    kinds = slice.kinds()
    pairs = list(zip(slice.coordinates, kinds, strict=True))
    picked = sorted({number for coordinate, kind in pairs if kind == "pick" for number in axes_in(coordinate)})
    order = list(picked)
    region: list[nodes.Axis] = []
    for coordinate, kind in pairs:
        match kind:
            case "at":
                region.append(nodes.At(coordinate))
            case "span":
                (number,) = axes_in(coordinate)
                step = step_of(coordinate, number)
                assert step is not None
                start = substitute(coordinate, {f"{AXIS}{number}": 0})
                region.append(nodes.Span(start, Int(extents[number]), Int(step)))
                order.append(number)
            case _:
                tile = gathered(index_tile(coordinate, extents, data), picked, rank)
                region.append(nodes.Pick(tile if picked else nodes.Reshape(tile, (Int(1),))))
    return tuple(region), order, "pick" in kinds and not picked


def load_slice(
    tensor: str, slice: Slice, extents: Sequence[int], pad: float | int | bool | None, data: Mapping[str, Tile], line: int = 0
) -> Tile:
    """The elements of a slice, with one axis for each of the tile's."""
    region, order, single = region_of(slice, extents, data)
    tile: Tile = nodes.Load(tensor, region, pad, line=line)
    if single:
        tile = nodes.Squeeze(tile, 0)
    ascending = sorted(order)
    if order != ascending:
        tile = nodes.Permute(tile, tuple(order.index(number) for number in ascending))
    return spread(tile, ascending, len(extents))


def store_slice(
    tensor: str, slice: Slice, extents: Sequence[int], value: Tile, mode: str, data: Mapping[str, Tile], line: int = 0
) -> nodes.Store:
    """A store of a tile of the tile's rank (extents may be 1); axes that the address does not have must have extent 1."""
    region, order, single = region_of(slice, extents, data)
    ascending = sorted(order)
    if not isinstance(value, nodes.Number):
        value = gathered(value, ascending, len(extents))
        if order != ascending:
            value = nodes.Permute(value, tuple(ascending.index(number) for number in order))
        if single:
            value = nodes.Unsqueeze(value, 0)
    return nodes.Store(tensor, region, value, mode, line)  # type: ignore[arg-type]
