"""Chooses how a nest is run, and writes it as a kernel.

In comes a `Nest`; out goes the body of a kernel. Each axis gets a place: a parallel loop, a tile axis (whole, or in blocks of a
parallel loop), or a sequential loop. Three forms cover everything: *flat* (no reduction: tiles of the contiguous axes),
*rows* (the reduced axes are contiguous or shared with the output: a row is a tile, or is walked in chunks), and *columns*
(the reduced axes are strided: a vector of neighbours is the tile, the reduced axes are walked or whole).
What would repeat a reduction or leave units idle is refused before (waste.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from kernelwright.compiler.graph.index_maps import LoopAxis, axes_in, divides, linear, only_axis
from kernelwright.compiler.graph.symbolic import Extent, Size, likely, size_index
from kernelwright.compiler.graph.values import MustMaterialize
from kernelwright.compiler.schedule.bindings import Block, Dim, LineReduce, Loop, LoopedReduce
from kernelwright.compiler.schedule.nest import Nest
from kernelwright.compiler.schedule.scalar import Expr, walk_all
from kernelwright.compiler.schedule.separable import separate
from kernelwright.compiler.schedule.tile_sizes import TileSizes
from kernelwright.compiler.schedule.tiles import Emitter
from kernelwright.compiler.schedule.waste import SHORT_WALK, bound_axes, expensive, points, reductions
from kernelwright.sketch import nodes
from kernelwright.sketch.index import Opaque
from kernelwright.sketch.names import Names
from kernelwright.sketch.nodes import Index, Int, Sym
from kernelwright.target import Capabilities

LINE = 16  # floats of a cache line: blocks of whole lines have no remainder, and can be written past the caches


@dataclass
class Plan:
    """Where each axis goes. `tile` maps a tile axis to its extent, in order of tile axes; `chunked` tile axes are walked by a
    sequential loop, blocked ones by a parallel loop; `loops` are sequential, one element at a time."""

    form: str
    parallel: list[LoopAxis]
    tile: dict[LoopAxis, Extent]
    chunked: set[LoopAxis] = field(default_factory=set)
    loops: list[LoopAxis] = field(default_factory=list)


def unit_axes(nest: Nest, targets: bool) -> dict[LoopAxis, int]:
    """Axes that move along contiguous memory, with the number of elements that they move over."""
    weight: dict[LoopAxis, int] = {}
    chosen = (
        [t for t, _ in nest.stores] if targets else [e for e in walk_all([s for _, s in nest.stores]) if e.kind == "access"]
    )
    for e in chosen:
        if e.data[2]:
            for term, k in linear(e.data[2][-1]):
                if isinstance(term, LoopAxis) and k in (1, -1):
                    weight[term] = weight.get(term, 0) + points(e.free)
    return weight


def plan(nest: Nest, machine: Capabilities) -> Plan:
    """Decides the form and the place of every axis."""
    sizes = TileSizes.of(machine)
    domain = nest.domain
    found = reductions(nest)
    scans = [e for e in walk_all([s for _, s in nest.stores]) if e.kind == "scan"]
    rows = {a for e in found for a in domain if a not in e.free} | {e.data[1] for e in scans if e.data[1] in domain}
    bound = dict.fromkeys(a for e in found for a in bound_axes(e) if a not in domain)
    bound.update(dict.fromkeys(e.data[1] for e in scans if e.data[1] not in domain))
    sequential = [*bound, *(a for a in domain if a in rows)]
    parallel = [a for a in domain if a not in rows]
    if not sequential:
        return _flat(nest, parallel, sizes)
    reads = unit_axes(nest, targets=False)
    vector = max(reads, key=lambda a: reads[a], default=None)
    must_whole = {e.data[1] for e in scans}
    tiny = vector in bound and vector is not None and likely(vector.extent) < 16 and parallel and not scans
    if (vector in sequential and not tiny) or not parallel or vector is None:
        return _rows(nest, sequential, parallel, vector, must_whole, sizes)
    if vector not in parallel:
        written = unit_axes(nest, targets=True)
        vector = max((a for a in written if a in parallel), key=lambda a: written[a], default=parallel[-1])
    if machine.vectors and all(value.kind == "scan" for _, value in nest.stores) and not found:
        return _running_columns(nest, sequential, parallel, vector, machine.units)
    return _columns(nest, sequential, parallel, vector, rows, must_whole, sizes)


def reason(nest: Nest, chosen: Plan, machine: Capabilities) -> str:
    """Why a plan's tiles are as they are, in words."""
    tile = math.prod(map(likely, chosen.tile.values()))
    tasks = math.prod(-(-likely(a.extent) // likely(chosen.tile.get(a, 1))) for a in chosen.parallel)
    sizes = TileSizes.of(machine)
    limit = {"flat": sizes.flat(points(nest.domain)), "rows": sizes.row}.get(chosen.form, sizes.column)
    unit = "core" if machine.vectors else "unit"
    walked = f", walked in pieces of {tile:,}" if chosen.chunked else ""
    return f"tiles of {tile:,} elements (up to {limit:,} for a {unit}){walked}, {tasks:,} tasks for {machine.units} {unit}s"


def _block(loop_axis: LoopAxis, wish: int, spills: bool) -> Extent:
    """A block near the wish: the whole axis if small, else a divisor close to it, else (if tiles may stick out) the wish."""
    if isinstance(loop_axis.extent, Size):
        return _block_of_any(loop_axis, wish, spills)
    if loop_axis.extent <= wish:
        return loop_axis.extent
    divisors = [d for d in range(1, wish + 1) if loop_axis.extent % d == 0]
    best = max(divisors, default=1)
    lines = max((d for d in divisors if d % LINE == 0), default=1)
    best = lines if lines * 2 >= best else best
    if best * 2 >= wish or not spills:
        return best if best * 8 >= wish else (wish if spills else loop_axis.extent)
    return wish


def _block_of_any(loop_axis: LoopAxis, wish: int, spills: bool) -> Extent:
    """The block of an axis whose extent varies: a number if tiles may stick out of it, else the axis."""
    return max(wish // LINE * LINE or wish, 1) if spills else loop_axis.extent


def spills(nest: Nest, loop_axis: LoopAxis) -> bool:
    """Whether a tile may stick out of this axis's range: only if what sticks out lies outside every target, where it is dropped."""
    for target, _ in nest.stores:
        if not any(
            only_axis(c) == loop_axis and n == loop_axis.extent for n, c in zip(target.data[1], target.data[2], strict=True)
        ):
            return False
    return True


def _flat(nest: Nest, parallel: list[LoopAxis], sizes: TileSizes) -> Plan:
    if not parallel:
        return Plan("flat", [], {})
    written = unit_axes(nest, targets=True)
    last = max((a for a in written if a in parallel), key=lambda a: written[a], default=parallel[-1])
    reads = unit_axes(nest, targets=False)
    other = max((a for a in reads if a in parallel and a != last), key=lambda a: reads[a], default=last)
    everything = points(parallel)
    tile: dict[LoopAxis, Extent] = {}
    # a transposition: as many elements as the output has are read along another axis (a vector along it is no more than itself)
    if other != last and 2 * reads[other] >= everything and min(likely(other.extent), likely(last.extent)) >= 8:
        tile = {a: _block(a, 64, spills(nest, a)) for a in (other, last)}
    else:
        tile = _inner_tile(nest, parallel, last, sizes.flat(everything))
    return Plan("flat", parallel, {a: tile[a] for a in parallel if a in tile})


def _inner_tile(nest: Nest, parallel: list[LoopAxis], last: LoopAxis, wish: int) -> dict[LoopAxis, Extent]:
    """Tile axes from the innermost outwards until the tile has about `wish` elements."""
    tile: dict[LoopAxis, Extent] = {last: _block(last, wish, spills(nest, last))}
    stepped = _stepped(nest)
    for loop_axis in reversed(parallel):
        size = math.prod(map(likely, tile.values()))
        if loop_axis in tile or loop_axis in stepped:
            continue
        if any(_cut(a, tile[a]) for a in tile) or size * 2 > wish:
            break
        tile[loop_axis] = _block(loop_axis, wish // size, spills(nest, loop_axis))
    return {a: n for a, n in tile.items() if n != 1 or a == last}


def _stepped(nest: Nest) -> set[LoopAxis]:
    """Axes inside divisions and remainders of an access: as loop variables they are numbers, as tile axes they would be gathers."""
    found: set[LoopAxis] = set()
    for e in walk_all([value for _, value in nest.stores]):
        if e.kind == "access":
            for c in e.data[2]:
                found |= {a for term, _ in linear(c) if isinstance(term, Opaque) for a in axes_in(term.left)}
    return found


def _rows(
    nest: Nest,
    sequential: list[LoopAxis],
    parallel: list[LoopAxis],
    vector: LoopAxis | None,
    must_whole: set[LoopAxis],
    sizes: TileSizes,
) -> Plan:
    size = points(sequential)
    order = [*(a for a in nest.domain if a in sequential), *(a for a in sequential if a not in nest.domain)]
    if size <= sizes.row or must_whole:
        tile: dict[LoopAxis, Extent] = {a: a.extent for a in order}
        if size < 256 and parallel:
            last = parallel[-1]
            several = _block(last, max(1, 1024 // size), spills(nest, last))
            if several != 1:
                tile[last] = several
        return Plan("rows", parallel, _ordered(nest, tile, order))
    assert vector is not None or sequential
    vector = vector if vector in sequential else sequential[-1]
    made_here = {part for _, value in nest.stores for part in (value, *value.args)}
    for e in reductions(nest):
        # it walks another way through its data than the row: on its own it would go one element at a time
        long = points(bound_axes(e)) > SHORT_WALK
        if long and vector not in bound_axes(e) and e.value is not None and e not in made_here:
            raise MustMaterialize(e.value)
    chunk = vector.extent if likely(vector.extent) <= 2 * sizes.chunk else _divisor(vector.extent, sizes.chunk)
    loops = [a for a in order if a != vector]
    return Plan("rows", parallel, {vector: chunk}, {vector} if _cut(vector, chunk) else set(), loops)


def _cut(loop_axis: LoopAxis, block: Extent) -> bool:
    """Whether a block is less than its axis (of an axis that varies: a number)."""
    return block != loop_axis.extent


def _divisor(extent: Extent, wish: int) -> int:
    if isinstance(extent, Size):
        return wish
    return next((d for d in range(wish, wish // 4, -1) if extent % d == 0), wish)


def _ordered(nest: Nest, tile: dict[LoopAxis, Extent], rest: list[LoopAxis]) -> dict[LoopAxis, Extent]:
    """Tile axes in the order of memory, as the largest load walks it, so that tiles need no transposition."""
    keys = [a for a in nest.domain if a in tile] + [a for a in rest if a in tile and a not in nest.domain]
    accesses = [e for e in walk_all([value for _, value in nest.stores]) if e.kind == "access"] + [t for t, _ in nest.stores]
    main = max(accesses, key=lambda e: (sum(a in e.free for a in keys), points(e.free)), default=None)
    if main is None:
        return {a: tile[a] for a in keys}
    stride: dict[LoopAxis, int] = {}
    step = 1
    for extent, c in zip(reversed(main.data[1]), reversed(main.data[2]), strict=True):
        for term, k in linear(c):
            if isinstance(term, LoopAxis):
                stride[term] = abs(likely(k)) * step
        step *= likely(extent)
    known = sorted((a for a in keys if a in stride), key=lambda a: -stride[a])
    order = [known.pop(0) if a in stride else a for a in keys]
    return {a: tile[a] for a in order}


def _columns(
    nest: Nest,
    sequential: list[LoopAxis],
    parallel: list[LoopAxis],
    vector: LoopAxis,
    rows: set[LoopAxis],
    must_whole: set[LoopAxis],
    sizes: TileSizes,
) -> Plan:
    size = points(sequential)
    if must_whole or (rows and size <= 2048):
        wish = max(16, min(256, sizes.column // max(size, 1)))
        tile: dict[LoopAxis, Extent] = {a: a.extent for a in sequential}
        tile[vector] = _block(vector, wish, spills(nest, vector))
        return Plan("columns", parallel, _ordered(nest, tile, sequential))
    wish = sizes.walked_columns(points(parallel))
    short = likely(vector.extent) < 64
    tile = _inner_tile(nest, parallel, vector, wish) if short else {vector: _block(vector, wish, spills(nest, vector))}
    return Plan("columns", parallel, _ordered(nest, tile, []), set(), list(sequential))


def _running_columns(nest: Nest, sequential: list[LoopAxis], parallel: list[LoopAxis], vector: LoopAxis, threads: int) -> Plan:
    """Scans across rows: a row of running values passes over memory. Wide ones read more of each page that they touch, as long as
    every thread has two: 2048 rows of 1024 floats took 1.36 ms in blocks of 16, 0.65 ms in blocks of 256."""
    share = points(parallel) // (2 * threads)
    tile: dict[LoopAxis, Extent] = {a: a.extent for a in sequential}
    tile[vector] = _block(vector, max(16, min(256, share)), spills(nest, vector))
    return Plan("columns", parallel, _ordered(nest, tile, sequential))


# ---------------------------------------------------------------- writing


def write(
    nest: Nest,
    chosen: Plan,
    declare_view: Callable[[str, tuple[Extent, ...]], str],
    taken: set[str] | None = None,
    *,
    lines: bool = False,
) -> tuple[nodes.Statement, ...]:
    """The kernel's body for a plan; `taken` are names of tensors that no tile may have. `lines`: parts of a tile are cheap to read
    again, so windows may be folded one axis after another."""
    names = Names(set(taken or ()))
    dims = {a: i for i, a in enumerate(chosen.tile)}
    emitter = Emitter(len(dims), names, declare_view)
    emitter.count([value for _, value in nest.stores])
    outer = Block({})
    walker = Walker(chosen, dims, names)
    _arrange_loops(nest, chosen, emitter, walker)
    if lines and chosen.form == "columns":
        _arrange_lines(nest, chosen, emitter, walker)

    def inside(block: Block) -> None:
        walked = [a for a in (*chosen.loops, *chosen.chunked) if a in nest.domain]

        def stores(innermost: Block) -> None:
            for target, value in nest.stores:
                emitter.store(target, value, innermost)

        walker.walk(block, walked, stores)

    walker.parallel_loops(outer, list(chosen.parallel), inside)
    return tuple(outer.statements)


def _arrange_loops(nest: Nest, chosen: Plan, emitter: Emitter, walker: Walker) -> None:
    """Tells the emitter which reductions are walked by loops, and which of them can share a loop."""
    walked = {*chosen.loops, *chosen.chunked}
    level: dict[Expr, int] = {}
    groups: dict[tuple[frozenset[LoopAxis], int, frozenset[LoopAxis]], list[Expr]] = {}
    for e in reductions(nest):
        loop_axes = [a for a in (*chosen.loops, *chosen.chunked) if a in bound_axes(e)]
        level[e] = max((level[b] for b in walk_all([e.args[0]]) if b in level), default=0) + (1 if loop_axes else 0)
        if loop_axes:
            run = lambda block, body, loop_axes=loop_axes: walker.walk(block, loop_axes, body)  # noqa: E731
            emitter.looped[e] = LoopedReduce(run, tuple(loop_axes))
            groups.setdefault((frozenset(bound_axes(e)), level[e], e.free & walked), []).append(e)
    for members in groups.values():
        for e in members:
            emitter.batches[e] = members
    for e in emitter.looped:
        total = _centred_on(e)
        if total in emitter.looped and any(a in chosen.tile for a in bound_axes(e)) and total.free == e.free:
            emitter.moments[e] = emitter.moments[total] = (total, e)


def _arrange_lines(nest: Nest, chosen: Plan, emitter: Emitter, walker: Walker) -> None:
    """Tells the emitter which reductions over windows are made in lines."""

    def walking(*loop_axes: LoopAxis) -> LoopedReduce:
        return LoopedReduce(lambda block, body: walker.walk(block, list(loop_axes), body), loop_axes)

    along = list(chosen.tile)[-1]
    for e in list(emitter.looped):
        how = separate(nest.arena, e, along) if set(bound_axes(e)) <= set(chosen.loops) else None
        if how is not None and along in nest.domain:
            rows = [a for a in chosen.loops if a in how.rows]
            emitter.separated[e] = LineReduce(how, walking(*rows), walking(how.window))
            emitter.count([how.operand])


def _centred_on(e: Expr) -> Expr | None:
    """The sum over the same axes if `e` is the sum of squares of the distances to its mean."""
    if e.kind != "reduce" or e.data[0] != "sum" or e.args[0].kind != "apply" or e.args[0].data != "mul":
        return None
    apart, again = e.args[0].args
    if apart is not again or apart.kind != "apply" or apart.data != "sub":
        return None
    x, mean = apart.args
    if mean.kind != "apply" or mean.data != "div" or mean.args[1].kind != "const":
        return None
    total = mean.args[0]
    same = total.kind == "reduce" and total.data == e.data and total.args[0] is x
    count = math.prod(a.extent for a in bound_axes(e))
    return total if same and isinstance(count, int) and mean.args[1].data == count else None


@dataclass
class Walker:
    """Opens loops over axes according to a plan."""

    plan: Plan
    dims: dict[LoopAxis, int]
    names: Names

    def parallel_loops(self, block: Block, loop_axes: list[LoopAxis], body: Callable[[Block], None]) -> None:
        """Nested parallel loops; whole tile axes need none."""
        whole = {
            a: Dim(self.dims[a], Int(0), size_index(a.extent), a.extent - 1)
            for a in self.plan.tile
            if self.plan.tile[a] == a.extent and a not in self.plan.chunked
        }
        block.bindings.update(whole)
        self._parallel(block, [a for a in loop_axes if a not in whole], body)

    def _parallel(self, block: Block, loop_axes: list[LoopAxis], body: Callable[[Block], None]) -> None:
        if not loop_axes:
            body(block)
            return
        loop_axis, rest = loop_axes[0], loop_axes[1:]
        var = self.names.fresh("ijklmnpq"[min(len(self.plan.parallel) - len(loop_axes), 7)])
        step = self.plan.tile.get(loop_axis, 1)
        largest = _last(loop_axis, step)
        binding = (
            Dim(self.dims[loop_axis], Sym(var), size_index(step), largest)
            if loop_axis in self.dims
            else Loop(Sym(var), loop_axis.extent - 1)
        )
        inner = Block({loop_axis: binding}, block)
        self._parallel(inner, rest, body)
        block.statements.append(
            nodes.For(var, "parallel", Int(0), size_index(loop_axis.extent), size_index(step), tuple(inner.statements))
        )

    def walk(self, block: Block, loop_axes: list[LoopAxis], body: Callable[[Block], None]) -> None:
        """Nested sequential loops over loop axes and chunks; a last chunk of another size follows its loop."""
        if not loop_axes:
            body(block)
            return
        loop_axis, rest = loop_axes[0], loop_axes[1:]
        if loop_axis not in self.dims:
            var = self.names.fresh("r")
            inner = Block({loop_axis: Loop(Sym(var), loop_axis.extent - 1)}, block)
            self.walk(inner, rest, body)
            block.statements.append(
                nodes.For(var, "range", Int(0), size_index(loop_axis.extent), Int(1), tuple(inner.statements))
            )
            return
        chunk = self.plan.tile[loop_axis]
        main = loop_axis.extent // chunk * chunk
        var = self.names.fresh("r")
        start: Index = Sym(var)
        inner = Block({loop_axis: Dim(self.dims[loop_axis], start, size_index(chunk), main - 1)}, block)
        self.walk(inner, rest, body)
        block.statements.append(nodes.For(var, "range", Int(0), size_index(main), size_index(chunk), tuple(inner.statements)))
        if main != loop_axis.extent:
            left = Dim(self.dims[loop_axis], size_index(main), size_index(loop_axis.extent - main), loop_axis.extent - 1)
            tail = Block({loop_axis: left}, block)
            self.walk(tail, rest, body)
            block.statements += tail.statements


def _last(loop_axis: LoopAxis, step: Extent) -> Extent:
    """The largest position that blocks reach, the last one's part beyond the axis included."""
    if isinstance(loop_axis.extent, Size) and not divides(step, loop_axis.extent):
        return loop_axis.extent + step - 2  # the last block starts inside
    return -(-loop_axis.extent // step) * step - 1


def cost(nest: Nest, machine: Capabilities) -> float:
    """Seconds a nest should take: memory traffic or arithmetic, whichever is more."""
    everything = walk_all([value for _, value in nest.stores])
    traffic = sum(points(e.free) * e.dtype.size for e in [*(t for t, _ in nest.stores), *everything] if e.kind == "access")
    work_done = sum(points(e.free) * (8 if expensive(e) else 1) for e in everything if e.kind in ("apply", "reduce", "scan"))
    return max(traffic / machine.bandwidth, work_done / machine.operations_per_second)
