"""Hooks for contractions: loaders of lazily fused operands, and epilogues that finish what follows the product.

Both trace expressions over one axis per logical axis and then bind these axes to the spans that a family asks for.
`NotFusible` says that an operand or an epilogue cannot be written over spans of those axes; the partition then materializes it.
"""

from __future__ import annotations

import itertools

from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.index_maps import IndexExpr, LoopAxis, axis_index, constant_index, linear, only_axis
from kernelwright.compiler.graph.problems import ConvProblem
from kernelwright.compiler.graph.symbolic import Extent, Size, size_index
from kernelwright.compiler.graph.values import MustMaterialize
from kernelwright.compiler.schedule.bindings import Binding, Block, Dim, Loop, integer_tile
from kernelwright.compiler.schedule.candidate import Epilogue, Prologue
from kernelwright.compiler.schedule.loops import spills
from kernelwright.compiler.schedule.nest import Nest, build, merge_axes, refine, split_axes, to_runs
from kernelwright.compiler.schedule.scalar import Expr, Tracer, walk_all
from kernelwright.compiler.schedule.tiles import Emitter
from kernelwright.compiler.schedule.waste import expensive, points
from kernelwright.sketch import nodes
from kernelwright.sketch.names import Names
from kernelwright.sketch.nodes import At, DType, FromIndex, Int, Iota, Number, Span, Tile

FAR = 1 << 40
CHANNELS = 1
"""The axis of a convolution's output that its epilogue may reduce."""
MOST_FOLDED = 160
"""Channels up to which every family of convolutions can keep all of them in one tile."""
MOST_INLINED = 24
"""Operations of an operand beyond which simplifying it is a waste: it is far too costly to be computed as often as it is read."""


class NotFusible(Exception):
    """The value cannot be made tile by tile along its own axes."""


def bindings_for(loop_axes: list[LoopAxis | None], axes: tuple[nodes.Axis, ...]) -> dict[LoopAxis, Binding]:
    """Each axis' axis bound to its span (a tile axis, numbered in order) or position."""
    bindings: dict[LoopAxis, Binding] = {}
    dim = 0
    for loop_axis, axis in zip(loop_axes, axes, strict=True):
        if isinstance(axis, Span):
            if loop_axis is not None:
                bindings[loop_axis] = Dim(dim, axis.start, axis.extent, _largest(axis), axis.step)
            dim += 1
        elif isinstance(axis, At):
            if loop_axis is not None:
                bindings[loop_axis] = Loop(axis.index, axis.index.value if isinstance(axis.index, Int) else FAR)
        else:
            raise NotFusible("a run-time position")
    return bindings


def _largest(axis: Span) -> int:
    if isinstance(axis.start, Int) and isinstance(axis.extent, Int) and isinstance(axis.step, Int) and axis.start.value >= 0:
        return axis.start.value + (axis.extent.value - 1) * axis.step.value
    return FAR


