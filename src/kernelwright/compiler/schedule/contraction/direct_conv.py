"""Convolutions of 1, 2 and 3 spatial axes, plain and transposed, as products of weights with windows of a padded tile.

For a block of output channels and a tile of R x W output pixels, the input tile (a few more rows and columns, zeros at the
border) is laid out flat, row after row; then the window of tap (kh, kw) is the same flat tile, shifted. So each tap is one
product [out channels, channels] @ [channels, R * pitch]; the last columns of each row compute nothing useful and are dropped at
the end (a few per cent), and nothing is copied per tap. Strides, dilations and transposition are phases of this (taps.py).

In: a ConvProblem, loaders, the epilogue. Out: ScheduleCandidates; the weights are brought to [*kernel, out channel, channel] first, once if
they are parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernelwright.compiler.graph.problems import ConvProblem
from kernelwright.compiler.graph.symbolic import likely
from kernelwright.compiler.schedule.candidate import Epilogue, Prologue, ScheduleCandidate
from kernelwright.compiler.schedule.contraction.blocks import (
    accumulator,
    add,
    at,
    block,
    ceil_div,
    ints,
    loop,
    mul,
    scaled,
    smaller,
    span,
)
from kernelwright.compiler.schedule.contraction.taps import Line
from kernelwright.sketch import nodes
from kernelwright.sketch.names import Names
from kernelwright.sketch.nodes import Assign, Gemm, Index, Kernel, Statement, Tensor, Var
from kernelwright.target import Capabilities

MOST_TERMS = 1024
"""Terms of a sum that are added in one go where all phases of a stride take part in it."""


@dataclass(frozen=True)
class Tiling:
    """Extents of one task: output channels, channels summed at once, rows and columns of pixels, the flat pitch of a row, and
    rows and columns of the input tile."""

    out_channels: int
    channels: int
    rows: int
    columns: int
    pitch: int
    tile_rows: int
    tile_columns: int

    @property
    def flat(self) -> int:
        return self.rows * self.pitch


class PlainConv:
    """One problem with its hooks. The last axis is the column, the one before it the row (1-D: a single row); any axis before
    those is walked one position at a time."""

    def __init__(
        self,
        problem: ConvProblem,
        lines: tuple[Line, ...],
        load_x: Prologue,
        load_w: Prologue,
        finish: Epilogue,
        names: Names,
        machine: Capabilities,
        whole: bool = False,
    ) -> None:
        self.whole, self.batch = whole, problem.batch
        self.p, self.load_x, self.load_w, self.finish, self.names, self.machine = (
            problem.likely(),
            load_x,
            load_w,
            finish,
            names,
            machine,
        )
        self.outer = lines[:-2]
        self.row = lines[-2] if len(lines) > 1 else Line(1, 1, 1, 0, 1, 1, problem.transposed)
        self.column = lines[-1]
        self.has_rows = len(lines) > 1
        self.lines = lines
        # Taps along an axis walked one position at a time join the channels: one longer sum instead of several short ones. (Those of
        # a transposed convolution run backwards and differ between phases; they stay a loop.)
        self.joined = () if problem.transposed else self.outer
        self.depth_taps = math.prod(line.kernel for line in self.joined)
        self.group_out = problem.out_channels // problem.groups
        self.group_in = problem.channels // problem.groups
        # Phases of a stride side by side in one tile: their taps are then one sum, and the accumulator is written once.
        strided = [line for line in (self.row, self.column) if line.phases > 1]
        plain = not problem.transposed and all(line.dilation == 1 for line in strided)
        self.together = bool(strided) and plain and machine.vectors

    def is_joined(self, line: Line) -> bool:
        """By identity: two axes may well have the same numbers."""
        return any(line is other for other in self.joined)

    # ------------------------------------------------------------ sizes

    def tiling(self) -> Tiling:
        """Accumulator and input tile together in the second cache, tiles enough for all threads."""
        row, column = self.row, self.column
        rows_all, columns_all = likely(row.end - row.begin), likely(column.end - column.begin)
        budget = self.machine.tile_bytes // 4 // 2
        columns = columns_all if columns_all + column.reach <= 288 else block(columns_all, 256, 16)
        pitch = columns + column.reach if self.has_rows else columns
        out_channels = self.group_out if self.whole else block(self.group_out, 128 if self.machine.vectors else 64, 6)
        outside = self.p.batch * self.p.groups * math.prod(likely(line.end - line.begin) for line in self.outer)

        elsewhere = outside * ceil_div(columns_all, columns) * ceil_div(self.group_out, out_channels)
        rows = self._rows(rows_all, pitch, elsewhere, out_channels)

        def tasks() -> int:
            return outside * ceil_div(rows_all, rows) * ceil_div(columns_all, columns) * ceil_div(self.group_out, out_channels)

        wanted = 2 * self.machine.units
        while tasks() < wanted and rows * pitch > 64 and smaller(rows_all, rows, 1) < rows:
            rows = smaller(rows_all, rows, 1)
        while (
            not self.whole
            and tasks() < wanted
            and out_channels > 24
            and smaller(self.group_out, out_channels, 12, 6) < out_channels
        ):
            out_channels = smaller(self.group_out, out_channels, 12, 6)
        if self.has_rows:
            rows = scaled(rows_all, rows, self.machine.grain)
        else:
            columns = pitch = scaled(columns_all, columns, self.machine.grain, 16)
        extra = 1 if column.reach and self.has_rows else 0  # the last window runs over the end of its last row
        tile_rows, tile_columns = rows + row.reach + extra, columns + column.reach
        # a window of one tap is read once: then all channels that fit are summed at once, and the accumulator is written once
        most = 64 if math.prod(line.kernel for line in self.lines) > 1 else 256
        tile = tile_rows * tile_columns
        if self.together:
            tile *= row.stride * column.stride
            most = max(1, MOST_TERMS // (row.kernel * column.kernel))
        channels = block(self.group_in, max(1, min(most, budget // tile) // self.depth_taps), 4)
        return Tiling(out_channels, channels, rows, columns, pitch, tile_rows, tile_columns)

    def _rows(self, rows_all: int, pitch: int, elsewhere: int, out_channels: int) -> int:
        """Rows of a tile, of which `elsewhere` others lie beside each: about 512 pixels, where that fills vectors and rounds of all
        threads best. Copying an input row for all phases of a stride costs about a cycle for an element (measured on Zen 4), its
        products a vector of pixels a cycle for each tap and output channel."""
        if not self.machine.vectors:  # sums in registers: without matrix units operands take half of what there is for them
            pixels = self.machine.accumulator_bytes // (2 * self.p.dtype.size * out_channels)
            return block(rows_all, max(1, min(rows_all, pixels // pitch)))
        ideal = max(1, min(rows_all, 512 // pitch))
        row, column, lanes = self.row, self.column, 16
        copying = lanes * row.stride * column.stride / (self.group_out * row.kernel * column.kernel)

        def cost(rows: int) -> tuple[float, int]:
            rounds = ceil_div(elsewhere * ceil_div(rows_all, rows), self.machine.units)
            products = ceil_div(rows * pitch, lanes) * lanes
            return rounds * (products + copying * (rows + row.reach) * pitch), -rows

        most = ideal + ideal // 4
        return min((rows for rows in range(max(1, ideal // 2), most + 1) if rows <= rows_all), key=cost)

    # ------------------------------------------------------------ kernels

    def piece(self) -> ScheduleCandidate:
        packed, pack = self.packed_weight()
        tiling = self.tiling()
        kernel = Kernel(self.names.fresh("conv"), tuple(self.tasks(packed, tiling)))
        useful = self.p.out_spatial[-1] * tiling.rows / max(tiling.flat * ceil_div(self.p.out_spatial[-1], tiling.columns), 1)
        cost = self.cost(useful)
        tensor = Tensor(packed, self.packed_shape(), self.p.dtype, "temp")
        return ScheduleCandidate((pack, kernel), (tensor,), (), cost, (self.reason(tiling),))

    def reason(self, t: Tiling) -> str:
        """Why the tiles are as they are."""
        m = self.machine
        sums, read = t.out_channels * t.flat, t.channels * self.depth_taps * t.tile_rows * t.tile_columns
        return (
            f"convolution {self.p.channels} -> {self.p.out_channels}: tiles of {t.out_channels} channels x {t.rows} x {t.columns} pixels, "
            f"{t.channels} channels at a time: {sums * self.p.dtype.size >> 10} KiB of sums ({m.accumulator_bytes >> 10} may be), "
            f"{read * self.p.dtype.size >> 10} KiB of input ({m.tile_bytes >> 10} near a unit), for {m.units} units"
        )

    def cost(self, useful: float) -> float:
        """Seconds, given the useful part of all columns. A block of registers has six rows: fewer output channels leave it partly
        empty."""
        filled = min(1.0, 0.2 + 0.8 * self.group_out / 6)
        return self.p.flops / (self.machine.peak * 0.75 * filled * min(1.0, max(useful, 0.2)))

    def packed_weight(self) -> tuple[str, Kernel]:
        """Weights as [*taps, out channel, channel in group]: the products read whole rows of channels. An axis with several phases
        has two axes of taps, (phase, tap of the phase), so that every position that a loop can name exists."""
        p, fresh = self.p, self.names.fresh
        name = fresh("weight_packed")
        g, o = fresh("g"), fresh("o")
        phases: list[str | int] = [fresh("phase") if line.phases > 1 and not self.is_joined(line) else 0 for line in self.lines]
        taps = [fresh("tap") for _ in self.lines]
        kernel_at = [
            at(t if self.is_joined(line) else line.tap(phase, t))
            for line, phase, t in zip(self.lines, phases, taps, strict=True)
        ]
        if p.transposed:
            tile = self.load_w((span(mul(g, self.group_in), self.group_in), at(o), *kernel_at))
            row = add(mul(g, self.group_out), o)
        else:
            tile = self.load_w((at(o), span(0, self.group_in), *kernel_at))
            row = add(o, 0)
        channels = span(0, self.group_in)
        if self.joined:
            channels = span(taps[0], self.group_in, self.depth_taps)
        region = (*self.taps_at(phases, taps), at(row), channels)
        body: list[Statement] = [nodes.Store(name, region, tile)]
        for line, phase, t in zip(reversed(self.lines), reversed(phases), reversed(taps), strict=True):
            body = [loop("range", t, 0, line.kernel if self.is_joined(line) else line.tap_count(phase), 1, body)]
            if isinstance(phase, str):
                body = [loop("range", phase, 0, line.phases, 1, body)]
        body = [loop("parallel", o, 0, self.group_out if p.transposed else p.out_channels, 1, body)]
        if p.transposed:
            body = [loop("parallel", g, 0, p.groups, 1, body)]
        return name, Kernel(fresh("pack_weight"), tuple(body), once=p.weight_constant)

    def packed_shape(self) -> tuple[Index, ...]:
        taps: list[int] = []
        for line in self.lines[len(self.joined) :]:
            taps += [line.phases, line.taps] if line.phases > 1 else [line.kernel]
        return ints(*taps, self.p.out_channels, self.group_in * self.depth_taps)

    def taps_at(self, phases: Sequence[str | int], taps: Sequence[str | int]) -> list[nodes.Axis]:
        """Where in the packed weights the taps of these phases lie."""
        axes: list[nodes.Axis] = []
        for line, phase, t in list(zip(self.lines, phases, taps, strict=True))[len(self.joined) :]:
            axes += [at(phase), at(t)] if line.phases > 1 else [at(t)]
        return axes

    def tasks(self, packed: str, tiling: Tiling) -> list[Statement]:
        """Parallel loops over images, groups, output positions and blocks of output channels."""
        p, fresh = self.p, self.names.fresh
        n, g, o, h, w = (fresh(stem) for stem in ("n", "g", "o", "h", "w"))
        depth = [fresh("d") for _ in self.outer]
        first_out: Index = add(mul(g, self.group_out), o) if p.groups > 1 else add(o, 0)
        first_in: Index = mul(g, self.group_in) if p.groups > 1 else add(0, 0)
        body = self.phases(
            lambda phases: self.one_phase(packed, tiling, n, first_in, first_out, depth, h, w, phases), transposed_only=True
        )
        body = [loop("parallel", o, 0, self.group_out, tiling.out_channels, body)]
        body = [loop("parallel", w, self.column.begin, self.column.end, tiling.columns, body)]
        if self.has_rows:
            body = [loop("parallel", h, self.row.begin, self.row.end, tiling.rows, body)]
        for var, line in zip(reversed(depth), reversed(self.outer), strict=True):
            body = [loop("parallel", var, line.begin, line.end, 1, body)]
        if p.groups > 1:
            body = [loop("parallel", g, 0, p.groups, 1, body)]
        return [loop("parallel", n, 0, self.batch, 1, body)]

    def phases(self, body: object, transposed_only: bool) -> list[Statement]:
        """`body(phases)` under a loop over the phases of every axis that has several: of the output if transposed, else of
        the taps."""
        lines = (*self.outer, self.row, self.column)
        chosen: list[str | int] = []
        loops: list[tuple[str, int]] = []
        for line in lines:
            if line.phases > 1 and transposed_only == self.p.transposed and not self.is_joined(line):
                var = self.names.fresh("phase")
                loops.append((var, line.phases))
                chosen.append(var)
            else:
                chosen.append(0)
        statements: list[Statement] = body(chosen)  # type: ignore[operator]
        for var, count in reversed(loops):
            statements = [loop("range", var, 0, count, 1, statements)]
        return statements

    def one_phase(
        self,
        packed: str,
        t: Tiling,
        n: str,
        first_in: Index,
        first_out: Index,
        depth: Sequence[str],
        h: str,
        w: str,
        phases: Sequence[str | int],
    ) -> list[Statement]:
        """One accumulator: all channels and taps summed, then finished."""
        p = self.p
        position: list[str | int] = [*depth, h if self.has_rows else 0, w]
        acc = Var(self.names.fresh("acc"))
        c = self.names.fresh("c")
        sums = (
            self.windows_together(packed, t, n, first_in, first_out, position, c, acc)
            if self.together
            else self.phases(
                lambda tap_phases: self.window(
                    packed, t, n, first_in, first_out, position, c, acc, tap_phases if not p.transposed else phases
                ),
                transposed_only=False,
            )
        )
        body: list[Statement] = [Assign(acc.name, accumulator(p.dtype, t.out_channels, t.flat))]
        body.append(loop("range", c, 0, self.group_in, t.channels, sums))
        grid = nodes.Reshape(acc, ints(t.out_channels, t.rows, t.pitch))
        columns = span(0, t.columns)
        rows: tuple[nodes.Span | nodes.At, ...] = (span(0, t.rows),) if self.has_rows else (at(0),)
        pixels = Var(self.names.fresh("pixels"))
        body.append(Assign(pixels.name, nodes.Part(grid, (span(0, t.out_channels), *rows, columns))))
        lines = (*self.outer, self.row, self.column)
        starts = [line.out_start(at_, phase) for line, at_, phase in zip(lines, position, phases, strict=True)]
        axes: list[nodes.Axis] = [at(n), span(first_out, t.out_channels)]
        axes += [at(start) for start in starts[:-2]]
        if self.has_rows:
            axes.append(span(starts[-2], t.rows, self.row.out_step))
        axes.append(span(starts[-1], t.columns, self.column.out_step))
        return [*body, *self.finish(pixels, tuple(axes))]

    def window(
        self,
        packed: str,
        t: Tiling,
        n: str,
        first_in: Index,
        first_out: Index,
        position: Sequence[str | int],
        c: str,
        acc: Var,
        phases: Sequence[str | int],
    ) -> list[Statement]:
        """The input tile of one phase, and the products of all its taps with it."""
        fresh = self.names.fresh
        lines = (*self.outer, self.row, self.column)
        kd: list[str | int] = [0 if self.is_joined(line) else fresh("kd") for line in self.outer]
        kh: str | int = fresh("kh") if self.has_rows else 0
        kw = fresh("kw")
        tap: list[str | int] = [*kd, kh, kw]
        axes: list[nodes.Axis] = [at(n), span(add(first_in, c), t.channels)]
        for line, where, phase, k in zip(self.outer, position, phases, kd, strict=False):
            if self.is_joined(line):
                axes.append(span(line.tile_start(where, 0), line.kernel, line.dilation))
            else:
                axes.append(at(add(line.tile_start(where, phase), mul(line.offset(k), line.tile_step))))
        if self.has_rows:
            axes.append(span(self.row.tile_start(position[-2], phases[-2]), t.tile_rows, self.row.tile_step))
        axes.append(span(self.column.tile_start(position[-1], phases[-1]), t.tile_columns, self.column.tile_step))
        x = Var(fresh("x_tile"))
        window = Var(fresh("window"))
        sums = t.channels * self.depth_taps
        flat = nodes.Reshape(x, ints(sums, t.tile_rows * t.pitch)) if self.has_rows else x
        shift = add(mul(self.row.offset(kh), t.pitch), self.column.offset(kw))
        used = [k for k in range(len(lines)) if self.has_rows or k != len(lines) - 2]
        taps = self.taps_at([phases[k] for k in used], [tap[k] for k in used])
        weight = nodes.Load(packed, (*taps, span(first_out, t.out_channels), span(mul(c, self.depth_taps), sums)), 0)
        part = nodes.Part(flat, (span(0, sums), span(shift, t.flat)))
        step: list[Statement] = [Assign(window.name, part), Assign(acc.name, Gemm(weight, window, acc))]
        step = [loop("range", kw, 0, self.column.tap_count(phases[-1]), 1, step)]
        if isinstance(kh, str):
            step = [loop("range", kh, 0, self.row.tap_count(phases[-2]), 1, step)]
        statements: list[Statement] = [Assign(x.name, self.load_x(tuple(axes))), *step]
        for line, k, phase in zip(reversed(self.outer), reversed(kd), reversed(phases[:-2]), strict=True):
            if isinstance(k, int):
                continue
            statements = [loop("range", k, 0, line.tap_count(phase), 1, statements)]
        return statements

    def windows_together(
        self, packed: str, t: Tiling, n: str, first_in: Index, first_out: Index, position: Sequence[str | int], c: str, acc: Var
    ) -> list[Statement]:
        """The input tiles of all phases of a stride side by side, [row phase, column phase, channel, row, column], and the products of
        all taps with them."""
        fresh = self.names.fresh
        row, column = self.row, self.column
        sums = t.channels * self.depth_taps
        axes: list[nodes.Axis] = [at(n), span(add(first_in, c), t.channels)]
        axes += [
            span(line.tile_start(where, 0), line.kernel, line.dilation)
            for line, where in zip(self.outer, position, strict=False)
        ]
        tall, down = (t.tile_rows, row.stride) if self.has_rows else (1, 1)
        if self.has_rows:
            axes.append(span(row.tile_start(position[-2], 0), tall * down))
        axes.append(span(column.tile_start(position[-1], 0), t.tile_columns * column.stride))
        x, window = Var(fresh("x_tile")), Var(fresh("window"))
        apart = nodes.Reshape(self.load_x(tuple(axes)), ints(sums, tall, down, t.tile_columns, column.stride))
        kh, kw = fresh("kh"), fresh("kw")

        def products(phases: Sequence[str | int]) -> list[Statement]:
            down_at, across_at = phases[-2], phases[-1]
            tile = nodes.Part(x, (at(down_at), at(across_at), span(0, sums), span(0, tall), span(0, t.tile_columns)))
            flat = nodes.Reshape(tile, ints(sums, tall * t.tile_columns))
            tap: list[str | int] = [*([0] * len(self.outer)), kh if self.has_rows else 0, kw]
            used = [k for k in range(len(tap)) if self.has_rows or k != len(tap) - 2]
            taps = self.taps_at([phases[k] for k in used], [tap[k] for k in used])
            weight = nodes.Load(packed, (*taps, span(first_out, t.out_channels), span(mul(c, self.depth_taps), sums)), 0)
            shift = add(mul(row.offset(tap[-2]), t.pitch), column.offset(kw))
            part = nodes.Part(flat, (span(0, sums), span(shift, t.flat)))
            step: list[Statement] = [Assign(window.name, part), Assign(acc.name, Gemm(weight, window, acc))]
            step = [loop("range", kw, 0, column.tap_count(across_at), 1, step)]
            return [loop("range", kh, 0, row.tap_count(down_at), 1, step)] if self.has_rows else step

        return [Assign(x.name, nodes.Permute(apart, (2, 4, 0, 1, 3))), *self.phases(products, transposed_only=False)]
