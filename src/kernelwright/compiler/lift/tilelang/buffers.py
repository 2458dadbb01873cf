"""A block's own memory as tiles: shared memory, fragments and variables are names that are bound anew with each write.

In: a buffer, a position for each lane of the parallel loops, a value. Out: a part of the named tile, or an assignment to its name. A name
that is bound before a loop and again inside it is carried along by the sketch's own rule, which is what memory does. A buffer that is
read where nothing binds its name (another iteration did) is bound at the kernel's begin to what fresh memory holds at worst: NaN.

Memory that every thread has for itself has, inside a parallel loop, one copy for each iteration: the loop's axes stand first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kernelwright.compiler.lift.access import DATA, axes_in, axis, fixed, step_of
from kernelwright.compiler.lift.program import Program
from kernelwright.compiler.lift.regions import gathered, index_tile, scalar, spread
from kernelwright.compiler.lift.values import Data, Mask, Shape, Value
from kernelwright.core.dtypes import FLOATS
from kernelwright.sketch import nodes
from kernelwright.sketch.index import simplify, substitute, symbols
from kernelwright.sketch.nodes import DType, Index, IndexOp, Int, Tile

_LEVELS = {"local.fragment": "accumulator", "local": "register", "local.var": "register"}


@dataclass(frozen=True)
class Held:
    """A buffer of a block (`key` is its hash): the tile's name, extents and dtype; `own` if every thread has one."""

    key: int
    name: str
    shape: Shape
    dtype: DType
    level: str
    own: bool


