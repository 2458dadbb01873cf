"""Convolutions along one axis with 3 to 5 taps in six multiplications for 4 to 2 outputs: Winograd's F(4, 3), F(3, 4) and F(2, 5).

A task takes a piece of the line: its groups of six inputs are transformed (points.py), multiplied as six independent matrix products
over the channels, and transformed back, all within the cache; transformed weights are made once.

In: a ConvProblem of one spatial axis, loaders, the epilogue. Out: a ScheduleCandidate, or None where this does not apply.
"""

from __future__ import annotations

from kernelwright.compiler.graph.problems import ConvProblem
from kernelwright.compiler.schedule.candidate import Epilogue, Prologue, ScheduleCandidate
from kernelwright.compiler.schedule.contraction.blocks import add, at, block, ceil_div, ints, loop, mul, scaled, smaller, span
from kernelwright.compiler.schedule.contraction.taps import Line
from kernelwright.compiler.schedule.contraction.winograd_points import COUNT, Bind, inputs_at, outputs_from, weights_at
from kernelwright.sketch import nodes
from kernelwright.sketch.names import Names
from kernelwright.sketch.nodes import Assign, DType, Gemm, Index, Kernel, Statement, Tensor, Tile, Var
from kernelwright.target import Capabilities

LEAST_CHANNELS = 12


def lower_line(
    p: ConvProblem, lines: tuple[Line, ...], load_x: Prologue, load_w: Prologue, finish: Epilogue, names: Names, machine: Capabilities,
    whole: bool = False,
) -> ScheduleCandidate | None:  # fmt: skip
    """The schedule, where kernel, strides and channels suit it."""
    if not machine.vectors or len(lines) != 1 or p.transposed or p.dtype is not DType.f32 or not p.weight_constant:
        return None
    line = lines[0]
    if line.kernel not in (3, 4, 5) or line.stride != 1 or line.dilation != 1:
        return None
    if min(p.channels, p.out_channels) // p.groups < LEAST_CHANNELS:
        return None
    return _Line(p, line, load_x, load_w, finish, names, machine, whole).piece()


class _Line:
    """One problem with its hooks."""

    def __init__(
        self, problem: ConvProblem, line: Line, load_x: Prologue, load_w: Prologue, finish: Epilogue, names: Names, machine: Capabilities,
        whole: bool,
    ) -> None:  # fmt: skip
        self.p, self.batch = problem.likely(), problem.batch
        self.line, self.load_x, self.load_w, self.finish = line, load_x, load_w, finish
        self.names, self.machine = names, machine
        self.outputs = COUNT + 1 - line.kernel
        self.group_in, self.group_out = problem.channels // problem.groups, problem.out_channels // problem.groups
        self.out_channels = self.group_out if whole else block(self.group_out, 96, 6)
        self.groups_all = ceil_div(line.out, self.outputs)
        most = machine.tile_bytes // (4 * COUNT * (self.group_in + self.out_channels))
        self.across = block(self.groups_all, max(16, min(128, most)), 16)
        while self.tasks_all() < 2 * machine.units and smaller(self.groups_all, self.across, 16, 16) < self.across:
            self.across = smaller(self.groups_all, self.across, 16, 16)
        self.across = scaled(self.groups_all, self.across, machine.grain, 16)

    def tasks_all(self) -> int:
        return self.p.batch * self.p.groups * ceil_div(self.groups_all, self.across)

    def cost(self) -> float:
        """Like the other convolutions', in operations of a core: products at 80 % of peak, some 6 cycles to transform six inputs
        and 5 to transform them back."""
        p = self.p
        places = p.batch * ceil_div(self.groups_all, self.across) * self.across
        products = 2.0 * COUNT * self.group_in * p.out_channels / 0.8
        return places * (products + 32.0 * (6 * p.channels + 5 * p.out_channels)) / (self.machine.peak)

    def binder(self, body: list[Statement]) -> Bind:
        def bind(stem: str, tile: Tile) -> Var:
            name = self.names.fresh(stem)
            body.append(Assign(name, tile))
            return Var(name)

        return bind

    def piece(self) -> ScheduleCandidate:
        p = self.p
        weights = self.names.fresh("weight_points")
        kernels = (self.weights(weights), Kernel(self.names.fresh("winograd"), tuple(self.tasks(weights))))
        tensor = Tensor(weights, ints(COUNT, p.out_channels, self.group_in), p.dtype, "temp")
        taps = self.line.kernel
        note = f"convolution {p.channels} -> {p.out_channels}: 6 products for {self.outputs} outputs of {taps} taps (Winograd)"
        return ScheduleCandidate(kernels, (tensor,), (), self.cost(), (note,))

    def weights(self, into: str) -> Kernel:
        """Weights at the six points, [point, out channel, channel]."""
        o = self.names.fresh("o")
        body: list[Statement] = []
        bind = self.binder(body)
        taps = [bind("tap", self.load_w((at(o), span(0, self.group_in), at(k)))) for k in range(self.line.kernel)]
        points = bind("points", nodes.Stack(tuple(weights_at(bind, taps)), 0))
        body.append(nodes.Store(into, (span(0, COUNT), at(o), span(0, self.group_in)), points))
        return Kernel(self.names.fresh("transform_weight"), (loop("parallel", o, 0, self.p.out_channels, 1, body),), once=True)

    def tasks(self, weights: str) -> list[Statement]:
        """Parallel loops over images, groups and pieces of the line; in each, blocks of output channels one after another."""
        p, fresh, many, across = self.p, self.names.fresh, self.outputs, self.across
        n, g, w, o = (fresh(stem) for stem in "ngwo")
        first_in: Index = mul(g, self.group_in) if p.groups > 1 else add(0, 0)
        first_out: Index = add(mul(g, self.group_out), o) if p.groups > 1 else add(o, 0)
        body: list[Statement] = []
        bind = self.binder(body)
        groups = across + ceil_div(COUNT, many) - 1
        start = add(mul(w, many), -self.line.padding)
        x = bind("x_tile", self.load_x((at(n), span(first_in, self.group_in), span(start, groups * many))))
        grid = nodes.Reshape(x, ints(self.group_in, groups, many))
        d = [
            bind(f"x{j}", nodes.Part(grid, (span(0, self.group_in), span(j // many, across), at(j % many))))
            for j in range(COUNT)
        ]
        inputs = bind("inputs", nodes.Stack(tuple(inputs_at(bind, d)), 0))
        inner: list[Statement] = []
        bind = self.binder(inner)
        weight = nodes.Load(weights, (span(0, COUNT), span(first_out, self.out_channels), span(0, self.group_in)), 0)
        product = bind("product", Gemm(weight, inputs))
        z = [nodes.Part(product, (at(k), span(0, self.out_channels), span(0, across))) for k in range(COUNT)]
        side_by_side = bind("pixels", nodes.Stack(tuple(outputs_from(bind, z, many)), 2))
        whole = bind("image", nodes.Reshape(side_by_side, ints(self.out_channels, many * across)))
        inner += self.finish(whole, (at(n), span(first_out, self.out_channels), span(mul(w, many), many * across)))
        body.append(loop("range", o, 0, self.group_out, self.out_channels, inner))
        body = [loop("parallel", w, 0, self.groups_all, across, body)]
        if p.groups > 1:
            body = [loop("parallel", g, 0, p.groups, 1, body)]
        return [loop("parallel", n, 0, self.batch, 1, body)]
