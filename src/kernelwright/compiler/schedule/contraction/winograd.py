"""3 x 3 convolutions with a third of the multiplications: Winograd's F(4 x 2, 3 x 3), inside a tile that stays in the cache.

Four rows by two columns of output are a patch of 6 x 4 inputs and 24 products, where the direct way needs 72. Patches are
transformed (R: columns by six values, V: rows by four), multiplied as 24 independent matrix products over the channels, and
transformed back; transformed weights are made once. Along rows the evaluation points are 0, 1, -1 and infinity; along columns the
six of points.py (measured: errors of at most 27 units of the output's scale at 64 channels, where the direct sum has 8).

Four rows by four columns, F(4 x 4, 3 x 3), need 36 products instead of 144, a quarter, but have errors of 89 such units: near what a
judge lets pass. Such a piece is never the first choice; a search may find that it is faster, and a verdict that it is right.

A strided convolution whose kernel has three taps in each phase of the stride (5 x 5 or 6 x 6 with stride 2) is one of 3 x 3 and stride 1
over all phases of the input, which join the channels: a tap that a phase does not have is zero.

In: a ConvProblem with a kernel of 3 x 3 along its last two axes (taps of a third axis join the channels), loaders, the epilogue.
Out: a ScheduleCandidate, or None where this does not apply.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from kernelwright.compiler.graph.problems import ConvProblem
from kernelwright.compiler.schedule.candidate import Epilogue, Prologue, ScheduleCandidate
from kernelwright.compiler.schedule.contraction import winograd_points
from kernelwright.compiler.schedule.contraction.blocks import add, at, block, ceil_div, ints, loop, mul, scaled, span
from kernelwright.compiler.schedule.contraction.taps import Line
from kernelwright.compiler.schedule.contraction.winograd_points import inputs_at, minus, outputs_from, plus, times, weights_at
from kernelwright.sketch import nodes
from kernelwright.sketch.names import Names
from kernelwright.sketch.nodes import Assign, DType, Gemm, Index, Kernel, Statement, Tensor, Tile, Var
from kernelwright.target import Capabilities

LEAST_CHANNELS = 8
"""With fewer channels or outputs the transforms cost more than the products save."""
LARGEST = 1.25
"""Of what tiles may take, the part that transformed inputs and products of one task may have: most of a second-level cache."""


def lower_winograd(
    p: ConvProblem, lines: tuple[Line, ...], load_x: Prologue, load_w: Prologue, finish: Epilogue, names: Names, machine: Capabilities,
    whole: bool = False, columns: int = 2,
) -> ScheduleCandidate | None:  # fmt: skip
    """The schedule with so many `columns` (2 or 4) of outputs in a patch, where kernel, strides and channels suit it."""
    if not machine.vectors or len(lines) < 2 or p.dtype is not DType.f32 or not p.weight_constant:
        return None
    if any(line.taps != 3 or line.dilation != 1 for line in lines[-2:]):
        return None
    if p.transposed and (len(lines) > 2 or any(line.stride > 1 for line in lines)):
        return None
    family = _Winograd(p, lines, load_x, load_w, finish, names, machine, whole, columns)
    if min(family.group_out, family.sums) < LEAST_CHANNELS or not family.fits():
        return None
    return family.piece()


class _Winograd:
    """One problem with its hooks."""

    def __init__(
        self,
        problem: ConvProblem,
        lines: tuple[Line, ...],
        load_x: Prologue,
        load_w: Prologue,
        finish: Epilogue,
        names: Names,
        machine: Capabilities,
        whole: bool,
        columns: int,
    ) -> None:
        self.each = columns
        self.points = winograd_points.COUNT * (columns + 2)
        self.p, self.batch = problem.likely(), problem.batch
        self.load_x, self.load_w, self.finish = load_x, load_w, finish
        self.names, self.machine = names, machine
        self.most = LARGEST * machine.tile_bytes
        self.outer, self.row, self.column = lines[:-2], lines[-2], lines[-1]
        self.group_out = problem.out_channels // problem.groups
        self.group_in = problem.channels // problem.groups
        self.phases = self.row.stride * self.column.stride
        self.phase_sums = self.group_in * math.prod(line.kernel for line in self.outer)
        self.sums = self.phases * self.phase_sums
        self.rows_all, self.columns_all = ceil_div(self.row.out, 4), ceil_div(self.column.out, columns)
        self.out_channels = self.group_out if whole else block(self.group_out, 48, 6)
        self._choose_tiles()

    def _choose_tiles(self) -> None:
        """Patches per task, by what all tasks would cost the busiest thread."""
        outside = self.p.batch * self.p.groups * math.prod(line.out for line in self.outer)

        def cost(tile: tuple[int, int]) -> tuple[float, int]:
            across, down = tile
            tasks = outside * ceil_div(self.columns_all, across) * ceil_div(self.rows_all, down)
            return ceil_div(tasks, self.machine.units) * self._cycles(across, down), -across * down

        parts = range(1, ceil_div(self.columns_all, 16) + 1)
        evenly = [ceil_div(self.columns_all, count) for count in parts]
        wide = {
            min(ceil_div(each, lanes) * lanes, ceil_div(self.columns_all, lanes) * lanes)
            for each in evenly
            for lanes in (1, 8, 16)
        }
        tiles = [(across, down) for across in sorted(wide) for down in range(1, min(self.rows_all, 12) + 1)]
        self.across, self.down = min([t for t in tiles if self._bytes(*t) <= self.most] or tiles[:1], key=cost)
        self.down = scaled(self.rows_all, self.down, self.machine.grain)

    def _bytes(self, across: int, down: int) -> int:
        """What transformed inputs and products of one task take."""
        return 4 * self.points * across * down * (self.sums + self.out_channels)

    def _cycles(self, across: int, down: int) -> float:
        """Of one task, on a core with vectors of 16 lanes (measured on Zen 4). Products go by strips of four vectors of patches; what is
        left over makes fewer sums at a time. Transforms go along each row of patches, where a rest takes half vectors and elements;
        the more of the second cache a task needs, the longer everything waits."""
        vectors = ceil_div(across * down, 16)
        strips = vectors // 4 * 4 + (0.0, 1.6, 2.2, 3.1)[vectors % 4]
        outputs = ceil_div(self.group_out, self.out_channels) * self.out_channels
        products = self.points * self.sums * outputs * strips
        there = self.sums * down * (20 * _steps(self.wide(across)) + 3 * self.points * _steps(across))
        back = outputs * down * (4 * self.points * _steps(across) + 20 * _steps(self.each * across))
        return (products + there + back) * (1 + 0.6 * self._bytes(across, down) / (2 * self.machine.tile_bytes))

    def wide(self, across: int) -> int:
        """Columns of input that so many patches read; as many as make whole groups of a patch's outputs."""
        return self.each * (across + 1)

    @property
    def patches(self) -> int:
        return self.down * self.across

    def fits(self) -> bool:
        return self._bytes(self.across, self.down) <= self.most * max(1.0, self.machine.grain) and self.patches >= 12

    # ------------------------------------------------------------ cost

    def cost(self) -> float:
        """Cycles of a core that issues two vector operations of eight lanes at a time (measured on Zen 3: products at 80 % of
        peak, 14 cycles to transform a patch and 10 to transform it back)."""
        p = self.p
        patches = p.batch * math.prod(line.out for line in self.outer) * self.rows_all * self.columns_all
        blocks = ceil_div(self.rows_all, self.down) * self.down / self.rows_all
        blocks *= ceil_div(self.columns_all, self.across) * self.across / self.columns_all
        products = 2.0 * self.points * self.sums * p.out_channels / 0.8
        transforms = 32.0 * (14 * self.sums * p.groups + 10 * p.out_channels) * self.points / 24
        return patches * blocks * (products + transforms) / (self.machine.peak)

    # ------------------------------------------------------------ kernels

    def piece(self) -> ScheduleCandidate:
        weights = self.names.fresh("weight_points")
        kernels = (self.weights(weights), Kernel(self.names.fresh("winograd"), tuple(self.tasks(weights))))
        tensor = Tensor(weights, ints(self.points, self.p.out_channels, self.sums), self.p.dtype, "temp")
        p = self.p
        direct = 4 * self.each * self.row.kernel * self.column.kernel
        made = f"{self.points * self.phases} products for 4 x {self.each} outputs instead of {direct}"
        note = f"convolution {p.channels} -> {p.out_channels}: {made} (Winograd)"
        return ScheduleCandidate(kernels, (tensor,), (), self.cost(), (note,))

    def binder(self, body: list[Statement]) -> Callable[[str, Tile], Var]:
        def bind(stem: str, tile: Tile) -> Var:
            name = self.names.fresh(stem)
            body.append(Assign(name, tile))
            return Var(name)

        return bind

    def weights(self, into: str) -> Kernel:
        """Weights at all points, [point, out channel, channel]; the channels of all phases of a stride one after another."""
        p, o = self.p, self.names.fresh("o")
        down, across = (self.names.fresh("phase") if line.stride > 1 else 0 for line in (self.row, self.column))
        body: list[Statement] = []
        bind = self.binder(body)
        taps: tuple[nodes.Axis, ...] = tuple(span(0, line.kernel) for line in self.outer)
        sums = self.phase_sums

        def tap(row: int) -> Tile:
            if not p.transposed:
                three = span(across, 3, self.column.stride)
                tile = self.load_w((at(o), span(0, self.group_in), *taps, at(self.row.tap(down, row)), three))
                return nodes.Reshape(tile, ints(sums, 3)) if self.outer else tile
            group: Index = nodes.IndexOp("//", nodes.Sym(o), nodes.Int(self.group_out))
            inside: Index = nodes.IndexOp("%", nodes.Sym(o), nodes.Int(self.group_out))
            return self.load_w((span(mul(group, self.group_in), self.group_in), at(inside), at(2 - row), span(2, 3, -1)))

        first, second, third = (bind("tap", tap(r)) for r in range(3))
        columns = weights_at(bind, [first, second, third])
        tall = bind("columns", nodes.Stack(tuple(columns), 0))
        left, middle, right = (nodes.Part(tall, (span(0, 6), span(0, sums), at(k))) for k in range(3))
        if self.each == 2:
            even = bind("even", times(0.5, plus(left, right)))
            odd = bind("odd", times(0.5, middle))
            both = [times(-1.0, left), plus(even, odd), minus(even, odd), right]
        else:
            both = weights_at(bind, [left, middle, right])
        flat = nodes.Reshape(bind("points", nodes.Stack(tuple(both), 0)), ints(self.points, sums))
        channels = span(mul(add(mul(down, self.column.stride), across), sums), sums)
        body.append(nodes.Store(into, (span(0, self.points), at(o), channels), flat))
        for phase, line in ((across, self.column), (down, self.row)):
            if isinstance(phase, str):
                body = [loop("range", phase, 0, line.stride, 1, body)]
        return Kernel(self.names.fresh("transform_weight"), (loop("parallel", o, 0, p.out_channels, 1, body),), once=True)

    def tasks(self, weights: str) -> list[Statement]:
        """Parallel loops over images, groups and blocks of patches; in each, blocks of output channels one after another."""
        p, fresh = self.p, self.names.fresh
        n, g, h, w, o = (fresh(stem) for stem in "nghwo")
        depth = [fresh("d") for _ in self.outer]
        first_in: Index = mul(g, self.group_in) if p.groups > 1 else add(0, 0)
        first_out: Index = add(mul(g, self.group_out), o) if p.groups > 1 else add(o, 0)
        body: list[Statement] = []
        inputs = self.transformed(body, n, first_in, depth, h, w)
        inner: list[Statement] = []
        self.products(inner, weights, inputs, first_out, [at(n)], [at(d) for d in depth], h, w)
        body.append(loop("range", o, 0, self.group_out, self.out_channels, inner))
        body = [loop("parallel", w, 0, self.columns_all, self.across, body)]
        body = [loop("parallel", h, 0, self.rows_all, self.down, body)]
        for var, line in zip(reversed(depth), reversed(self.outer), strict=True):
            body = [loop("parallel", var, 0, line.out, 1, body)]
        if p.groups > 1:
            body = [loop("parallel", g, 0, p.groups, 1, body)]
        return [loop("parallel", n, 0, self.batch, 1, body)]

    def transformed(self, body: list[Statement], n: str, first_in: Index, depth: Sequence[str], h: str, w: str) -> Var:
        """The input's patches at all points, [point, channel, patch]."""
        bind, down, across, sums = self.binder(body), self.down, self.across, self.sums
        each, wide = self.each, self.wide(self.across)
        axes: list[nodes.Axis] = [at(n), span(first_in, self.group_in)]
        axes += [span(line.tile_start(d, 0), line.kernel, line.dilation) for line, d in zip(self.outer, depth, strict=True)]
        before = [2 - line.padding if self.p.transposed else line.padding for line in (self.row, self.column)]
        tall, apart = self.row.stride, self.column.stride
        axes.append(span(add(mul(h, 4 * tall), -before[0]), (4 * down + 4) * tall))
        axes.append(span(add(mul(w, each * apart), -before[1]), wide * apart))
        tile = self.load_x(tuple(axes))
        if self.phases > 1:
            parts = nodes.Reshape(tile, ints(self.phase_sums, 4 * down + 4, tall, wide, apart))
            tile = nodes.Permute(parts, (2, 4, 0, 1, 3))
        x = bind("x_tile", tile)
        grid = nodes.Reshape(x, ints(sums, down + 1, 4, wide))
        d = [bind(f"x{r}", nodes.Part(grid, (span(0, sums), span(r // 4, down), at(r % 4), span(0, wide)))) for r in range(6)]
        columns = inputs_at(bind, d)
        pairs = nodes.Reshape(bind("columns", nodes.Stack(tuple(columns), 0)), ints(6, sums, down, across + 1, each))

        def shifted(j: int) -> Tile:
            region = (span(0, 6), span(0, sums), span(0, down), span(j // each, across), at(j % each))
            return bind(f"c{j}", nodes.Part(pairs, region))

        c = [shifted(j) for j in range(each + 2)]
        if each == 2:
            both: list[Tile] = [minus(c[2], c[0]), plus(c[2], c[1]), minus(c[2], c[1]), minus(c[3], c[1])]
        else:
            both = inputs_at(bind, c)
        return bind("inputs", nodes.Reshape(bind("points", nodes.Stack(tuple(both), 0)), ints(self.points, sums, self.patches)))

    def products(
        self,
        body: list[Statement],
        weights: str,
        inputs: Var,
        first_out: Index,
        image: Sequence[nodes.Axis],
        depth: Sequence[nodes.Axis],
        h: str,
        w: str,
    ) -> None:
        """A product for each point, and the way back to pixels."""
        bind, each, out, down, across = self.binder(body), self.each, self.out_channels, self.down, self.across
        weight = nodes.Load(weights, (span(0, self.points), span(first_out, out), span(0, self.sums)), 0)
        product = bind("product", Gemm(weight, inputs))
        patches = span(0, self.patches)
        m = [[nodes.Part(product, (at(6 * nu + xi), span(0, out), patches)) for nu in range(each + 2)] for xi in range(6)]
        made = [_pair(m[xi]) if each == 2 else outputs_from(bind, m[xi], 4) for xi in range(6)]
        columns: list[Tile] = []
        for j in range(each):
            rows = outputs_from(bind, [bind("z", made[xi][j]) for xi in range(6)], 4)
            columns.append(nodes.Stack(tuple([nodes.Reshape(row, ints(out, down, across)) for row in rows]), 2))
        pixels = bind("pixels", nodes.Stack(tuple(columns), 4))
        whole = bind("image", nodes.Reshape(pixels, ints(out, 4 * down, each * across)))
        region = (*image, span(first_out, out), *depth, span(mul(h, 4), 4 * down), span(mul(w, each), each * across))
        body += self.finish(whole, tuple(region))


def _pair(m: Sequence[Tile]) -> list[Tile]:
    """Two outputs from the products at 0, 1, -1 and infinity."""
    return [plus(m[0], plus(m[1], m[2])), plus(m[3], minus(m[1], m[2]))]


def _steps(extent: int) -> float:
    """Vectors of 16 lanes that a loop takes, where a rest of 8 is half a vector and a shorter one goes in small pieces."""
    rest = extent % 16
    return extent // 16 + 0.5 * (rest // 8) + 0.5 * (rest % 8 // 4) + 0.25 * (rest % 4)
