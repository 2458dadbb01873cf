"""Kernels that are written by kind, because what they store is not one expression per element: sorting and scattering.

Each function is called by assemble.py with the builder and the values that one kernel makes together; operands are traced like
anywhere else, so pointwise maths before them is fused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.index_maps import LoopAxis, axis_index, constant_index, data_of
from kernelwright.compiler.graph.symbolic import Extent, Size, size_index
from kernelwright.compiler.graph.values import MustMaterialize
from kernelwright.compiler.schedule import loops
from kernelwright.compiler.schedule.bindings import Binding, Block, Dim, Loop
from kernelwright.compiler.schedule.nest import build
from kernelwright.compiler.schedule.scalar import Expr, Tracer, walk_all
from kernelwright.compiler.schedule.tiles import Emitter
from kernelwright.compiler.schedule.waste import refuse_waste
from kernelwright.sketch import nodes
from kernelwright.sketch.names import Names
from kernelwright.sketch.nodes import At, Axis, Int, Span, Sym, Tile

if TYPE_CHECKING:
    from kernelwright.compiler.schedule.sketch_builder import SketchBuilder

Combine = Literal["set", "add", "maximum", "minimum", "mul"]


def plain(tracer: Tracer, value: v.Value, coords: v.MultiIndex) -> Expr:
    """An operand as an expression without reductions: those are materialized first."""
    expr = tracer.at(value, coords)
    if any(e.kind in ("reduce", "arg", "scan") for e in walk_all([expr])):
        raise MustMaterialize(value)
    return expr


def sort_rows(builder: SketchBuilder, x: v.Value, axis: int, descending: bool, values: v.Value, places: v.Value) -> None:
    """Sorts along an axis, one row at a time, and stores the first elements and their positions, as far as they are wanted."""
    loop_axes = [LoopAxis(e, whole=True) for e in x.shape]
    coords = tuple(axis_index(a) if a.extent != 1 or i == axis else constant_index(0) for i, a in enumerate(loop_axes))
    expr = plain(builder.tracer(), x, coords)
    names = Names({t.name for t in builder.tensors} | builder.captured.region.sizes.keys())
    emitter = Emitter(1, names, builder.view)
    row = loop_axes[axis]
    bindings: dict[LoopAxis, Binding] = {row: Dim(0, Int(0), size_index(row.extent), row.extent - 1)}
    loops: list[tuple[str, Extent]] = []
    region: list[Axis] = []
    for i, loop_axis in enumerate(loop_axes):
        if i == axis:
            region.append(Span(Int(0), size_index(values.shape[axis])))
        elif loop_axis.extent == 1:
            region.append(At(Int(0)))
        else:
            var = names.fresh("ijklmn"[min(i, 5)])
            loops.append((var, loop_axis.extent))
            bindings[loop_axis] = Loop(Sym(var), loop_axis.extent - 1)
            region.append(At(Sym(var)))
    block = Block(bindings)
    tile, _ = emitter._with_axis(emitter.tile(expr, block), row, block, expr.dtype)
    line, order = names.fresh("row"), names.fresh("order")
    block.statements.append(nodes.Assign(line, tile))
    chosen: Tile = nodes.ArgSort(nodes.Var(line), 0, descending)
    if values.shape[axis] != row.extent:
        chosen = nodes.Part(chosen, (Span(Int(0), size_index(values.shape[axis])),))
    block.statements.append(nodes.Assign(order, chosen))
    if id(values) in builder.placed:
        taken: Tile = nodes.Take(nodes.Var(line), nodes.Var(order), 0)
        taken = nodes.Cast(taken, values.dtype) if expr.dtype != values.dtype else taken
        block.statements.append(nodes.Store(builder.placed[id(values)], tuple(region), taken))
    if id(places) in builder.placed:
        block.statements.append(nodes.Store(builder.placed[id(places)], tuple(region), nodes.Var(order)))
    builder.kernel("sort", parallel_nest(loops, block.statements))


def _step(extent: Extent) -> int:
    """How many neighbours are scattered at a time: what divides the axis, since a position beyond it has no update."""
    if isinstance(extent, Size):
        return 1
    return next(d for d in range(min(extent, 1024), 0, -1) if extent % d == 0)


def parallel_nest(loops: list[tuple[str, Extent]], body: list[nodes.Statement]) -> tuple[nodes.Statement, ...]:
    """Statements inside parallel loops over whole ranges."""
    for var, extent in reversed(loops):
        body = [nodes.For(var, "parallel", Int(0), size_index(extent), Int(1), tuple(body))]
    return tuple(body)


def scatter(
    builder: SketchBuilder, made: v.Value, base: v.Value, updates: v.Value, serial: tuple[int, ...],
    place: Callable[[v.MultiIndex, Tracer], v.MultiIndex], combine: Combine,
) -> None:  # fmt: skip
    """Copies `base`, then writes every element of `updates` at `place(coords)`. Axes of the updates that can hit one place twice
    are `serial` and run in order, so the result does not depend on chance; the others are parallel, the last one as a tile."""
    tensor = builder.placed[id(made)]
    nest = build(builder.tracer(), [(base, tensor)])
    refuse_waste(nest, builder.capabilities)
    taken = {t.name for t in builder.tensors} | builder.captured.region.sizes.keys()
    builder.kernel("copy", loops.write(nest, loops.plan(nest, builder.capabilities), builder.view, taken), final=False)
    if updates.size == 0:
        return
    loop_axes = [LoopAxis(e, whole=True) for e in updates.shape]
    coords = tuple(axis_index(a) if a.extent != 1 else constant_index(0) for a in loop_axes)
    tracer = builder.tracer()
    value = plain(tracer, updates, coords)
    target = place(coords, tracer)
    for e in walk_all([d.expression for c in target for d in data_of(c)]):
        if e.kind in ("reduce", "arg", "scan") and e.value is not None:
            raise MustMaterialize(e.value)
    names = Names({t.name for t in builder.tensors} | builder.captured.region.sizes.keys())
    parallel = [a for i, a in enumerate(loop_axes) if i not in serial and a.extent != 1]
    vector = parallel[-1] if parallel else None
    emitter = Emitter(1 if vector else 0, names, builder.view)
    bindings: dict[LoopAxis, Binding] = {}
    outer: list[tuple[str, Extent, int]] = []
    for loop_axis in parallel:
        var = names.fresh("ijklmn"[min(len(outer), 5)])
        step = 1
        if loop_axis is vector:
            step = _step(loop_axis.extent)
            bindings[loop_axis] = Dim(0, Sym(var), Int(step), loop_axis.extent - 1)
        else:
            bindings[loop_axis] = Loop(Sym(var), loop_axis.extent - 1)
        outer.append((var, loop_axis.extent, step))
    inner: list[tuple[str, Extent]] = []
    for i in serial:
        if loop_axes[i].extent != 1:
            var = names.fresh("r")
            bindings[loop_axes[i]] = Loop(Sym(var), loop_axes[i].extent - 1)
            inner.append((var, loop_axes[i].extent))
    block = Block(bindings)
    tile, rank = emitter.tile(value, block)
    dtype = made.dtype
    if combine != "set":
        old, old_rank = emitter._access(builder.arena.access(tensor, made.shape, target, dtype), block)
        old = nodes.Cast(old, dtype.computed) if dtype.computed != dtype else old
        op = "logical_or" if dtype == nodes.DType.bool and combine == "add" else combine
        tile, rank = nodes.Binary(op, old, tile), max(rank, old_rank)
    if dtype.computed != dtype:
        tile = nodes.Cast(tile, dtype)
    if isinstance(tile, nodes.Number):
        tile = nodes.Full((), tile.value, dtype)
    emitter.store_tile(tensor, made.shape, target, tile, rank, block)
    body: list[nodes.Statement] = block.statements
    for var, extent in reversed(inner):
        body = [nodes.For(var, "range", Int(0), size_index(extent), Int(1), tuple(body))]
    for var, extent, step in reversed(outer):
        body = [nodes.For(var, "parallel", Int(0), size_index(extent), Int(step), tuple(body))]
    builder.kernel("scatter", tuple(body), final=False)