class Buffers:
    """The tiles of one kernel."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.lanes: Shape = ()
        self.held: dict[int, Held] = {}
        self.bound: list[set[str]] = [set()]
        self.begin: list[nodes.Statement] = []

    def allocate(self, buffer: Any, shape: Shape, dtype: DType) -> None:
        """A buffer that a block declares."""
        scope = str(buffer.scope())
        name = self.program.fresh(str(buffer.name))
        self.held[hash(buffer.data)] = Held(
            hash(buffer), name, shape, dtype, _LEVELS.get(scope, "fast"), scope in ("local", "local.var")
        )

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names that are first bound in here end with it."""
        self.bound.append(set())
        yield
        self.bound.pop()

    def _rebind(self, held: Held, tile: Tile) -> None:
        if not any(held.name in names for names in self.bound):
            self.bound[-1].add(held.name)
        self.program.out.append(nodes.Assign(held.name, tile, self.program.line))

    def _tile(self, held: Held) -> Tile:
        """The name, which something binds."""
        if not any(held.name in names for names in self.bound):
            worst = math.nan if held.dtype in FLOATS else held.dtype.highest if held.dtype is DType.u8 else held.dtype.lowest
            level = held.level if held.level == "fast" or len(held.shape) > 1 else "register"
            fresh = nodes.Full(tuple(map(Int, held.shape)), worst, held.dtype, level)
            self.begin.append(nodes.Assign(held.name, fresh, self.program.line))
            self.bound[0].add(held.name)
        return nodes.Var(held.name)

    def _find(self, buffer: Any, index: Sequence[Index]) -> tuple[Held, list[Index]]:
        held = self.held.get(hash(buffer.data))
        if held is None:
            raise self.program.refuse(f"{buffer.name} is memory that the block does not declare")
        if hash(buffer) != held.key:
            raise self.program.refuse(f"{buffer.name} looks at another buffer's memory under another shape")
        if held.own and self.lanes:
            return held, [*(axis(k) if e > 1 else Int(0) for k, e in enumerate(self.lanes)), *index]
        return held, list(index)

    @contextmanager
    def own_copies(self, lanes: Shape, used: set[int]) -> Iterator[None]:
        """Inside a parallel loop: buffers that every thread has for itself, one copy for each iteration."""
        before = dict(self.held)
        copied: list[tuple[int, Held]] = []
        for key, held in before.items():
            if not held.own or key not in used or self.lanes:
                continue
            copy = Held(held.key, self.program.fresh(held.name), (*lanes, *held.shape), held.dtype, held.level, True)
            self.held[key] = copy
            copied.append((key, held))
            if any(held.name in names for names in self.bound):
                self._rebind(copy, nodes.Expand(nodes.Var(held.name), tuple(map(Int, copy.shape))))
        yield
        for key, held in copied:
            self.held[key] = held
            for names in self.bound:
                names.discard(held.name)

    # ---- reading

    def read_tile(self, buffer: Any, index: Sequence[Index]) -> Data:
        """The elements of a tile at a position for each lane."""
        held, places = self._find(buffer, index)
        tile = self._tile(held)
        lanes = self.lanes
        region: list[nodes.Span | nodes.At] = []
        order: list[int] = []
        picked: tuple[int, Index] | None = None
        claimed = [number for place in places for number in axes_in(place)]
        for place, extent in zip(places, held.shape, strict=True):
            own = axes_in(place)
            data = any(name.startswith(DATA) for name in symbols(place))
            step = step_of(place, own[0]) if len(own) == 1 and not data and claimed.count(own[0]) == 1 else None
            if not own and not data:
                region.append(nodes.At(place))
            elif step is not None:
                region.append(nodes.Span(substitute(place, {axis(own[0]).name: 0}), Int(lanes[own[0]]), Int(step)))
                order.append(own[0])
            elif picked is not None:
                raise self.program.refuse(f"{buffer.name} is looked up along several axes at once")
            else:
                region.append(nodes.Span(Int(0), Int(extent)))
                picked = (len(order), place)
                order.append(-1)
        whole = all(
            isinstance(r, nodes.Span) and r == nodes.Span(Int(0), Int(e)) for r, e in zip(region, held.shape, strict=True)
        )
        if not whole:
            tile = nodes.Part(tile, tuple(region))
        if picked is None:
            return self._in_order(tile, order, held.dtype)
        return self._picked(tile, order, picked, held.dtype)

    def _in_order(self, tile: Tile, order: list[int], dtype: DType) -> Data:
        """A tile whose axes are these lanes, with the lanes' axes."""
        ascending = sorted(order)
        if order != ascending:
            tile = nodes.Permute(tile, tuple(order.index(number) for number in ascending))
        actual = tuple(extent if number in order else 1 for number, extent in enumerate(self.lanes))
        if not order and self.lanes:
            return Data(nodes.Reshape(tile, (Int(1),) * len(self.lanes)), self.lanes, actual, dtype)
        return Data(spread(tile, ascending, len(self.lanes)), self.lanes, actual, dtype)

    def _picked(self, tile: Tile, order: list[int], picked: tuple[int, Index], dtype: DType) -> Data:
        """A tile looked up along one axis (-1 in `order`) by positions that are no slice."""
        lanes, rank = self.lanes, len(self.lanes)
        position, place = picked
        free = [number for number in axes_in(place) if number not in order]
        where = index_tile(place, lanes, self.program._tiles(rank, place))
        if free:
            order[position] = free[-1]
            return self._taken_along(tile, order, where, free[-1], place, dtype)
        order[position] = rank
        ascending = sorted(order)
        if order != ascending:
            tile = nodes.Permute(tile, tuple(order.index(number) for number in ascending))
        tile = nodes.Take(spread(tile, ascending, rank + 1), nodes.Unsqueeze(where, rank), rank)
        used = {*axes_in(place), *(number for number in order if number < rank)}
        actual = tuple(extent if number in used else 1 for number, extent in enumerate(lanes))
        return Data(nodes.Squeeze(tile, rank), lanes, actual, dtype)

    def _taken_along(self, tile: Tile, order: list[int], where: Tile, along: int, place: Index, dtype: DType) -> Data:
        ascending = sorted(order)
        if order != ascending:
            tile = nodes.Permute(tile, tuple(order.index(number) for number in ascending))
        tile = spread(tile, ascending, len(self.lanes))
        used = {*order, *axes_in(place)}
        actual = tuple(extent if number in used else 1 for number, extent in enumerate(self.lanes))
        return Data(nodes.Take(tile, where, along), self.lanes, actual, dtype)

    # ---- writing

    def stored(self, value: Value, dtype: DType) -> Data:
        """A value as what a buffer of this dtype holds."""
        return self.program.as_data(value, dtype)

    def write_tile(self, buffer: Any, index: Sequence[Index], value: Value, mask: Mask | None) -> None:
        """Binds a tile's name anew, with the elements at these positions changed."""
        held, places = self._find(buffer, index)
        program = self.program
        truth = program.decided(mask) if mask is not None else True
        if truth is False:
            return
        spans: list[int | None] = []
        inside: list[Tile] = []
        shifts: dict[int, tuple[Index, int]] = {}
        rank = len(held.shape)
        for number, (place, extent) in enumerate(zip(places, held.shape, strict=True)):
            own = axes_in(place)
            data = any(name.startswith(DATA) for name in symbols(place))
            here = spread(nodes.Iota(Int(extent)), (number,), rank)
            if not own:
                spans.append(None)
                if data:
                    raise program.refuse(f"{buffer.name} is written where data says")
                if extent > 1:
                    inside.append(nodes.Binary("eq", here, scalar(place)))
                continue
            if len(own) > 1 or data or own[0] in spans or step_of(place, own[0]) != 1:
                raise program.refuse(f"{buffer.name} is written at positions that are no slice of it")
            spans.append(own[0])
            start = substitute(place, {axis(own[0]).name: 0})
            if fixed(start) != 0 or self.lanes[own[0]] != extent:
                shifts[number] = (start, self.lanes[own[0]])
                inside.append(nodes.Binary("ge", here, scalar(start)))
                last = simplify(IndexOp("+", start, Int(self.lanes[own[0]])))
                inside.append(nodes.Binary("lt", here, scalar(last)))
        lanes = [number for number in spans if number is not None]
        data_value = self.stored(value, held.dtype)
        if not inside and truth is True and isinstance(data_value.node, nodes.Full):
            level = held.level if rank > 1 or held.level == "fast" else "register"
            self._rebind(held, nodes.Full(tuple(map(Int, held.shape)), data_value.node.value, held.dtype, level))
            return
        new = self._placed(data_value, spans, lanes, shifts, buffer)
        if truth is not True and mask is not None:
            inside.append(self._placed(program.as_data(mask), spans, lanes, shifts, buffer))
        if inside:
            test = inside[0]
            for more in inside[1:]:
                test = nodes.Binary("and", test, more)
            new = nodes.Where(test, new, self._tile(held))
        elif self._extents(data_value, spans) == held.shape:
            self._rebind(held, new)
            return
        self._rebind(held, nodes.Expand(new, tuple(map(Int, held.shape))))

    def _extents(self, value: Data, spans: Sequence[int | None]) -> Shape:
        actual = value.actual if value.shape else (1,) * len(self.lanes)
        return tuple(1 if number is None else actual[number] for number in spans)

    def _placed(
        self, value: Data, spans: Sequence[int | None], lanes: list[int], shifts: dict[int, tuple[Index, int]], buffer: Any
    ) -> Tile:
        """A value over lanes with the axes of the tile it is written to."""
        if not value.shape:
            node = value.node
            return nodes.Reshape(node, (Int(1),) * len(spans)) if spans else node
        for number, extent in enumerate(value.actual):
            if extent > 1 and number not in lanes:
                raise self.program.refuse(f"several iterations of a parallel loop write one place of {buffer.name}")
        tile = gathered(value.node, sorted(lanes), len(self.lanes))
        ascending = sorted(lanes)
        if lanes != ascending:
            tile = nodes.Permute(tile, tuple(ascending.index(number) for number in lanes))
        tile = spread(tile, [k for k, number in enumerate(spans) if number is not None], len(spans))
        extents = self._extents(value, spans)
        for number, (start, count) in shifts.items():
            if extents[number] == 1:
                continue
            size = len(spans)
            here = spread(nodes.Iota(Int(self.held[hash(buffer.data)].shape[number])), (number,), size)
            moved = here if fixed(start) == 0 else nodes.Binary("sub", here, scalar(start))
            bounded = nodes.Binary("minimum", nodes.Binary("maximum", moved, nodes.Number(0)), nodes.Number(count - 1))
            tile = nodes.Take(tile, bounded, number)
        return tile
