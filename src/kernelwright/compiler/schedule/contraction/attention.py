"""Scaled dot-product attention with a running softmax: scores never leave the caches.

On cores with vectors the tiles are transposed: a column is a query.
Scores are [positions, queries] = key @ query^T, the output is [value depth, queries]
= value^T @ p. So the maximum and the sum of the softmax run down the columns (every lane its own query, no sums across lanes),
keys and values are used as they lie in memory, and only the query tile is transposed, once.

  running   blocks of positions with a running maximum and sum (queries in tiles)
  rows      the same with a row for each query, for blocks of threads: matrix units take scores and weights as they are
  decode    few queries: whole rows of scores, keys and values read once

In: an AttentionProblem, loaders, the epilogue. Out: ScheduleCandidates.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from kernelwright.compiler.graph.problems import AttentionProblem
from kernelwright.compiler.graph.symbolic import Size, size_index
from kernelwright.compiler.schedule.bindings import integer_tile
from kernelwright.compiler.schedule.candidate import Epilogue, Prologue, ScheduleCandidate
from kernelwright.compiler.schedule.contraction.blocks import (
    accumulator,
    add,
    at,
    block,
    ceil_div,
    ints,
    loop,
    op,
    smaller,
    span,
)
from kernelwright.sketch import nodes
from kernelwright.sketch.names import Names
from kernelwright.sketch.nodes import (
    Assign,
    Axis,
    Binary,
    Cast,
    FromIndex,
    Full,
    Gemm,
    Index,
    Iota,
    Kernel,
    Number,
    Permute,
    Reduce,
    Squeeze,
    Statement,
    Tile,
    Unary,
    Unsqueeze,
    Var,
    Where,
)
from kernelwright.target import Capabilities

FEW = 4
"""Up to this many queries the lanes of a vector would stay empty: then each query takes its own row of scores."""
INFINITY = math.inf


def lower_attention(
    problem: AttentionProblem,
    load_q: Prologue,
    load_k: Prologue,
    load_v: Prologue,
    load_mask: Prologue | None,
    finish: Epilogue,
    names: Names,
    machine: Capabilities,
) -> list[ScheduleCandidate]:
    """The schedule that suits the number of queries; `load_mask` must be given if the problem is masked."""
    if problem.masked and load_mask is None:
        raise ValueError("a masked attention needs the loader of its mask")
    if 0 in problem.shape:
        return [ScheduleCandidate((Kernel(names.fresh("attention"), ()),))]
    family = _Attention(problem, load_q, load_k, load_v, load_mask, finish, names, machine)
    few = isinstance(problem.queries, int) and problem.queries <= FEW
    return [family.best(few)]


class _Attention:
    """One problem with its hooks; `add` style statements are collected in order by `let`. `p` has the extents by which tiles are chosen
    (where they vary: the example's), `exact` those that loops run to."""

    def __init__(
        self,
        problem: AttentionProblem,
        load_q: Prologue,
        load_k: Prologue,
        load_v: Prologue,
        load_mask: Prologue | None,
        finish: Epilogue,
        names: Names,
        machine: Capabilities,
    ) -> None:
        self.exact, self.p = problem, problem.likely()
        self.names, self.machine, self.finish = names, machine, finish
        self.load_q, self.load_k, self.load_v, self.load_mask = load_q, load_k, load_v, load_mask
        self.batch = [names.fresh("b") for _ in problem.batch]
        self.head = names.fresh("h")
        self.where: tuple[Axis, ...] = tuple(at(b) for b in self.batch)
        self.kv: Axis = at(op("//", self.head, problem.heads // problem.kv_heads))

    def let(self, body: list[Statement], stem: str) -> Callable[[Tile], Var]:
        """Binds a tile to a fresh name in `body`."""

        def bind(tile: Tile) -> Var:
            name = self.names.fresh(stem)
            body.append(Assign(name, tile))
            return Var(name)

        return bind

    def around(self, body: list[Statement]) -> list[Statement]:
        statements: list[Statement] = [loop("parallel", self.head, 0, self.p.heads, 1, body)]
        for var, extent in zip(reversed(self.batch), reversed(self.exact.batch), strict=True):
            statements = [loop("parallel", var, 0, extent, 1, statements)]
        return statements

    def cost(self, efficiency: float) -> float:
        p = self.p
        traffic = 4.0 * math.prod(p.batch) * p.kv_heads * p.positions * (p.depth + p.value_depth)
        return max(p.flops / (self.machine.peak * efficiency), traffic / self.machine.bandwidth)

    def _staged(self, wide: int, tall: int) -> int:
        """Bytes of a tile of queries, and of the keys and values that it meets at a time."""
        p = self.p
        return p.dtype.size * (wide * p.depth + tall * (p.depth + p.value_depth))

    def best(self, few: bool) -> ScheduleCandidate:
        """The schedule that suits the number of queries and what runs them."""
        if few and (self.machine.vectors or isinstance(self.exact.positions, int)):
            return self.decode()
        return self.running() if self.machine.vectors else self.rows()

    # ------------------------------------------------------------ rows of queries

    def rows(self) -> ScheduleCandidate:
        """Tiles of queries in parallel, rows of scores: each walks over blocks of positions and rescales what it has when the maximum
        grows. Weights are rounded to what the values are, so that both are multiplied on matrix units."""
        p = self.p
        tasks = math.prod(p.batch) * p.heads
        narrow = p.operand.torch_name in self.machine.matrix_dtypes
        wide = 128 if narrow and tasks * ceil_div(p.queries, 128) >= 2 * self.machine.units and p.value_depth <= 128 else 64
        if not isinstance(self.exact.queries, Size):
            wide = block(p.queries, wide, 16)
            while tasks * ceil_div(p.queries, wide) < 2 * self.machine.units and smaller(p.queries, wide, 16, 16) < wide:
                wide = smaller(p.queries, wide, 16, 16)
        tall = 64 if isinstance(self.exact.positions, Size) else block(p.positions, 64, 16)
        while self._staged(wide, tall) > self.machine.staged_bytes:
            if (fewer := smaller(p.positions, tall, 16, 16)) == tall:
                break
            tall = fewer
        q, j = self.names.fresh("q"), self.names.fresh("j")
        body: list[Statement] = []
        query = self.let(body, "query")(self.load_q((*self.where, at(self.head), span(q, wide), span(0, p.depth))))
        top = self.let(body, "top")(Full(ints(wide, 1), -INFINITY, p.dtype))
        total = self.let(body, "total")(Full(ints(wide, 1), 0.0, p.dtype))
        acc = self.let(body, "acc")(accumulator(p.dtype, wide, p.value_depth))
        step: list[Statement] = []
        key = self.let(step, "key")(self.load_k((*self.where, self.kv, span(j, tall), span(0, p.depth))))
        product = self.let(step, "product")(Gemm(query, Permute(key, (1, 0))))
        score = self.let(step, "score")(Binary("mul", product, Number(p.factor)))
        score = self.masked(step, score, q, wide, j, tall, rows=True)
        higher = self.let(step, "higher")(Binary("maximum", top, Reduce("max", score, (1,))))
        base = higher
        if p.masked:  # a query that has met nothing but -inf yet: keep -inf - -inf out of the exponent
            base = self.let(step, "base")(Where(Binary("eq", higher, Number(-INFINITY)), Number(0.0), higher))
        fade = self.let(step, "fade")(Unary("exp", Binary("sub", top, base)))
        weight = self.let(step, "weight")(Unary("exp", Binary("sub", score, base)))
        step.append(Assign(total.name, Binary("add", Binary("mul", total, fade), Reduce("sum", weight, (1,)))))
        value = self.load_v((*self.where, self.kv, span(j, tall), span(0, p.value_depth)))
        rounded: Tile = Cast(Cast(weight, p.operand), p.dtype) if narrow else weight
        step.append(Assign(acc.name, Gemm(rounded, value, Binary("mul", acc, fade))))
        step.append(Assign(top.name, higher))
        stop: Index = op("min", self.exact.positions, add(q, wide)) if p.causal else add(self.exact.positions, 0)
        body.append(loop("range", j, 0, stop, tall, step))
        divisor: Tile = total
        if p.masked or isinstance(self.exact.positions, Size):  # nothing but -inf, or nothing at all: torch's answer is 0
            divisor = Where(Binary("eq", total, Number(0.0)), Number(1.0), total)
        out = self.let(body, "out_tile")(Binary("div", acc, divisor))
        body += self.finish(out, (*self.where, at(self.head), span(q, wide), span(0, p.value_depth)))
        nest: list[Statement] = [loop("parallel", q, 0, self.exact.queries, wide, body)]
        units = "matrix units" if narrow else "no matrix units"
        note = (
            f"attention ({p.operand}, {units}): {wide} queries meet {tall} positions at a time, {self._staged(wide, tall) >> 10} KiB of "
            f"{self.machine.staged_bytes >> 10} near a unit; {tasks * ceil_div(p.queries, wide)} tasks for {self.machine.units} units"
        )
        kernel = Kernel(self.names.fresh("attention"), tuple(self.around(nest)))
        return ScheduleCandidate((kernel,), (), (), self.cost(0.6), (note,))

    # ------------------------------------------------------------ running softmax

    def running(self) -> ScheduleCandidate:
        """Tiles of queries in parallel; each walks over blocks of positions and rescales what it has when the maximum grows."""
        p = self.p
        tasks = math.prod(p.batch) * p.heads
        wide = 64 if isinstance(self.exact.queries, Size) else block(p.queries, 64, 16)
        while tasks * ceil_div(p.queries, wide) < 2 * self.machine.units and smaller(p.queries, wide, 16, 16) < wide:
            wide = smaller(p.queries, wide, 16, 16)
        ideal = 64 if p.causal else 128
        tall = ideal // 6 * 6 if isinstance(self.exact.positions, Size) else block(p.positions, ideal, 6)
        q, j = self.names.fresh("q"), self.names.fresh("j")
        body: list[Statement] = []
        query = self.load_q((*self.where, at(self.head), span(q, wide), span(0, p.depth)))
        transposed = self.let(body, "query")(Binary("mul", Permute(query, (1, 0)), Number(p.factor)))
        top = self.let(body, "top")(Full(ints(1, wide), -INFINITY, p.dtype))
        total = self.let(body, "total")(Full(ints(1, wide), 0.0, p.dtype))
        acc = self.let(body, "acc")(accumulator(p.dtype, p.value_depth, wide))
        step: list[Statement] = []
        key = self.let(step, "key")(self.load_k((*self.where, self.kv, span(j, tall), span(0, p.depth))))
        score = self.let(step, "score")(Gemm(key, transposed))
        score = self.masked(step, score, q, wide, j, tall)
        higher = self.let(step, "higher")(Binary("maximum", top, Reduce("max", score, (0,))))
        base = higher
        if p.masked:  # a query that has met nothing but -inf yet: keep -inf - -inf out of the exponent
            base = self.let(step, "base")(Where(Binary("eq", higher, Number(-INFINITY)), Number(0.0), higher))
        fade = self.let(step, "fade")(Unary("exp", Binary("sub", top, base)))
        weight = self.let(step, "weight")(Unary("exp", Binary("sub", score, base)))
        step.append(Assign(total.name, Binary("add", Binary("mul", total, fade), Reduce("sum", weight, (0,)))))
        value = Permute(self.load_v((*self.where, self.kv, span(j, tall), span(0, p.value_depth))), (1, 0))
        step.append(Assign(acc.name, Gemm(value, weight, Binary("mul", acc, fade))))
        step.append(Assign(top.name, higher))
        stop: Index = op("min", self.exact.positions, add(q, wide)) if p.causal else add(self.exact.positions, 0)
        body.append(loop("range", j, 0, stop, tall, step))
        divisor: Tile = total
        if p.masked or isinstance(self.exact.positions, Size):  # nothing but -inf, or nothing at all: torch's answer is 0
            divisor = Where(Binary("eq", total, Number(0.0)), Number(1.0), total)
        out = self.let(body, "out_tile")(Permute(Binary("div", acc, divisor), (1, 0)))
        body += self.finish(out, (*self.where, at(self.head), span(q, wide), span(0, p.value_depth)))
        nest: list[Statement] = [loop("parallel", q, 0, self.exact.queries, wide, body)]
        note = (
            f"attention: {wide} queries meet {tall} positions at a time, {self._staged(wide, tall) >> 10} KiB of "
            f"{self.machine.staged_bytes >> 10} near a unit; {tasks * ceil_div(p.queries, wide)} tasks for {self.machine.units} units"
        )
        kernel = Kernel(self.names.fresh("attention"), tuple(self.around(nest)))
        return ScheduleCandidate((kernel,), (), (), self.cost(0.6), (note,))

    def masked(
        self, step: list[Statement], score: Var, q: str, wide: int, j: str, tall: int, *, rows: bool = False
    ) -> Var:  # fmt: skip
        """Scores [positions, queries], or transposed with `rows`, with the mask added and what must not be seen set to -inf."""
        p = self.p
        if self.load_mask is not None and p.masked:
            mask = self.load_mask((*self.where, at(self.head), span(q, wide), span(j, tall)))
            score = self.let(step, "score")(Binary("add", score, mask if rows else Permute(mask, (1, 0))))
        allowed: Tile | None = None
        position = Unsqueeze(Binary("add", Iota(nodes.Int(tall)), FromIndex(nodes.Sym(j))), 0 if rows else 1)
        if p.causal:
            queries = Unsqueeze(Binary("add", Iota(nodes.Int(wide)), FromIndex(nodes.Sym(q))), 1 if rows else 0)
            allowed = Binary("le", position, queries)
        positions = self.exact.positions
        if isinstance(positions, Size) or positions % tall:
            inside = Binary("lt", position, integer_tile(size_index(positions)))
            allowed = inside if allowed is None else Binary("logical_and", allowed, inside)
        if allowed is None:
            return score
        return self.let(step, "score")(Where(allowed, score, Number(-INFINITY)))

    # ------------------------------------------------------------ decode

    def decode(self) -> ScheduleCandidate:
        """One query at a time: all its scores in one tile, then the sum of values that they weigh."""
        p = self.p
        q = self.names.fresh("q")
        body: list[Statement] = []
        query = self.load_q((*self.where, at(self.head), at(q), span(0, p.depth)))
        row = self.let(body, "query")(Binary("mul", query, Number(p.factor)))
        key = self.load_k((*self.where, self.kv, span(0, self.exact.positions), span(0, p.depth)))
        score = self.let(body, "score")(Reduce("sum", Binary("mul", key, Unsqueeze(row, 0)), (1,)))
        if self.load_mask is not None and p.masked:
            mask = self.load_mask((*self.where, at(self.head), at(q), span(0, self.exact.positions)))
            score = self.let(body, "score")(Binary("add", score, Unsqueeze(mask, 1)))
        if p.causal:
            position = Unsqueeze(Iota(size_index(self.exact.positions)), 1)
            seen = Binary("le", position, FromIndex(nodes.Sym(q)))
            score = self.let(body, "score")(Where(seen, score, Number(-INFINITY)))
        top = self.let(body, "top")(Reduce("max", score, (0,)))
        if p.masked or isinstance(self.exact.positions, Size):
            top = self.let(body, "top")(Where(Binary("eq", top, Number(-INFINITY)), Number(0.0), top))
        weight = self.let(body, "weight")(Unary("exp", Binary("sub", score, top)))
        total: Tile = self.let(body, "total")(Reduce("sum", weight, (0,)))
        if p.masked or isinstance(self.exact.positions, Size):
            total = Where(Binary("eq", total, Number(0.0)), Number(1.0), total)
        value = self.load_v((*self.where, self.kv, span(0, self.exact.positions), span(0, p.value_depth)))
        mixed = self.let(body, "mixed")(Reduce("sum", Binary("mul", value, weight), (0,)))
        out = self.let(body, "out_row")(Squeeze(Binary("div", mixed, total), 0))
        body += self.finish(out, (*self.where, at(self.head), at(q), span(0, p.value_depth)))
        nest: list[Statement] = [loop("range", q, 0, self.exact.queries, 1, body)]
        return ScheduleCandidate((Kernel(self.names.fresh("decode"), tuple(self.around(nest))),), (), (), self.cost(0.2))
