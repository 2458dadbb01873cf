"""Transposed convolutions with strides: every output phase is a plain convolution of one and the same input tile.

A task loads its input tile once, sums each phase of the rows and columns in an accumulator of its own (the products of conv.py),
and puts the phases side by side in the cache; so what follows sees whole rows of the output, and stores them as they lie.

In: a transposed ConvProblem whose last two axes are not dilated, loaders, the epilogue. Out: a ScheduleCandidate, or None where
this does not apply.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from kernelwright.compiler.graph.symbolic import likely
from kernelwright.compiler.schedule.candidate import ScheduleCandidate
from kernelwright.compiler.schedule.contraction.blocks import (
    accumulator,
    add,
    at,
    block,
    ceil_div,
    ints,
    loop,
    mul,
    smaller,
    span,
)
from kernelwright.compiler.schedule.contraction.direct_conv import PlainConv, Tiling
from kernelwright.compiler.schedule.contraction.taps import Line
from kernelwright.sketch import nodes
from kernelwright.sketch.nodes import Assign, Gemm, Index, Kernel, Statement, Tensor, Tile, Var

MOST_PHASES = 16
LONGEST_STRIDE = 8


class TransposedConv(PlainConv):
    """One problem with its hooks."""

    def applies(self) -> bool:
        """Several phases along rows or columns, all of which read one tile."""
        lines = (self.row, self.column)
        count = self.row.phases * self.column.phases
        short = all(line.dilation == 1 and line.phases <= LONGEST_STRIDE for line in lines)
        return self.machine.vectors and self.p.transposed and short and 1 < count <= MOST_PHASES

    def tiling(self) -> Tiling:
        """As for a plain convolution, with rows shared among the phases."""
        plain = super().tiling()
        count = self.row.phases * self.column.phases
        rows_all = likely(self.row.end - self.row.begin)
        rows = plain.rows
        while rows > 1 and count * plain.out_channels * rows * plain.pitch * 4 > self.machine.tile_bytes // 2:
            fewer = smaller(rows_all, rows, 1)
            if fewer == rows:
                break
            rows = fewer
        out_channels = plain.out_channels
        while not self.whole and out_channels > 24 and count * out_channels * rows * plain.pitch * 4 > self.machine.tile_bytes:
            out_channels = smaller(self.group_out, out_channels, 12, 6)
            if out_channels == block(self.group_out, out_channels, 6):
                break
        return replace(plain, rows=rows, out_channels=out_channels, tile_rows=plain.tile_rows - plain.rows + rows)

    def piece(self) -> ScheduleCandidate:
        packed, pack = self.packed_weight()
        tiling = self.tiling()
        kernel = Kernel(self.names.fresh("conv_phases"), tuple(self.tasks(packed, tiling)))
        useful = likely(self.column.out) / (
            tiling.pitch * self.column.phases * ceil_div(likely(self.column.end - self.column.begin), tiling.columns)
        )
        return ScheduleCandidate(
            (pack, kernel), (Tensor(packed, self.packed_shape(), self.p.dtype, "temp"),), (), 0.9 * self.cost(useful)
        )

    def tasks(self, packed: str, tiling: Tiling) -> list[Statement]:
        """Parallel loops over images, groups, positions and blocks of output channels; phases in depth one after another."""
        p, fresh = self.p, self.names.fresh
        n, g, o, h, w = (fresh(stem) for stem in "ngohw")
        depth = [fresh("d") for _ in self.outer]
        phases: list[str | int] = [fresh("phase") if line.phases > 1 else 0 for line in self.outer]
        first_out: Index = add(mul(g, self.group_out), o) if p.groups > 1 else add(o, 0)
        first_in: Index = mul(g, self.group_in) if p.groups > 1 else add(0, 0)
        position: list[str | int] = [*depth, h if self.has_rows else 0, w]
        body = self.all_phases(packed, tiling, n, first_in, first_out, position, phases)
        for phase, line in zip(reversed(phases), reversed(self.outer), strict=True):
            if isinstance(phase, str):
                body = [loop("range", phase, 0, line.phases, 1, body)]
        body = [loop("parallel", o, 0, self.group_out, tiling.out_channels, body)]
        body = [loop("parallel", w, self.column.begin, self.column.end, tiling.columns, body)]
        if self.has_rows:
            body = [loop("parallel", h, self.row.begin, self.row.end, tiling.rows, body)]
        for var, line in zip(reversed(depth), reversed(self.outer), strict=True):
            body = [loop("parallel", var, line.begin, line.end, 1, body)]
        if p.groups > 1:
            body = [loop("parallel", g, 0, p.groups, 1, body)]
        return [loop("parallel", n, 0, self.batch, 1, body)]

    def all_phases(
        self,
        packed: str,
        t: Tiling,
        n: str,
        first_in: Index,
        first_out: Index,
        position: Sequence[str | int],
        outer_phases: Sequence[str | int],
    ) -> list[Statement]:
        """Accumulators of all phases over one input tile, then the rows of the output that they are."""
        fresh, dtype = self.names.fresh, self.p.dtype
        pairs = list(itertools.product(range(self.row.phases), range(self.column.phases)))
        sums = {pair: Var(fresh("acc")) for pair in pairs}
        body: list[Statement] = [Assign(acc.name, accumulator(dtype, t.out_channels, t.flat)) for acc in sums.values()]
        c = fresh("c")
        kd = [fresh("kd") for _ in self.outer]
        axes: list[nodes.Axis] = [at(n), span(add(first_in, c), t.channels)]
        for line, where, phase, k in zip(self.outer, position, outer_phases, kd, strict=False):
            axes.append(at(add(line.tile_start(where, phase), line.offset(k))))
        if self.has_rows:
            axes.append(span(self.row.tile_start(position[-2], 0), t.tile_rows))
        axes.append(span(self.column.tile_start(position[-1], 0), t.tile_columns))
        x = Var(fresh("x_tile"))
        step: list[Statement] = [Assign(x.name, self.load_x(tuple(axes)))]
        for pair, acc in sums.items():
            step += self.one_sum(packed, t, x, first_out, c, [*outer_phases, *pair], kd, acc)
        for line, phase, k in zip(reversed(self.outer), reversed(outer_phases), reversed(kd), strict=True):
            step = [loop("range", k, 0, line.tap_count(phase), 1, step)]
        body.append(loop("range", c, 0, self.group_in, t.channels, step))
        body += self.interleaved(t, sums, n, first_out, position, outer_phases)
        return body

    def one_sum(
        self, packed: str, t: Tiling, x: Var, first_out: Index, c: str, phases: Sequence[str | int], kd: Sequence[str], acc: Var
    ) -> list[Statement]:
        """All taps of one phase, added to its accumulator."""
        row_phase, column_phase = phases[-2], phases[-1]
        kh: str | int = self.names.fresh("kh") if self.has_rows else 0
        kw = self.names.fresh("kw")
        taps: list[str | int] = [*kd, *([kh] if self.has_rows else []), kw]
        used = [*phases[:-2], *([row_phase] if self.has_rows else []), column_phase]
        shift = add(mul(self.row.offset(kh), t.pitch), self.column.offset(kw))
        flat = nodes.Reshape(x, ints(t.channels, t.tile_rows * t.pitch)) if self.has_rows else x
        weight = nodes.Load(packed, (*self.taps_at(used, taps), span(first_out, t.out_channels), span(c, t.channels)), 0)
        window = Var(self.names.fresh("window"))
        part = nodes.Part(flat, (span(0, t.channels), span(shift, t.flat)))
        step: list[Statement] = [Assign(window.name, part), Assign(acc.name, Gemm(weight, window, acc))]
        step = [loop("range", kw, 0, self.column.tap_count(column_phase), 1, step)]
        return [loop("range", kh, 0, self.row.tap_count(row_phase), 1, step)] if isinstance(kh, str) else step

    def interleaved(
        self,
        t: Tiling,
        sums: dict[tuple[int, int], Var],
        n: str,
        first_out: Index,
        position: Sequence[str | int],
        outer_phases: Sequence[str | int],
    ) -> list[Statement]:
        """The phases side by side as rows of the output, and what follows them."""

        def pixels(pair: tuple[int, int]) -> Tile:
            grid = nodes.Reshape(sums[pair], ints(t.out_channels, t.rows, t.pitch))
            return nodes.Part(grid, (span(0, t.out_channels), span(0, t.rows), span(0, t.columns)))

        row_phases, column_phases = self.row.phases, self.column.phases
        lines = [nodes.Stack(tuple([pixels((r, c)) for c in range(column_phases)]), 3) for r in range(row_phases)]
        whole = Var(self.names.fresh("phases"))
        image = Var(self.names.fresh("pixels"))
        shape = [t.rows * row_phases] * self.has_rows + [t.columns * column_phases]
        body: list[Statement] = [
            Assign(whole.name, nodes.Stack(tuple(lines), 2)),
            Assign(image.name, nodes.Reshape(whole, ints(t.out_channels, *shape))),
        ]
        axes: list[nodes.Axis] = [at(n), span(first_out, t.out_channels)]
        axes += [
            at(line.out_start(where, phase)) for line, where, phase in zip(self.outer, position, outer_phases, strict=False)
        ]
        if self.has_rows:
            axes.append(self._span(self.row, position[-2], t.rows))
        axes.append(self._span(self.column, position[-1], t.columns))
        return [*body, *self.finish(image, tuple(axes))]

    @staticmethod
    def _span(line: Line, where: str | int, extent: int) -> nodes.Span:
        return span(line.out_start(where, 0), extent * line.phases)
