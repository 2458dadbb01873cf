"""A kernel's body while it is written: statements, names, conditions, and access to memory by pointers.

In: values (values.py) from the reader of a language. Out: statements of a sketch. Shared by the languages: what a load with a mask is
in a sketch, what a masked store is, how an `if` over loop variables is written (a loop that runs once or not at all).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from kernelwright.compiler.lift.access import (
    DATA,
    Slice,
    axes_in,
    axis,
    data_symbol,
    fixed,
    folded,
    sliced,
    step_of,
    with_axes,
)
from kernelwright.compiler.lift.grid import Grid
from kernelwright.compiler.lift.launches import Buffer
from kernelwright.compiler.lift.regions import index_tile, load_slice, parted, scalar, store_slice
from kernelwright.compiler.lift.values import Data, Ints, Mask, Num, Ptr, Shape, Value, elements
from kernelwright.core.dtypes import FLOATS
from kernelwright.core.errors import CannotLift
from kernelwright.core.operations import BINARY, UNARY
from kernelwright.sketch import nodes
from kernelwright.sketch.check.declarations import RESERVED
from kernelwright.sketch.index import Interval, simplify, substitute, symbols, to_index
from kernelwright.sketch.index.exhaustive import never_negative
from kernelwright.sketch.nodes import DType, Index, IndexOp, Int, Sym, Tile

ZERO = Int(0)


class Views:
    """The shapes under which buffers are seen: a name for each."""

    def __init__(self, buffers: Mapping[str, Buffer]) -> None:
        self.buffers = buffers
        self.made: dict[tuple[str, Shape], str] = {}

    def name(self, buffer: str, shape: Shape) -> str:
        """The tensor that shows a buffer under a shape."""
        if shape == self.buffers[buffer].shape:
            return buffer
        return self.made.setdefault((buffer, shape), f"{buffer}_as_{'x'.join(map(str, shape))}")


class Program:
    """One kernel of a sketch in the making."""

    def __init__(self, grid: Grid, views: Views, taken: set[str], path: str) -> None:
        self.grid = grid
        self.views = views
        self.path = path
        self.line = 0
        self.out: list[nodes.Statement] = []
        self.data: dict[str, Data] = {}
        self.loops: dict[str, Interval] = {}
        self.assumed: list[Index] = []
        self.predicates: list[Mask] = []
        self.notes: list[str] = []
        self._taken = taken

    # ---- names and statements

    def refuse(self, reason: str) -> CannotLift:
        """The error for what stands at the present line."""
        return CannotLift(reason, path=self.path, line=self.line)

    def fresh(self, hint: str) -> str:
        """A name that nothing has yet."""
        base = re.sub(r"\W", "", re.sub(r"(_\d+)?(#\d+)?$", "", hint.lstrip("%"))) or "t"
        if not base[0].isalpha():
            base = f"t{base}".rstrip("_") if base.strip("_0123456789") else "t"
        name, number = base, 1
        while name in self._taken or name in RESERVED or name in UNARY or name in BINARY or not name.isidentifier():
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name

    def bind(self, value: Data, hint: str) -> Data:
        """The tile under a name."""
        if isinstance(value.node, nodes.Var):
            return value
        name = self.fresh(hint)
        self.out.append(nodes.Assign(name, value.node, self.line))
        return Data(nodes.Var(name), value.shape, value.actual, value.dtype)

    @contextmanager
    def block(self) -> Iterator[list[nodes.Statement]]:
        """Statements written in here go to a list of their own."""
        outer, self.out = self.out, []
        try:
            yield self.out
        finally:
            self.out = outer

    @property
    def ranges(self) -> dict[str, Interval]:
        """What is known about every name of an integer."""
        return {**self.grid.ranges(), **self.loops}

    # ---- values in other forms

    def as_data(self, value: Value, dtype: DType | None = None) -> Data:
        """A value as a tile. Integers take `dtype` or that of their width."""
        match value:
            case Data():
                return (
                    value
                    if dtype is None or value.dtype is dtype
                    else Data(nodes.Cast(value.node, dtype), value.shape, value.actual, dtype)
                )
            case Num(number, shape, own):
                return Data(nodes.Full((Int(1),) * len(shape), number, own), shape, (1,) * len(shape), own)
            case Ints(index, shape, bits):
                wanted = dtype or {64: DType.i64, 32: DType.i32, 16: DType.i16, 8: DType.i8}[bits]
                return self._integers(index, shape, wanted)
            case Mask():
                return Data(self.mask_tile(value), value.shape, self._mask_extents(value), DType.bool)
        raise self.refuse("a pointer is used as a number")

    def _integers(self, index: Index, shape: Shape, dtype: DType) -> Data:
        number = fixed(index)
        if number is not None:
            return Data(nodes.Full((Int(1),) * len(shape), number, dtype), shape, (1,) * len(shape), dtype)
        tile = index_tile(index, shape, self._tiles(len(shape), index))
        used = axes_in(index)
        actual = tuple(extent if k in used else 1 for k, extent in enumerate(shape))
        return Data(tile if dtype is DType.i64 else nodes.Cast(tile, dtype), shape, actual, dtype)

    def _tiles(self, rank: int, *indices: Index) -> dict[str, Tile]:
        """The tiles of the names in expressions; a single number that meets a tile gets that tile's rank."""
        found: dict[str, Tile] = {}
        for name in sorted({name for index in indices for name in symbols(index) if name.startswith(DATA)}):
            data = self.data[name]
            found[name] = data.node if len(data.shape) == rank else nodes.Reshape(data.node, (Int(1),) * rank)
        return found

    def as_ints(self, value: Value, hint: str) -> Ints:
        """An integer tile as an expression, so that it can stand in an address."""
        if isinstance(value, Ints):
            return value
        if not isinstance(value, Data) or value.dtype in FLOATS:
            raise self.refuse("an address is made of something that is not an integer")
        bits = value.dtype.bits
        bound = self.bind(value, hint)
        wide = bound.node if bound.dtype is DType.i64 else nodes.Cast(bound.node, DType.i64)
        moving = [k for k, extent in enumerate(bound.actual) if extent > 1]
        symbol = data_symbol(str(bound.node.name) if isinstance(bound.node, nodes.Var) else hint, moving)
        self.data[symbol.name] = Data(wide, bound.shape, bound.actual, DType.i64)
        return Ints(symbol, value.shape, bits)

    def mask_tile(self, mask: Mask) -> Tile:
        """A condition as a bool tile of full rank."""
        total: Tile | None = mask.rest.node if mask.rest is not None else None
        for condition in mask.conditions:
            tile = self._condition(condition, mask.shape)
            total = tile if total is None else nodes.Binary("and", total, tile)
        return total if total is not None else nodes.Full((Int(1),) * len(mask.shape), True, DType.bool)

    def _condition(self, condition: Index, shape: Shape) -> Tile:
        """`condition >= 0`, with what moves on the left and what stands still on the right."""
        moving, still = parted(condition)
        if not moving:
            truth: Tile = nodes.Binary("ge", nodes.FromIndex(condition), nodes.Number(0))
            return nodes.Reshape(truth, (Int(1),) * len(shape)) if shape else truth
        if all(count < 0 for _, count in moving.terms):
            left = index_tile(to_index(moving * -1), shape, self._tiles(len(shape), condition))
            return nodes.Binary("le", left, scalar(to_index(still)))
        left = index_tile(to_index(moving), shape, self._tiles(len(shape), condition))
        return nodes.Binary("ge", left, scalar(to_index(still * -1)))

    def _mask_extents(self, mask: Mask) -> Shape:
        used = {k for condition in mask.conditions for k in axes_in(condition)}
        if mask.rest is not None:
            used |= {k for k, extent in enumerate(mask.rest.actual) if extent > 1}
        return tuple(extent if k in used else 1 for k, extent in enumerate(mask.shape))

    def decided(self, mask: Mask) -> bool | None:
        """Whether a condition always holds, never holds, or neither is known."""
        every = with_axes(self.ranges, mask.shape)
        if any(never_negative(simplify(IndexOp("-", Int(-1), c)), every, self.assumed) for c in mask.conditions):
            return False
        if mask.rest is None and all(never_negative(c, every, self.assumed) for c in mask.conditions):
            return True
        return None

    # ---- memory

    def _guard(self, mask: Mask | None, shape: Shape) -> Mask:
        """The mask of an access with the conditions of the branches around it."""
        whole = mask or Mask((), shape)
        for predicate in self.predicates:
            rest = whole.rest
            if predicate.rest is not None:
                node = predicate.rest.node
                more = Data(
                    nodes.Reshape(node, (Int(1),) * len(shape)) if shape else node, shape, (1,) * len(shape), DType.bool
                )
                rest = more if rest is None else Data(nodes.Binary("and", rest.node, more.node), shape, rest.actual, DType.bool)
            whole = Mask((*whole.conditions, *predicate.conditions), shape, rest)
        return whole

    def _slice(self, pointer: Ptr, mask: Mask) -> Slice:
        buffer = self.views.buffers[pointer.buffer]
        found = sliced(pointer.index, pointer.shape, [*mask.conditions, *self.assumed], self.ranges, buffer.shape)
        left = tuple(condition for condition in found.left if condition not in self.assumed)
        return Slice(found.shape, found.coordinates, left, found.inside)

    def load(self, pointer: Ptr, mask: Mask | None, other: Value | None) -> Data:
        """The elements at the addresses; `other` where the mask does not hold."""
        shape = pointer.shape
        guard = self._guard(mask, shape)
        slice = self._slice(pointer, guard)
        dtype = self.views.buffers[pointer.buffer].dtype
        neutral: float | int | bool = 0.0 if dtype in FLOATS else False if dtype is DType.bool else 0
        number = self._number(other, dtype) if other is not None else neutral
        masked = bool(guard.conditions) or guard.rest is not None
        tensor = self.views.name(pointer.buffer, slice.shape)
        pad = None if slice.inside and not (slice.gathers() and masked) else neutral if number is None else number
        tile = load_slice(tensor, slice, shape, pad, self._tiles(len(shape), *slice.coordinates), self.line)
        used = {k for coordinate in slice.coordinates for k in axes_in(coordinate)}
        actual = tuple(extent if k in used else 1 for k, extent in enumerate(shape))
        left = Mask(slice.left if number is not None else guard.conditions, shape, guard.rest)
        if left.conditions or left.rest is not None:
            chosen = (
                self.as_data(other, dtype).node if other is not None and number is None else nodes.Number(number or neutral)
            )
            tile = nodes.Where(self.mask_tile(left), tile, chosen)
            actual = shape
            return Data(nodes.Expand(tile, tuple(map(Int, shape))), shape, actual, dtype)
        return Data(tile, shape, actual, dtype)

    def _number(self, value: Value, dtype: DType) -> float | int | bool | None:
        """A value that is one number, as a literal of the dtype."""
        if isinstance(value, Num):
            return value.value
        if isinstance(value, Ints) and (number := fixed(value.index)) is not None:
            return bool(number) if dtype is DType.bool else number
        if isinstance(value, Mask) and (truth := self.decided(value)) is not None:
            return truth
        return None

    def store(self, pointer: Ptr, value: Value, mask: Mask | None, mode: str = "set") -> None:
        """Writes elements where the mask holds."""
        shape = pointer.shape
        buffer = self.views.buffers[pointer.buffer]
        if buffer.role not in ("temp", "output"):
            raise self.refuse(f"the kernel writes to {buffer.name}, which belongs to the caller")
        guard = self._guard(mask, shape)
        if self.decided(guard) is False:
            return
        slice = self._slice(pointer, guard)
        tile = self.as_data(value, buffer.dtype)
        if mode != "set" and (slice.left or guard.rest is not None):
            tile = self._masked_update(tile, Mask(slice.left, shape, guard.rest), mode, buffer.dtype)
            slice = Slice(slice.shape, slice.coordinates, (), slice.inside)
            guard = Mask((), shape)
        scalars = [condition for condition in slice.left if not axes_in(condition) and not has_data(condition)]
        slice = Slice(slice.shape, slice.coordinates, tuple(c for c in slice.left if c not in scalars), slice.inside)
        with self.when(scalars):
            self._store(pointer, slice, tile, guard.rest, mode)

    def _store(self, pointer: Ptr, slice: Slice, tile: Data, rest: Data | None, mode: str) -> None:
        shape = pointer.shape
        node, left = tile.full() if elements(shape) else tile.node, []
        extents = list(shape)
        for condition in slice.left:
            cut = self._cut(condition, extents)
            if cut is None:
                left.append(condition)
                continue
            number, first, count = cut
            region = tuple(
                nodes.Span(Int(first if k == number else 0), Int(count if k == number else e)) for k, e in enumerate(extents)
            )
            node, extents[number] = nodes.Part(node, region), count
            moved = {axis(number).name: IndexOp("+", axis(number), Int(first))}
            slice = Slice(slice.shape, tuple(substitute(c, moved) for c in slice.coordinates), (), slice.inside)
            left = [substitute(c, moved) for c in left]
        if left or rest is not None:
            if tuple(extents) != shape:
                raise self.refuse("a store has a mask that is partly a border and partly something else")
            flat = (self.views.buffers[pointer.buffer].elements,)
            where = self.mask_tile(Mask(tuple(left), shape, rest))
            symbol = data_symbol(self.fresh("at"), list(range(len(shape))))
            position = nodes.Where(
                where, index_tile(pointer.index, shape, self._tiles(len(shape), pointer.index)), nodes.Number(flat[0])
            )
            self.data[symbol.name] = Data(position, shape, shape, DType.i64)
            slice = Slice(flat, (symbol,), (), False)
        missing = set(range(len(extents))) - {k for c in slice.coordinates for k in axes_in(c)}
        for number in sorted(missing, reverse=True):
            if extents[number] > 1:
                raise self.refuse("a store writes several elements of a tile to one place")
        tensor = self.views.name(pointer.buffer, slice.shape)
        tiles = self._tiles(len(shape), *slice.coordinates)
        self.out.append(store_slice(tensor, slice, extents, node, mode, tiles, self.line))

    def _cut(self, condition: Index, extents: Sequence[int]) -> tuple[int, int, int] | None:
        """A condition that keeps a fixed part of one axis: (axis, first, how many)."""
        used = axes_in(condition)
        if len(used) != 1 or has_data(condition):
            return None
        step = step_of(condition, used[0])
        bound = fixed(substitute(condition, {axis(used[0]).name: 0}))
        if step is None or bound is None:
            return None
        kept = [k for k in range(extents[used[0]]) if step * k + bound >= 0]
        return (used[0], kept[0], len(kept)) if kept else None

    def _masked_update(self, tile: Data, mask: Mask, mode: str, dtype: DType) -> Data:
        """An atomic update that changes nothing where the mask does not hold."""
        if mode == "add":
            neutral: float | int = 0.0 if dtype in FLOATS else 0
        elif dtype in FLOATS:
            neutral = float("-inf") if mode == "max" else float("inf")
        else:
            raise self.refuse(f"an atomic {mode} of integers under this mask")
        node = nodes.Where(self.mask_tile(mask), tile.node, nodes.Number(neutral))
        return Data(nodes.Expand(node, tuple(map(Int, tile.shape))), tile.shape, tile.shape, tile.dtype)

    # ---- conditions on loop variables

    @contextmanager
    def when(self, conditions: Sequence[Index], *, holds: bool = True) -> Iterator[None]:
        """Statements that run only when all conditions are `>= 0` (or, not all of them are): a loop of one iteration or none."""
        if not conditions and holds:
            yield
            return
        runs: Index = Int(1)
        for condition in conditions:
            one = IndexOp("max", ZERO, IndexOp("min", Int(1), IndexOp("+", condition, Int(1))))
            runs = one if runs == Int(1) else IndexOp("*", runs, one)
        if not holds:
            runs = IndexOp("-", Int(1), runs)
        runs = folded(simplify(runs), self.ranges)
        before = len(self.assumed)
        if holds:
            self.assumed.extend(conditions)
        elif len(conditions) == 1:
            self.assumed.append(simplify(IndexOp("-", Int(-1), conditions[0])))
        name = self.fresh("once")
        with self.block() as inner:
            yield
        del self.assumed[before:]
        if inner:
            self.out.append(nodes.For(name, "range", ZERO, runs, Int(1), tuple(inner), line=self.line))


def has_data(index: Index) -> bool:
    """Whether an expression depends on what a tensor holds."""
    return any(name.startswith(DATA) for name in symbols(index))


__all__ = ["Program", "Sym", "Views", "has_data"]