class Operand:
    """A value traced over its own axes, ready to be loaded by spans."""

    def __init__(self, tracer: Tracer, value: v.Value, declare_view: object) -> None:
        self.value = value
        self.declare_view = declare_view
        coords = tuple(constant_index(0) if e == 1 else axis_index(LoopAxis(e)) for e in value.shape)
        pin = tracer.arena.slot(value, coords, value.dtype)
        traced = tracer.at(value, coords)
        if sum(e.kind == "apply" for e in walk_all([traced])) > MOST_INLINED:
            raise NotFusible(value.origin)
        nest = Nest(tracer.arena, [a for c in coords if (a := only_axis(c))], [(pin, traced)])
        split_axes(nest)
        to_runs(nest)
        merge_axes(nest)
        refine(nest)
        pin, self.expr = nest.stores[0]
        self.loop_axes = [only_axis(c) for c in pin.data[1]]
        lost = any(a is None and e != 1 for a, e in zip(self.loop_axes, value.shape, strict=True))
        if lost or any(e.kind in ("reduce", "arg", "scan") for e in walk_all([self.expr])):
            raise NotFusible(value.origin)

    def costly(self) -> bool:
        """Whether computing an element is more than a few cheap operations."""
        inside = [e for e in walk_all([self.expr]) if e.kind == "apply"]
        return len(inside) > 4 or any(expensive(e) for e in inside) or self._gathers() or self._crosswise()

    def _crosswise(self) -> bool:
        """Whether matrices are read along different axes (x + x.T): one of them misses the cache in every tile."""
        inner = set()
        for e in walk_all([self.expr]):
            if e.kind == "access" and e.data[2] and len(e.free) > 1:
                inner |= {loop_axis for loop_axis, step in linear(e.data[2][-1]) if step == 1}
        return len(inner) > 1

    def _gathers(self) -> bool:
        return any(len(list(linear(c))) > 1 for e in walk_all([self.expr]) if e.kind == "access" for c in e.data[2])

    def constant(self, fixed: frozenset[str]) -> bool:
        """Whether only tensors of `fixed` (params and constants) are read."""
        return all(e.data[0] in fixed for e in walk_all([self.expr]) if e.kind == "access")

    def inner_axis(self) -> int:
        """The logical axis that runs along contiguous memory."""
        weight = [0] * len(self.loop_axes)
        for e in walk_all([self.expr]):
            if e.kind == "access" and e.data[2]:
                for i, loop_axis in enumerate(self.loop_axes):
                    if loop_axis is not None and dict(linear(e.data[2][-1])).get(loop_axis) == 1:
                        weight[i] += points(e.free)
        return max(range(len(weight)), key=lambda i: (weight[i], i)) if weight else 0

    def _self_padding(self, loop_axis: LoopAxis, extent: Extent) -> bool:
        """Whether every read outside this axis is seen by the load itself, so that its pad does the job."""
        e = self.expr.args[0] if self.expr.kind == "cast" else self.expr
        if e.kind != "access":
            return False
        return any(c == axis_index(loop_axis) and n == extent for n, c in zip(e.data[1], e.data[2], strict=True))

    def loader(self, names: Names) -> Prologue:
        """The hook for a family."""

        def load(axes: tuple[nodes.Axis, ...], pad: float | int = 0) -> Tile:
            spans = [a for a in axes if isinstance(a, Span)]
            bindings = bindings_for(self.loop_axes, axes)
            emitter = Emitter(len(spans), names, self.declare_view)  # type: ignore[arg-type]
            block = Block(bindings)
            tile, rank = emitter.tile(self.expr, block)
            if block.statements:
                raise NotFusible(self.value.origin)
            if pad != 0:
                tile = _with_pad(tile, pad)
            tile = self._masked(tile, axes, pad)
            return _full_shape(tile, rank, spans, self.value.dtype.computed)

        return load

    def _masked(self, tile: Tile, axes: tuple[nodes.Axis, ...], pad: float | int) -> Tile:
        mask: Tile | None = None
        rank = sum(isinstance(a, Span) for a in axes)
        dim = 0
        for axis, loop_axis, extent in zip(axes, self.loop_axes, self.value.shape, strict=True):
            inside = loop_axis is not None and self._self_padding(loop_axis, extent)
            if isinstance(axis, Span):
                here = dim
                dim += 1
                sure = _ends_inside(axis, extent)
                if inside or sure:
                    continue
                ramp: Tile = Iota(axis.extent)
                if axis.step != Int(1):
                    ramp = nodes.Binary("mul", ramp, FromIndex(axis.step))
                if axis.start != Int(0):
                    ramp = nodes.Binary("add", ramp, FromIndex(axis.start))
                for _ in range(rank - 1 - here):
                    ramp = nodes.Unsqueeze(ramp, 1) if isinstance(ramp, Tile) else ramp
            elif isinstance(axis, At):
                if inside or _lies_inside(axis.index, extent) or not _may_leave(axis):
                    continue
                ramp = FromIndex(axis.index)
            test = nodes.Binary(
                "logical_and", nodes.Binary("ge", ramp, Number(0)), nodes.Binary("lt", ramp, integer_tile(size_index(extent)))
            )
            mask = test if mask is None else nodes.Binary("logical_and", mask, test)
        if mask is None:
            return tile
        value = Number(pad)
        return nodes.Where(
            mask, tile if not isinstance(tile, Number) else nodes.Full((), tile.value, self.value.dtype.computed), value
        )


