"""Products with seven multiplications of halves instead of eight: Strassen's, in Winograd's form with fifteen additions.

A and B are cut into quarters. Sums of A's quarters are made where they are needed, tile by tile; those of B, which is a parameter, once
and in panels, together with the quarters that are multiplied as they are: 7/4 of B's memory. A task multiplies the same tile of all
seven products, so that the four quarters of its output are put together while the products lie in the cache, and each is finished like
any other tile. One level only: 256 x 1024 x 768 takes 1.76 ms where eight products take 1.88 (Zen 4, two threads); two were not tried.

Errors are about twice those of the plain product (1.8 to 2.1 times at three sizes). Such a piece is therefore never the first choice
(`spends`).

In: a GemmProblem, loaders, the epilogue. Out: a ScheduleCandidate, or None where halves do not come out even.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.compiler.graph.problems import GemmProblem
from kernelwright.compiler.schedule.candidate import Epilogue, Prologue, ScheduleCandidate
from kernelwright.compiler.schedule.contraction.blocks import accumulator, add, at, block, ceil_div, ints, loop, mul, span
from kernelwright.compiler.schedule.contraction.winograd_points import minus, plus
from kernelwright.sketch import nodes
from kernelwright.sketch.names import Names
from kernelwright.sketch.nodes import Assign, DType, Gemm, Kernel, Statement, Tensor, Tile, Var
from kernelwright.target import Capabilities

PRODUCTS = 7
PANEL = 16
"""Floats of a cache line, the width in which products read B."""
LEAST = 96
"""Extents of a half below which the additions should cost what a product saves: a guess."""
LARGEST = 1.25
"""Bytes that the seven products of one task may take: most of a second-level cache."""


def lower_strassen(
    p: GemmProblem, load_a: Prologue, load_b: Prologue, finish: Epilogue, names: Names, machine: Capabilities
) -> ScheduleCandidate | None:
    """The schedule, where B is constant and everything can be halved."""
    fixed = all(isinstance(extent, int) for extent in (p.m, p.n, p.k))
    plain = fixed and p.a_shape == p.b_shape == p.out_shape == "full" and not p.batch and p.dtype is DType.f32
    if not plain or not p.b_constant or not machine.vectors or any(extent % 2 for extent in (p.m, p.k)) or p.n % (2 * PANEL):
        return None
    family = _Strassen(p, load_a, load_b, finish, names, machine)
    return family.piece() if min(family.m, family.n, family.k) >= LEAST and family.tile() is not None else None


@dataclass(frozen=True)
class _Strassen:
    """One problem with its hooks; m, n and k are extents of a quarter."""

    p: GemmProblem
    load_a: Prologue
    load_b: Prologue
    finish: Epilogue
    names: Names
    machine: Capabilities

    @property
    def m(self) -> int:
        return self.p.m // 2

    @property
    def n(self) -> int:
        return self.p.n // 2

    @property
    def k(self) -> int:
        return self.p.k // 2

    def tile(self) -> tuple[int, int] | None:
        """Rows and columns of one task, which divide a quarter: tiles that keep all threads busy, and of these the largest."""
        rows = [t for t in range(24, self.m + 1) if self.m % t == 0]
        columns = [w for w in range(4 * PANEL, self.n + 1, PANEL) if self.n % w == 0]
        tiles = [(t, w) for t in rows for w in columns if 4 * PRODUCTS * t * w <= LARGEST * self.machine.tile_bytes]

        def cost(tile: tuple[int, int]) -> tuple[int, int]:
            rounds = ceil_div(self.m // tile[0] * (self.n // tile[1]), self.machine.units)
            return rounds * tile[0] * tile[1], -tile[0] * tile[1]

        return min(tiles, key=cost, default=None)

    def piece(self) -> ScheduleCandidate:
        panels = self.names.fresh("b_sums")
        kernels = (self.sums_of_b(panels), Kernel(self.names.fresh("strassen"), (self.tasks(panels),)))
        tensor = Tensor(panels, ints(PRODUCTS, self.n // PANEL, self.k, PANEL), self.p.dtype, "temp")
        cost = PRODUCTS / 8 * self.p.flops / (0.8 * self.machine.peak)
        note = f"product {self.p.m} x {self.p.k} x {self.p.n}: seven products of halves instead of eight (Strassen)"
        return ScheduleCandidate(kernels, (tensor,), (), cost, (note,), spends="rounding")

    def bound(self, body: list[Statement], stem: str, tile: Tile) -> Var:
        name = self.names.fresh(stem)
        body.append(Assign(name, tile))
        return Var(name)

    def sums_of_b(self, into: str) -> Kernel:
        """The right side of each product, [product, panel, k, column]."""
        j, k = self.names.fresh("j"), self.names.fresh("k")
        deep = block(self.k, 64)
        body: list[Statement] = []

        def quarter(down: int, across: int) -> Var:
            rows, columns = span(add(k, down * self.k), deep), span(add(mul(j, PANEL), across * self.n), PANEL)
            return self.bound(body, "quarter", self.load_b((rows, columns)))

        b11, b12, b21, b22 = quarter(0, 0), quarter(0, 1), quarter(1, 0), quarter(1, 1)
        t1 = self.bound(body, "t", minus(b12, b11))
        t2 = self.bound(body, "t", minus(b22, t1))
        for product, tile in enumerate((b11, b21, b22, minus(t2, b21), t1, t2, minus(b22, b12))):
            body.append(nodes.Store(into, (at(product), at(j), span(k, deep), span(0, PANEL)), tile))
        nest = loop("parallel", j, 0, self.n // PANEL, 1, [loop("range", k, 0, self.k, deep, body)])
        return Kernel(self.names.fresh("add_b"), (nest,), once=True)

    def tasks(self, panels: str) -> nodes.For:
        """Parallel loops over tiles of a quarter."""
        chosen = self.tile()
        assert chosen is not None
        tall, wide = chosen
        i, j, k = (self.names.fresh(stem) for stem in "ijk")
        deep = block(self.k, 512, 8)
        body: list[Statement] = []
        sums = [self.bound(body, "product", accumulator(self.p.dtype, tall, wide)) for _ in range(PRODUCTS)]
        step: list[Statement] = []

        def quarter(down: int, across: int) -> Var:
            rows, columns = span(add(i, down * self.m), tall), span(add(k, across * self.k), deep)
            return self.bound(step, "quarter", self.load_a((rows, columns)))

        a11, a12, a21, a22 = quarter(0, 0), quarter(0, 1), quarter(1, 0), quarter(1, 1)
        s1 = self.bound(step, "s", plus(a21, a22))
        s2 = self.bound(step, "s", minus(s1, a11))
        s3 = self.bound(step, "s", minus(a11, a21))
        s4 = self.bound(step, "s", minus(a12, s2))
        for product, left in enumerate((a11, a12, s4, a22, s1, s2, s3)):
            region = (at(product), span(j, wide // PANEL), span(k, deep), span(0, PANEL))
            right = nodes.Reshape(nodes.Permute(nodes.Load(panels, region, 0), (1, 0, 2)), ints(deep, wide))
            name = self.bound(step, "b_tile", right)
            step.append(Assign(sums[product].name, Gemm(left, name, sums[product])))
        body.append(loop("range", k, 0, self.k, deep, step))
        m1, m2, m3, m4, m5, m6, m7 = sums
        u2 = self.bound(body, "u", plus(m1, m6))
        u3 = self.bound(body, "u", plus(u2, m7))
        quarters = [(plus(m1, m2), plus(plus(u2, m5), m3)), (minus(u3, m4), plus(u3, m5))]
        for down, row in enumerate(quarters):
            for across, tile in enumerate(row):
                whole = self.bound(body, "out_tile", tile)
                first = add(mul(j, PANEL), across * self.n)
                body += self.finish(whole, (span(add(i, down * self.m), tall), span(first, wide)))
        across_loop = loop("parallel", j, 0, self.n // PANEL, wide // PANEL, body)
        return loop("parallel", i, 0, self.m, tall, [across_loop])
