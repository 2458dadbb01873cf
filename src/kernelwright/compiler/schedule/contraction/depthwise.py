"""Depthwise convolutions: one input channel for each output channel, so nothing to multiply as matrices.

Each task takes some rows of one channel's output and adds tap times window, elementwise; the tile of the output stays where it
is while the taps pass over it. In: a ConvProblem with as many groups as channels. Out: one ScheduleCandidate.
"""

from __future__ import annotations

from dataclasses import replace

from kernelwright.compiler.graph.problems import ConvProblem
from kernelwright.compiler.graph.symbolic import likely
from kernelwright.compiler.schedule.candidate import Epilogue, Prologue, ScheduleCandidate
from kernelwright.compiler.schedule.contraction.blocks import accumulator, add, at, block, loop, mul, op, scaled, span
from kernelwright.compiler.schedule.contraction.taps import Line
from kernelwright.sketch import nodes
from kernelwright.sketch.names import Names
from kernelwright.sketch.nodes import Assign, Binary, Cast, DType, Kernel, Statement, Tile, Var
from kernelwright.target import Capabilities


def lower_depthwise(
    p: ConvProblem,
    lines: tuple[Line, ...],
    load_x: Prologue,
    load_w: Prologue,
    finish: Epilogue,
    names: Names,
    machine: Capabilities,
) -> ScheduleCandidate:
    """One kernel: parallel over images, output channels and blocks of rows."""
    multiplier = p.out_channels // p.groups
    n, o = names.fresh("n"), names.fresh("o")
    channel = op("//", o, multiplier)
    column = lines[-1]
    columns_all = likely(column.end - column.begin)
    columns = block(columns_all, 1024, 8)
    rows = 1
    if len(lines) > 1:
        rows_all = likely(lines[-2].end - lines[-2].begin)
        rows = scaled(rows_all, block(rows_all, max(1, min(rows_all, 4096 // columns))), machine.grain)
    extents = [1] * (len(lines) - 2) + [rows] * (len(lines) > 1) + [columns]
    tiled = [False] * (len(lines) - 2) + [True] * (len(lines) > 1) + [True]
    position = [names.fresh(stem) for stem in "dhw"[3 - len(lines) :]]
    phases: list[str | int] = [names.fresh("phase") if p.transposed and line.phases > 1 else 0 for line in lines]
    taps = [names.fresh(stem) for stem in ("kd", "kh", "kw")[3 - len(lines) :]]
    acc = Var(names.fresh("acc"))

    tile = Var(names.fresh("x_tile"))
    x_axes: list[nodes.Axis] = [at(n), at(channel)]
    window: list[nodes.Span | nodes.At] = []
    w_axes: list[nodes.Axis] = [at(channel), at(op("%", o, multiplier))] if p.transposed else [at(o), at(0)]
    out_axes: list[nodes.Axis] = [at(n), at(o)]
    for line, extent, is_span, where, phase, k in zip(lines, extents, tiled, position, phases, taps, strict=True):
        # an ordinary convolution needs no phases here: each tap has its own strided window
        start = line.tile_start(where, phase if p.transposed else 0)
        shift = line.offset(k) if p.transposed else mul(k, line.dilation)
        reach = line.reach if p.transposed else (extent - 1) * (line.stride - 1) + (line.kernel - 1) * line.dilation
        if is_span:
            x_axes.append(span(start, extent + reach))
            window.append(span(shift, extent, line.tile_step))
        else:
            x_axes.append(at(add(start, shift)))
        w_axes.append(at(line.tap(phase, k) if p.transposed else k))
        out = line.out_start(where, phase)
        out_axes.append(span(out, extent, line.out_step) if is_span else at(out))

    product = Binary("mul", nodes.Part(tile, tuple(window)), _wide(load_w(tuple(w_axes)), p.dtype))
    step: list[Statement] = [Assign(acc.name, Binary("add", acc, product))]
    for line, phase, k, is_span in reversed(list(zip(lines, phases, taps, tiled, strict=True))):
        if is_span:
            step = [loop("range", k, 0, line.tap_count(phase) if p.transposed else line.kernel, 1, step)]
    # a border is dealt with once, while the tile is copied; the taps then pass over plain memory
    loaded = load_x(tuple(x_axes))
    if isinstance(loaded, nodes.Load) and (p.transposed or any(p.padding)):
        loaded = replace(loaded, level="fast")
    step.insert(0, Assign(tile.name, _wide(loaded, p.dtype)))
    for line, phase, k, is_span in reversed(list(zip(lines, phases, taps, tiled, strict=True))):
        if not is_span:
            step = [loop("range", k, 0, line.tap_count(phase) if p.transposed else line.kernel, 1, step)]
    shape = [extent for extent, is_span in zip(extents, tiled, strict=True) if is_span]
    body: list[Statement] = [Assign(acc.name, accumulator(p.dtype, *shape)), *step, *finish(acc, tuple(out_axes))]
    for line, phase in zip(reversed(lines), reversed(phases), strict=True):
        if isinstance(phase, str):
            body = [loop("range", phase, 0, line.phases, 1, body)]
    for line, where, extent in zip(reversed(lines), reversed(position), reversed(extents), strict=True):
        body = [loop("parallel", where, line.begin, line.end, extent, body)]
    body = [loop("parallel", n, 0, p.batch, 1, [loop("parallel", o, 0, p.out_channels, 1, body)])]
    cost = p.flops / (machine.peak * 0.3)
    return ScheduleCandidate((Kernel(names.fresh("depthwise"), tuple(body)),), (), (), cost)


def _wide(tile: Tile, dtype: DType) -> Tile:
    return tile if dtype in (DType.f32, DType.f64) else Cast(tile, dtype)