def _ends_inside(axis: Span, extent: Extent) -> bool:
    """Whether a span certainly ends before its axis does."""
    if isinstance(extent, Size):
        return axis.start == Int(0) and axis.step == Int(1) and axis.extent == size_index(extent)
    return _largest(axis) < extent


def _lies_inside(index: nodes.Index, extent: Extent) -> bool:
    return isinstance(index, Int) and isinstance(extent, int) and 0 <= index.value < extent


def _may_leave(axis: At) -> bool:
    """A position with arithmetic in it may lie in the padding; a plain loop variable does not."""
    return not isinstance(axis.index, nodes.Sym)


def _with_pad(tile: Tile, pad: float | int) -> Tile:
    if isinstance(tile, nodes.Load) and tile.pad is not None:
        return nodes.Load(tile.tensor, tile.region, pad, tile.level)
    if isinstance(tile, nodes.Cast):
        return nodes.Cast(_with_pad(tile.x, pad), tile.dtype)
    return tile


def _full_shape(tile: Tile, rank: int, spans: list[Span], dtype: DType) -> Tile:
    """The tile with every span's extent (an operand may not depend on some of its axes)."""
    core = tile
    while isinstance(core, nodes.Cast | nodes.Permute):
        core = core.x
    if isinstance(core, nodes.Load) and sum(isinstance(a, Span) for a in core.region) == len(spans) and rank == len(spans):
        return tile
    if not spans:
        return nodes.Full((), tile.value, dtype) if isinstance(tile, Number) else tile
    if isinstance(tile, Number):
        return nodes.Full(tuple(s.extent for s in spans), tile.value, dtype)
    return nodes.Expand(tile, tuple(s.extent for s in spans))


class EpilogueWriter:
    """What follows a contraction up to the value that is stored, as an epilogue. `folds` tells whether it reduces the channels of a
    convolution, so that its tiles must hold all of them."""

    def __init__(
        self, tracer: Tracer, contraction: v.Value, end: v.Value, tensor: str, accumulator: DType, declare_view: object
    ) -> None:
        self.contraction, self.declare_view, self.accumulator = contraction, declare_view, accumulator
        self.nest = build(tracer, [(end, tensor)])
        value = self.nest.stores[0][1]
        self.slots = [e for e in walk_all([value]) if e.kind == "slot"]
        coords = {e.data[1] for e in self.slots}
        if len(coords) != 1:
            raise NotFusible(end.origin)
        self.coords: tuple[IndexExpr, ...] = next(iter(coords))
        self.loop_axes = [only_axis(c) for c in self.coords]
        channels = {a for a in self.loop_axes[CHANNELS : CHANNELS + 1] if a is not None and folds_channels(contraction)}
        self.folds = False
        for e in walk_all([value]):
            if e.kind not in ("reduce", "arg", "scan") or e.value is None:
                continue
            if not any(below.kind == "slot" for below in walk_all([e.args[0]])):
                raise MustMaterialize(e.value)
            if e.kind != "reduce" or set(e.data[1]) != channels:
                raise NotFusible(end.origin)
            self.folds = True
        for c, loop_axis, extent in zip(self.coords, self.loop_axes, contraction.shape, strict=True):
            if loop_axis is None and (extent != 1 or c != constant_index(0)):
                raise NotFusible(end.origin)
        known = {a for a in self.loop_axes if a is not None}
        stored = known - channels | set(self.nest.domain) & channels
        if set(self.nest.domain) != stored or not all(spills(self.nest, a) for a in stored):
            raise NotFusible(end.origin)

    def epilogue(self, names: Names) -> Epilogue:
        """The hook for a family."""

        def finish(acc: Tile, axes: tuple[nodes.Axis, ...]) -> list[nodes.Statement]:
            kept: list[nodes.Axis] = []
            region: list[Span | At] = []
            for loop_axis, axis in zip(self.loop_axes, axes, strict=True):
                if isinstance(axis, Span):
                    region.append(At(Int(0)) if loop_axis is None else Span(Int(0), axis.extent))
                if loop_axis is not None:
                    kept.append(axis)
            if any(isinstance(r, At) for r in region):  # an axis of extent 1: only its first row counts
                acc = nodes.Part(acc, tuple(region))
            loop_axes = [a for a in self.loop_axes if a is not None]
            bindings = bindings_for(list(loop_axes), tuple(kept))
            dims = tuple(range(sum(isinstance(a, Span) for a in kept)))
            emitter = Emitter(len(dims), names, self.declare_view)  # type: ignore[arg-type]
            value = self.nest.stores[0][1]
            emitter.count([value])
            block = Block(bindings)
            for slot in self.slots:
                tile: Tile = acc if slot.dtype == self.accumulator else nodes.Cast(acc, slot.dtype)
                emitter.slots[slot] = (tile, dims)
            emitter.store(*self.nest.stores[0], block)
            return block.statements

        return finish


