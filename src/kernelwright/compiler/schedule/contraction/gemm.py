"""Matrix products: several schedules for one problem, best first.

  tiled     parallel over output tiles, a loop over blocks of k inside: the general case
  exchanged the same for B^T A^T, transposed at the end: where both lie along k, only the operand on the right must be rearranged
  streamed  few rows (or columns): the large operand is read once, in the order it lies in memory
  dots      few rows against an operand that is contiguous along k: one dot product for each output
  split     a small output with a long k: blocks of k in parallel into partial sums, which a second kernel adds
  strassen  seven products of halves instead of eight (strassen.py)

In: a GemmProblem, loaders of the operands, the epilogue. Out: ScheduleCandidates (kernels with the temps they need).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from kernelwright.compiler.graph.problems import GemmProblem
from kernelwright.compiler.graph.symbolic import Size
from kernelwright.compiler.schedule.candidate import Epilogue, Prologue, ScheduleCandidate
from kernelwright.compiler.schedule.contraction import block_tiles, gemm_tiles
from kernelwright.compiler.schedule.contraction.blocks import (
    accumulator,
    add,
    at,
    block,
    ceil_div,
    index,
    ints,
    loop,
    mul,
    op,
    smaller,
    span,
)
from kernelwright.compiler.schedule.contraction.columns import Columns
from kernelwright.compiler.schedule.contraction.strassen import lower_strassen
from kernelwright.sketch import nodes
from kernelwright.sketch.names import Names
from kernelwright.sketch.nodes import Assign, Binary, Cast, DType, Gemm, Kernel, Reduce, Statement, Tensor, Tile, Var
from kernelwright.target import Capabilities

FEW = 4
"""Up to this many rows a product is bound by reading its large operand once."""
TURN = 0.15e-9
"""Seconds in which a thread turns one float of the output: a guess, a little more than packing one takes."""


def lower_gemm(
    problem: GemmProblem, load_a: Prologue, load_b: Prologue, finish: Epilogue, names: Names, machine: Capabilities
) -> list[ScheduleCandidate]:
    """All schedules that suit the problem, the one that should be fastest first."""

    family = _Gemm(problem, load_a, load_b, finish, names, machine)
    if 0 in (problem.m, problem.n, *problem.batch):
        return [ScheduleCandidate((Kernel(names.fresh("gemm"), ()),))]
    pieces = sorted(family.pieces(), key=lambda p: p.cost)
    least = pieces[0].cost
    strassen = lower_strassen(problem, load_a, load_b, finish, names, machine)
    rough = [] if strassen is None else [replace(strassen, cost=max(strassen.cost, least))]
    return pieces + family.other_tiles(at_least=least) + family.with_a_copy(at_least=least) + rough


def _transposed(tile: Tile) -> Tile:
    """A tile seen from the other side."""
    return tile.x if isinstance(tile, nodes.Permute) and tile.order == (1, 0) else nodes.Permute(tile, (1, 0))


class _Gemm:
    """One problem with its hooks; each method is one schedule, chosen by the extents in `p` (where they vary: the example's); loops run to
    those in `exact`. Where rows, columns or terms vary (`varies`), only the general case suits all sizes."""

    def __init__(
        self, problem: GemmProblem, load_a: Prologue, load_b: Prologue, finish: Epilogue, names: Names, machine: Capabilities
    ) -> None:
        self.exact, self.p, self.load_a, self.load_b = problem, problem.likely(), load_a, load_b
        self.varies = any(isinstance(extent, Size) for extent in (problem.m, problem.n, problem.k))
        self.finish, self.names, self.machine = finish, names, machine

    @property
    def panelled(self) -> bool:
        """Whether B is brought to panels once: parameters, for a core that reads them as vectors, if there is memory for a copy."""
        return self.p.b_constant and self.p.k > 0 and self.machine.vectors and self.p.keeps_b

    @property
    def exchangeable(self) -> bool:
        """Whether a core with vectors may as well compute the transposed product: rows of both operands are sums' terms side by side."""
        p = self.p
        plain = p.a_shape == p.b_shape == p.out_shape == "full" and p.a_inner == p.b_inner == "k"
        return plain and p.k > 0 and self.machine.vectors and not self.panelled

    def pieces(self) -> list[ScheduleCandidate]:
        p = self.p
        found: list[ScheduleCandidate] = []
        m_varies, n_varies, k_varies = (isinstance(extent, Size) for extent in (self.exact.m, self.exact.n, self.exact.k))
        full = p.a_shape == p.b_shape == p.out_shape == "full" and p.k > 0
        plain, thin = (
            full and not self.varies,
            full and not k_varies,
        )  # few rows may meet any number of columns, and the reverse
        if thin and p.m <= FEW and not m_varies:
            found.append(self.dots() if p.b_inner == "k" and not self.turns_b else self.streamed_rows())
        elif thin and p.n <= FEW and not n_varies and p.a_inner == "k":
            found.append(self.columns())
        elif thin and p.n == 1 and not n_varies:
            found.append(self.streamed_columns())
        if not self.machine.vectors:
            if p.k and not self.varies and min(p.m, p.n) > FEW and (best := block_tiles.choose(p, self.machine)).parts > 1:
                found.append(self.split(best))
        elif plain and p.k >= 2048 and self._tiles(block(p.m, 256), block(p.n, 256)) < 2 * self.machine.units:
            found.append(self.split())
        tiled = self.tiled()
        if self.exchangeable and min(p.m, p.n) > FEW:
            exchanged = self.exchanged()
            found.append(replace(exchanged, notes=(f"{exchanged.notes[0]}; A is packed, B read as it lies",)))
            tiled = replace(tiled, notes=(f"{tiled.notes[0]}; B is packed, A read as it lies",))
        return [*found, tiled]

    def with_a_copy(self, at_least: float) -> list[ScheduleCandidate]:
        """The schedules that keep B rearranged although that is more memory than there should be, for a search that measures."""
        p = self.p
        if p.keeps_b or not p.b_constant or not self.machine.vectors or p.k == 0 or self.varies:
            return []
        family = _Gemm(replace(self.exact, keeps_b=True), self.load_a, self.load_b, self.finish, self.names, self.machine)
        best = min(family.pieces(), key=lambda piece: piece.cost)
        copies = [tensor for kernel in best.kernels if kernel.once for tensor in best.tensors]
        note = f"product {p.m} x {p.k} x {p.n}: keeps a packed copy of its parameters, {p.k * p.n * p.dtype.size / 1e6:.1f} MB"
        return [replace(best, cost=max(best.cost, at_least), notes=(note,), spends="memory")] if copies else []

    def other_tiles(self, at_least: float) -> list[ScheduleCandidate]:
        """The tiled schedule with finer tiles and with shorter blocks of k, for a search that measures: what the caches of a
        machine prefer is only guessed here, so these never count as better than the guess (`at_least`)."""
        p = self.p
        if min(p.m, p.n) <= FEW or p.k == 0 or self.varies:
            return []
        tall, wide, deep = self._blocks()
        finer = (smaller(p.m, tall, 24, 6), self.whole_panels(smaller(p.n, wide, 32, 16)), deep)
        shorter = (tall, wide, smaller(p.k, deep, 64, 8))
        found = []
        for blocks, what in ((finer, "finer tiles"), (shorter, "shorter sums")):
            if blocks != (tall, wide, deep):
                piece = self.tiled(blocks)
                note = f"product {p.m} x {p.k} x {p.n}: {what}, {blocks[0]} x {blocks[2]} x {blocks[1]}"
                found.append(replace(piece, cost=max(piece.cost, at_least), notes=(note,)))
        return found

    # ------------------------------------------------------------ shared parts

    def cost(self, efficiency: float) -> float:
        """Seconds by the roofline of the machine, with a guess at how near this schedule comes."""
        p, size = self.p, self.p.dtype.size
        traffic = math.prod(p.batch) * (p.m * p.k + p.k * p.n + p.m * p.n) * size
        peak = self.machine.peak * (4 / size)
        return max(p.flops / (peak * efficiency), traffic / self.machine.bandwidth)

    def batched(self, body: Sequence[Statement], batch: Sequence[str]) -> list[Statement]:
        """The body under one parallel loop for each batch axis."""
        statements = list(body)
        for var, extent in zip(reversed(batch), reversed(self.exact.batch), strict=True):
            statements = [loop("parallel", var, 0, extent, 1, statements)]
        return statements

    def batch_axes(self) -> tuple[list[str], tuple[nodes.Axis, ...]]:
        variables = [self.names.fresh("b") for _ in self.p.batch]
        return variables, tuple(at(v) for v in variables)

    def bound(self, value: Tile, stem: str) -> tuple[Assign, Var]:
        name = self.names.fresh(stem)
        return Assign(name, value), Var(name)

    def _blocks(self) -> tuple[int, int, int]:
        """Tile extents: a strip of B (k x 16) in the first cache, the tiles of A and of the output in the second."""
        p = self.p
        if not self.machine.vectors and p.k:
            return block_tiles.choose(p, self.machine, parts=False).blocks
        size = p.dtype.size
        side = 256 if self.machine.tile_bytes // size >= 100_000 else 128
        if p.a_shape != "full" or p.b_shape != "full" or p.out_shape != "full":
            side = min(side, 128)  # finer tiles leave out more of the empty triangle
        elif self.machine.vectors and p.k > 0:
            return self._even_blocks(side)
        ideal = (side, side // 2, 384 if p.a_shape == p.b_shape == "full" else side)  # short sums end near the empty triangle
        if p.a_inner == "m":
            ideal = (side, side, 256)
        elif not self.panelled and p.m >= 8 * side and min(p.n, p.k) >= 4 * side:
            ideal = (2 * side, side, 256)
        deep = self._deep(ideal[2])
        wide = self.whole_panels(block(p.n, ideal[1], 16))
        tall = block(p.m, ideal[0], 6)
        wanted = 2 * self.machine.units
        while self._tiles(tall, wide) < wanted:
            lower, narrower = smaller(p.m, tall, 32, 6), self.whole_panels(smaller(p.n, wide, 32, 16))
            if lower < tall and (tall >= wide or narrower == wide):
                tall = lower
            elif narrower < wide:
                wide = narrower
            else:
                break
        return tall, wide, deep

    def _even_blocks(self, side: int) -> tuple[int, int, int]:
        """Tiles that keep all threads of a CPU busy to the end. Measured: panels made beforehand like long sums; a B that every task
        packs anew likes tall tiles, a copied A wide ones."""
        p = self.p
        most, deep, copies = (2 * side, side // 2), 2 * side, gemm_tiles.Copies(6, 20)
        if self.panelled:
            most, deep, copies = (side, side), 4 * side, gemm_tiles.Copies(6, 0)
        elif p.a_inner == "m":
            most, deep, copies = (side, side), side, gemm_tiles.Copies(16, 20)
        elif p.b_inner == "k":  # packed strip by strip, the first of a tile before anything else
            most, copies = (2 * side, side), gemm_tiles.Copies(6, 12)
        elif p.m >= 8 * side and min(p.n, p.k) >= 4 * side:
            most = (2 * side, side)  # a large A comes from memory for every column of tiles
        tall, wide = gemm_tiles.choose(self.exact.m, self.exact.n, math.prod(p.batch), self.machine.units, most, copies)
        return tall, self.whole_panels(wide), self._deep(deep)

    def _deep(self, ideal: int) -> int:
        """How much of k is summed at a time."""
        if isinstance(self.exact.k, Size):
            return ideal
        return self.p.k if self.p.k <= ideal * 9 // 8 else block(self.p.k, ideal * 15 // 16, 8)

    def whole_panels(self, wide: int) -> int:
        """The width of a tile, rounded up where B is kept in panels."""
        panel = 64 // self.p.dtype.size
        return ceil_div(wide, panel) * panel if self.panelled else wide

    def _tiles(self, tall: int, wide: int) -> int:
        return math.prod(self.p.batch) * ceil_div(self.p.m, tall) * ceil_div(self.p.n, wide)

    # ------------------------------------------------------------ tiled

    def tiled(self, blocks: tuple[int, int, int] | None = None) -> ScheduleCandidate:
        """Parallel over tiles of the output; each sums over blocks of k in an accumulator tile."""
        p = self.p
        tall, wide, deep = blocks or self._blocks()
        batch, where = self.batch_axes()
        i, k = (self.names.fresh(stem) for stem in ("i", "k"))
        start, acc = self.bound(accumulator(p.dtype, tall, wide), "acc")
        a, a_name = self.bound(self.load_a((*where, span(i, tall), span(k, deep))), "a_tile")
        columns = self.panels(where, wide) if self.panelled else self.plain_columns(where, wide)
        b, b_name = self.bound(columns.load(k, deep), "b_tile")
        body: list[Statement] = [start]
        if p.k:
            step = [a, b, Assign(acc.name, Gemm(a_name, b_name, acc))]
            begin, end = self.k_range(i, columns.first, tall, wide, deep)
            body.append(loop("range", k, begin, end, deep, step))
        body += self.finish(acc, (*where, span(i, tall), span(columns.first, wide)))
        nest = loop("parallel", i, 0, self.exact.m, tall, [loop("parallel", columns.var, 0, columns.stop, columns.step, body)])
        kernel = Kernel(self.names.fresh("gemm"), tuple(self.batched([nest], batch)))
        if not self.machine.vectors and p.k:
            chosen = block_tiles.choose(p, self.machine, parts=False)
            cost = max(chosen.seconds, self.cost(1.0))
            return ScheduleCandidate((*columns.kernels, kernel), columns.tensors, (), cost, (chosen.reason,))
        used = tall * wide * self._tiles(tall, wide) / (math.prod(p.batch) * p.m * p.n)
        busy = min(1.0, self._tiles(tall, wide) / self.machine.units)
        note = (
            f"product {p.m} x {p.k} x {p.n}: tiles of {tall} x {wide}, {deep} terms at a time, for {self.machine.units} cores with "
            f"{self.machine.tile_bytes >> 10} KiB each for tiles"
        )
        cost = self.cost(self.efficiency(tall, wide) * busy / used)
        return ScheduleCandidate((*columns.kernels, kernel), columns.tensors, (), cost, (note,))

    def plain_columns(self, where: tuple[nodes.Axis, ...], wide: int) -> Columns:
        """B as it lies in memory; a task packs what it needs of it."""
        j = self.names.fresh("j")

        def load(k: str, deep: int) -> Tile:
            return self.load_b((*where, span(k, deep), span(j, wide)))

        return Columns(j, self.exact.n, wide, index(j), load)

    def panels(self, where: tuple[nodes.Axis, ...], wide: int) -> Columns:
        """A constant B is brought once to panels as wide as a cache line, [n / panel, k, panel], which products read from front to
        back. Columns are then counted in panels."""
        p, fresh = self.p, self.names.fresh
        panel = 64 // p.dtype.size
        count = ceil_div(p.n, panel)
        name = fresh("b_panels")
        batch, outer = self.batch_axes()
        j, k = fresh("j"), fresh("k")
        deep = block(p.k, 64)
        tile = self.wide(self.load_b((*outer, span(k, deep), span(mul(j, panel), panel))))
        store = nodes.Store(name, (*outer, at(j), span(k, deep), span(0, panel)), tile)
        nest = loop("parallel", j, 0, count, 1, [loop("range", k, 0, p.k, deep, [store])])
        pack = Kernel(fresh("pack_b"), tuple(self.batched([nest], batch)), once=True)
        tensor = Tensor(name, ints(*self.exact.batch, count, p.k, panel), p.dtype, "temp")
        var = fresh("j")

        def load(k: str, deep: int) -> Tile:
            region = (*where, span(var, wide // panel), span(k, deep), span(0, panel))
            return nodes.Reshape(nodes.Permute(nodes.Load(name, region, 0), (1, 0, 2)), ints(deep, wide))

        return Columns(var, count, wide // panel, mul(var, panel), load, (pack,), (tensor,))

    def exchanged(self) -> ScheduleCandidate:
        """B's rows as they lie against A's, which are packed: pays where A is the smaller one."""
        p = self.p
        piece = self._exchange().tiled()
        turning = TURN * math.prod(p.batch) * p.m * p.n * p.dtype.size / 4 / self.machine.units
        return replace(piece, cost=piece.cost + turning)

    def _exchange(self) -> _Gemm:
        """The same product with its operands exchanged and the output transposed back."""
        p = self.exact
        transposed = replace(
            p, m=p.n, n=p.m, a_inner="k" if p.b_inner == "k" else "m", b_inner="k" if p.a_inner == "k" else "n",
            a_constant=p.b_constant, b_constant=p.a_constant,
        )  # fmt: skip

        def load_a(axes: tuple[nodes.Axis, ...], pad: float | int = 0) -> Tile:
            *where, m, k = axes
            return _transposed(self.load_b((*where, k, m), pad))

        def load_b(axes: tuple[nodes.Axis, ...], pad: float | int = 0) -> Tile:
            *where, k, m = axes
            return _transposed(self.load_a((*where, m, k), pad))

        def finish(tile: Tile, axes: tuple[nodes.Axis, ...]) -> list[Statement]:
            *where, n, m = axes
            back, name = self.bound(_transposed(tile), "sums")
            return [back, *self.finish(name, (*where, m, n))]

        return _Gemm(transposed, load_a, load_b, finish, self.names, self.machine)

    @staticmethod
    def efficiency(tall: int, wide: int) -> float:
        """The part of peak that a tile of this size reaches: each element of B is packed once for 2 * tall operations, each of A
        read anew for 2 * wide (measured: about 12 and 6 multiplications' worth of time), and whole vectors are computed."""
        lanes = ceil_div(wide, 8) * 8 / wide
        return 0.85 / ((1 + 12 / tall + 6 / wide) * lanes)

    def k_range(self, i: str, j: nodes.Index, tall: int, wide: int, deep: int) -> tuple[nodes.Index, nodes.Index]:
        """Blocks of k that can contribute to tile (i, j), given which triangles are zero."""
        p = self.p
        begin: nodes.Index = index(0)
        end: nodes.Index = index(self.exact.k)
        if p.a_shape == "lower":
            end = op("min", end, add(i, tall))
        if p.b_shape == "upper":
            end = op("min", end, add(j, wide))
        if p.a_shape == "upper":
            begin = op("max", begin, i)
        if p.b_shape == "lower":
            begin = op("max", begin, j)
        if p.out_shape == "lower":  # nothing to do where the whole tile lies above the diagonal
            end = mul(end, op("max", 0, op("min", 1, op("-", add(i, tall), j))))
        elif p.out_shape == "upper":
            end = mul(end, op("max", 0, op("min", 1, op("-", add(j, wide), i))))
        if begin != index(0):  # loads of A and B must meet the same blocks whatever the start is
            begin = mul(op("//", begin, deep), deep)
        return begin, end

    @property
    def turns_b(self) -> bool:
        """Whether a constant B that lies along k is transposed once."""
        return self.p.b_constant and self.p.b_inner == "k" and (self.p.keeps_b or not self.machine.vectors)

    def arranged(self) -> tuple[tuple[Kernel, ...], tuple[Tensor, ...], Prologue]:
        """A constant B that lies along k is transposed once, so that the products read it along n."""
        p = self.p
        if not self.turns_b or p.k == 0:
            return (), (), self.load_b
        name = self.names.fresh("b_transposed")
        batch, where = self.batch_axes()
        k, j = self.names.fresh("k"), self.names.fresh("j")
        deep, wide = block(p.k, 64), block(p.n, 64)
        region = (*where, span(k, deep), span(j, wide))
        body: list[Statement] = [nodes.Store(name, region, self.load_b(region))]
        nest = loop("parallel", k, 0, p.k, deep, [loop("range", j, 0, p.n, wide, body)])
        kernel = Kernel(self.names.fresh("turn_b"), tuple(self.batched([nest], batch)), once=True)
        shape = ints(*self.exact.batch, p.k, p.n)

        def load(axes: tuple[nodes.Axis, ...], pad: float | int = 0) -> Tile:
            return nodes.Load(name, axes, pad)

        return (kernel,), (Tensor(name, shape, p.dtype, "temp"),), load

    # ------------------------------------------------------------ few rows or columns

    def streamed_rows(self) -> ScheduleCandidate:
        """m is small and B lies along n: each task reads a strip of B's rows once, from top to bottom."""
        p = self.p
        first, tensors, load_b = self.arranged()
        tasks = ceil_div(2 * self.machine.units, math.prod(p.batch))
        wide = block(p.n, max(64, min(1024, ceil_div(p.n, tasks))), 16)
        deep = block(p.k, 16)
        batch, where = self.batch_axes()
        j, k = self.names.fresh("j"), self.names.fresh("k")
        start, acc = self.bound(accumulator(p.dtype, p.m, wide), "acc")
        a, a_name = self.bound(self.load_a((*where, span(0, p.m), span(k, deep))), "a_tile")
        b, b_name = self.bound(load_b((*where, span(k, deep), span(j, wide))), "b_tile")
        inner = loop("range", k, 0, p.k, deep, [a, b, Assign(acc.name, Gemm(a_name, b_name, acc))])
        body = [start, inner, *self.finish(acc, (*where, span(0, p.m), span(j, wide)))]
        nest = loop("parallel", j, 0, self.exact.n, wide, body)
        return ScheduleCandidate(
            (*first, Kernel(self.names.fresh("gemv"), tuple(self.batched([nest], batch)))), tensors, (), self.cost(0.4)
        )

    def dots(self) -> ScheduleCandidate:
        """m is small and B lies along k: every output is a dot product over contiguous memory."""
        p = self.p
        wide = block(p.n, max(4, min(32, 32768 // max(p.k, 1))), 4)
        batch, where = self.batch_axes()
        i, j = self.names.fresh("i"), self.names.fresh("j")
        a, a_name = self.bound(self.wide(self.load_a((*where, at(i), span(0, p.k)))), "a_row")
        transposed = nodes.Permute(self.wide(self.load_b((*where, span(0, p.k), span(j, wide)))), (1, 0))
        total, total_name = self.bound(Reduce("sum", Binary("mul", transposed, nodes.Unsqueeze(a_name, 0)), (1,)), "total")
        out, out_name = self.bound(nodes.Squeeze(total_name, 1), "dot")
        body = [a, total, out, *self.finish(out_name, (*where, at(i), span(j, wide)))]
        nest = loop("parallel", j, 0, self.exact.n, wide, [loop("range", i, 0, p.m, 1, body)])
        return ScheduleCandidate(
            (Kernel(self.names.fresh("dots"), tuple(self.batched([nest], batch))),), (), (), self.cost(0.3)
        )

    def columns(self) -> ScheduleCandidate:
        """n is small and A lies along k: dot products of A's rows with each column."""
        p = self.p
        tall = block(p.m, max(4, min(32, 32768 // max(p.k, 1))), 4)
        batch, where = self.batch_axes()
        i, j = self.names.fresh("i"), self.names.fresh("j")
        b, b_name = self.bound(self.wide(self.load_b((*where, span(0, p.k), at(j)))), "b_column")
        rows = self.wide(self.load_a((*where, span(i, tall), span(0, p.k))))
        total, total_name = self.bound(Reduce("sum", Binary("mul", rows, nodes.Unsqueeze(b_name, 0)), (1,)), "total")
        out, out_name = self.bound(nodes.Squeeze(total_name, 1), "dot")
        body = [b, total, out, *self.finish(out_name, (*where, span(i, tall), at(j)))]
        nest = loop("parallel", i, 0, self.exact.m, tall, [loop("range", j, 0, p.n, 1, body)])
        return ScheduleCandidate(
            (Kernel(self.names.fresh("dots"), tuple(self.batched([nest], batch))),), (), (), self.cost(0.3)
        )

    def streamed_columns(self) -> ScheduleCandidate:
        """n is 1 and A lies along m: the same as streamed rows, with the operands exchanged."""
        return self._exchange().streamed_rows()

    def wide(self, tile: Tile) -> Tile:
        """Operands of a dot product in the accumulator's dtype (Gemm converts by itself, a multiplication does not)."""
        return tile if self.p.dtype in (DType.f32, DType.f64) else Cast(tile, self.p.dtype)

    # ------------------------------------------------------------ split k

    def split(self, chosen: block_tiles.BlockTile | None = None) -> ScheduleCandidate:
        """k in parts, each in parallel into its own partial output; a second kernel adds the parts and finishes."""
        p = self.p
        tall, wide = block(p.m, 256, 6), self.whole_panels(block(p.n, 256, 16))
        deep = block(p.k, 256, 8)
        parts = min(ceil_div(p.k, deep), max(2, ceil_div(4 * self.machine.units, self._tiles(tall, wide))))
        if chosen is not None:
            tall, wide, deep, parts = *chosen.blocks, chosen.parts
        length = ceil_div(ceil_div(p.k, parts), deep) * deep
        parts = ceil_div(p.k, length)
        partial = self.names.fresh("partial")
        batch, where = self.batch_axes()
        s, i, k = (self.names.fresh(stem) for stem in ("s", "i", "k"))
        start, acc = self.bound(accumulator(p.dtype, tall, wide), "acc")
        a, a_name = self.bound(self.load_a((*where, span(i, tall), span(k, deep))), "a_tile")
        columns = self.panels(where, wide) if self.panelled else self.plain_columns(where, wide)
        b, b_name = self.bound(columns.load(k, deep), "b_tile")
        begin = mul(s, length)
        inner = loop(
            "range", k, begin, op("min", add(begin, length), p.k), deep, [a, b, Assign(acc.name, Gemm(a_name, b_name, acc))]
        )
        store = nodes.Store(partial, (*where, at(s), span(i, tall), span(columns.first, wide)), acc)
        across = loop("parallel", columns.var, 0, columns.stop, columns.step, [start, inner, store])
        gemm_tiles = loop("parallel", i, 0, p.m, tall, [across])
        products = Kernel(
            self.names.fresh("gemm_parts"), tuple(self.batched([loop("parallel", s, 0, parts, 1, [gemm_tiles])], batch))
        )
        sums = self._add_parts(partial, parts)
        shape = ints(*self.exact.batch, parts, p.m, p.n)
        bytes_more = 2.0 * math.prod(p.batch) * parts * p.m * p.n * p.dtype.size
        # on top of the products, not beside them; measured on Zen 4 (128 x 6144 x 320, 256 x 4096 x 256): other threads' fresh parts
        # come at a third of the memory's speed
        cost = self.cost(self.efficiency(tall, wide)) + 3 * bytes_more / self.machine.bandwidth
        tensors = (*columns.tensors, Tensor(partial, shape, p.dtype, "temp"))
        note = f"product {p.m} x {p.k} x {p.n}: {parts} parts of the sum, so that {self.machine.units} cores have work"
        if chosen is not None:
            cost, note = max(chosen.seconds, self.cost(1.0)), chosen.reason
        return ScheduleCandidate((*columns.kernels, products, sums), tensors, (), cost, (note,))

    def _add_parts(self, partial: str, parts: int) -> Kernel:
        p = self.p
        batch, where = self.batch_axes()
        i = self.names.fresh("i")
        tall = block(p.m, max(1, (4096 if self.machine.vectors else 1024) // p.n))
        region = (*where, span(0, parts), span(i, tall), span(0, p.n))
        total, total_name = self.bound(Reduce("sum", nodes.Load(partial, region, 0), (0,)), "total")
        out, out_name = self.bound(nodes.Squeeze(total_name, 0), "out_tile")
        body = [total, out, *self.finish(out_name, (*where, span(i, tall), span(0, p.n)))]
        nest = loop("parallel", i, 0, p.m, tall, body)
        return Kernel(self.names.fresh("add_parts"), tuple(self.batched([nest], batch)))
