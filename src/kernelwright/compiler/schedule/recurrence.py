"""The kernel that walks a recurrent layer through time.

In: the inputs' part of every gate [time, batch, gate, hidden], the recurrent weights [gate, hidden, hidden], the first states. Out:
kernels in the builder that write the history of hidden states [time + 1, batch, hidden], the first state first, and the last cell
state. Weights are brought once to panels, which every step reads from front to back; rows of the batch are independent, so each
thread takes some of them through all of time without waiting for another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.symbolic import Size, likely
from kernelwright.compiler.graph.values import MustMaterialize
from kernelwright.compiler.schedule.candidate import Prologue
from kernelwright.compiler.schedule.contraction.blocks import add, at, block, ceil_div, ints, loop, mul, span
from kernelwright.compiler.schedule.fusion import NotFusible, Operand
from kernelwright.sketch import nodes
from kernelwright.sketch.names import Names
from kernelwright.sketch.nodes import Assign, Binary, DType, Gemm, Number, Statement, Tile, Unary, Var

if TYPE_CHECKING:
    from kernelwright.compiler.schedule.sketch_builder import SketchBuilder

WIDE = 128
"""Hidden units of one gate that are computed together: the gates' tiles of a few rows stay in the first cache."""


def step_through_time(
    builder: SketchBuilder, cell: v.Cell, given: v.Value, again: v.Value, begin: Sequence[v.Value], bias: v.Value | None,
    history: v.Value, kept: Sequence[v.Value],
) -> None:  # fmt: skip
    """Adds the kernels of one direction of one layer."""
    names = builder.names
    steps, batch, gates, hidden = given.shape
    panel = 8 if history.dtype == DType.f64 else 16
    count = ceil_div(hidden, panel)
    load_given, load_again = _loader(builder, given, names), _loader(builder, again, names)
    first = [_loader(builder, value, names) for value in begin]
    load_bias = _loader(builder, bias, names) if bias is not None else None
    panels = _packed(builder, load_again, names, (gates, count, hidden, panel), history.dtype)
    together = block(count, WIDE // panel)
    rows = (
        max(8, ceil_div(likely(batch), builder.capabilities.units))
        if isinstance(batch, Size)
        else ceil_div(batch, builder.capabilities.units)
    )
    row, t, j = (names.fresh(stem) for stem in ("i", "t", "j"))
    here, units = span(row, rows), span(mul(j, panel), together * panel)
    past, *cells = (
        builder.placed.get(id(value)) or builder.declare(stem, value.shape, value.dtype, "temp")
        for value, stem in zip((history, *kept), ("history", "cells"), strict=False)
    )
    body: list[Statement] = []

    def bound(stem: str, tile: Tile) -> Var:
        name = names.fresh(stem)
        body.append(Assign(name, tile))
        return Var(name)

    pad = 0.0
    before = bound("before", nodes.Load(past, (at(t), here, span(0, hidden)), pad))
    sums: list[Tile] = []
    for gate in range(gates):
        region = (at(gate), span(j, together), span(0, hidden), span(0, panel))
        transposed = nodes.Permute(nodes.Load(panels, region, pad), (1, 0, 2))
        weights = bound("weights", nodes.Reshape(transposed, ints(hidden, together * panel)))
        sums.append(bound("product", Gemm(before, weights)))
    inputs = [bound("given", load_given((at(t), here, at(gate), units), pad)) for gate in range(gates)]
    biases = [bound("bias", nodes.Unsqueeze(load_bias((at(g), units), pad), 0)) for g in range(gates)] if load_bias else []
    if cell == "lstm":
        old = bound("old_cell", nodes.Load(cells[0], (here, units), pad))
        new_cell, new = _lstm(sums, inputs, old, bound)
        body.append(nodes.Store(cells[0], (here, units), new_cell))
    elif cell == "gru":
        own = bound("own", nodes.Load(past, (at(t), here, units), pad))
        new = _gru(sums, inputs, biases, own, bound)
    else:
        total = Binary("add", inputs[0], sums[0])
        new = Unary("tanh", total) if cell == "rnn_tanh" else Binary("maximum", total, Number(0.0))
    body.append(nodes.Store(past, (at(add(t, 1)), here, units), bound("state", new)))
    # one block of rows: the threads share the units of a step instead, and meet after each
    shared = isinstance(batch, int) and ceil_div(batch, rows) == 1
    through = loop("range", t, 0, steps, 1, [loop("parallel" if shared else "range", j, 0, count, together, body)])
    start: list[Statement] = [nodes.Store(past, (at(0), here, span(0, hidden)), first[0]((here, span(0, hidden)), pad))]
    if cell == "lstm":
        start.append(nodes.Store(cells[0], (here, span(0, hidden)), first[1]((here, span(0, hidden)), pad)))
    builder.kernel(cell, (loop("parallel", row, 0, batch, rows, [*start, through]),))
    builder.cost += 2.0 * likely(steps * batch) * gates * hidden * hidden / (0.4 * builder.capabilities.peak)
    builder.notes.append(
        f"{past}: {cell} of {steps} steps in one kernel, {'units' if shared else 'rows'} shared by the threads"
    )


def _loader(builder: SketchBuilder, value: v.Value, names: Names) -> Prologue:
    """The value as the kernel reads it: from memory, or through a mere renaming of it."""
    try:
        operand = Operand(builder.tracer(), value, builder.view)
    except NotFusible as e:
        raise MustMaterialize(value) from e
    if operand.costly() and id(value) not in builder.placed:
        raise MustMaterialize(value)
    return operand.loader(names)


def _packed(builder: SketchBuilder, load: Prologue, names: Names, shape: tuple[int, int, int, int], dtype: DType) -> str:
    """Weights as panels [gate, unit / panel, k, panel], made by a kernel of its own."""
    gates, count, hidden, panel = shape
    name = builder.declare("recurrent_panels", shape, dtype, "temp")
    g, j, k = (names.fresh(stem) for stem in ("g", "j", "k"))
    deep = block(hidden, 64)
    tile = nodes.Permute(load((at(g), span(mul(j, panel), panel), span(k, deep)), 0.0), (1, 0))
    store = nodes.Store(name, (at(g), at(j), span(k, deep), span(0, panel)), tile)
    inner = loop("parallel", j, 0, count, 1, [loop("range", k, 0, hidden, deep, [store])])
    builder.kernel("pack_recurrent", (loop("parallel", g, 0, gates, 1, [inner]),))
    return name


Bound = Callable[[str, Tile], Var]


def _sigmoid(x: Tile) -> Tile:
    return Unary("sigmoid", x)


def _lstm(sums: list[Tile], inputs: Sequence[Tile], old: Tile, bound: Bound) -> tuple[Tile, Tile]:
    """The new cell state and the new hidden state; gates are in torch's order: input, forget, cell, output."""
    take, forget, fresh, show = (Binary("add", x, s) for x, s in zip(inputs, sums, strict=True))
    kept = Binary("mul", _sigmoid(forget), old)
    new_cell = bound("new_cell", Binary("add", kept, Binary("mul", _sigmoid(take), Unary("tanh", fresh))))
    return new_cell, Binary("mul", _sigmoid(show), Unary("tanh", new_cell))


def _gru(sums: list[Tile], inputs: Sequence[Tile], biases: Sequence[Tile], own: Tile, bound: Bound) -> Tile:
    """The new hidden state; gates are in torch's order: reset, update, new."""
    if biases:
        sums = [Binary("add", s, bias) for s, bias in zip(sums, biases, strict=True)]
    reset, update = (_sigmoid(Binary("add", x, s)) for x, s in zip(inputs[:2], sums[:2], strict=True))
    fresh = bound("fresh", Unary("tanh", Binary("add", inputs[2], Binary("mul", reset, sums[2]))))
    return Binary("add", fresh, Binary("mul", update, Binary("sub", own, fresh)))