def region_end(
    contraction: v.Contraction,
    order: list[v.Value],
    users: dict[int, list[v.Value]],
    outputs: set[int],
    start: int,
    folds: bool,
) -> v.Value:
    """The last value that can be made in the contraction's epilogue: all that the product flows into before it is pointwise, a
    mere renaming or (with `folds`) a reduction of a convolution's channels, and nothing else needs what lies between. The contraction
    stands at `start` of the order."""
    region = {id(contraction)}
    inner: list[v.Value] = [contraction]
    end: v.Value = contraction
    folds = folds and folds_channels(contraction)
    sizes = {contraction.size}
    for value in itertools.islice(order, start + 1, None):
        if id(end) in outputs:
            break
        if not any(id(s) in region for s in value.sources()):
            continue
        if folds and isinstance(value, v.Reduce) and value.source.shape == contraction.shape and value.axes == (CHANNELS,):
            sizes.add(value.size)
        elif value.size not in sizes or not (isinstance(value, v.Map) or _renames(value, folds)):
            break
        region.add(id(value))
        if all(id(u) in region for x in inner for u in users.get(id(x), [])) and not any(id(x) in outputs for x in inner):
            end = value
        inner.append(value)
    return end


def _renames(value: v.Value, folds: bool) -> bool:
    """Whether a value is another with its elements renamed, or (with `folds`) what was reduced, for each channel again."""
    return isinstance(value, v.View) and (value.bijective or (folds and value.kind == "expand"))


def folds_channels(contraction: v.Value) -> bool:
    """Whether the tiles of a convolution may hold all its channels, so that they are reduced before anything is stored."""
    if not isinstance(contraction, v.Contraction) or not isinstance(contraction.problem, ConvProblem):
        return False
    return contraction.problem.groups == 1 and 1 < contraction.problem.out_channels <= MOST_FOLDED


def before_folds(contraction: v.Value, end: v.Value) -> v.Value:
    """What the first reduction of channels on the way to `end` reads: the end of an epilogue that stops there. The contraction itself
    where nothing is reduced."""
    for value in v.topological([end]):
        if isinstance(value, v.Reduce) and value.source.shape == contraction.shape and value.axes == (CHANNELS,):
            return value.source
    return contraction


def only_renames(expr: Expr) -> bool:
    """Whether an operand is memory seen from another side, without arithmetic."""
    return all(e.kind in ("access", "cast") for e in walk_all([expr]))
