"""Writes a nest as sketch statements: each scalar expression becomes a tile, for a given binding of axes.

What an axis is at a place in the kernel says its binding (bindings.py). All tiles of a kernel live in one space of `rank` tile axes
and have extent 1 along those they do not depend on; leading axes that a tile does not have are left away, as NumPy broadcasting
allows. Statements go into nested `Block`s; a tile is written in the outermost block that knows all its loop variables, so what does
not change in a loop stands before it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.index_maps import Datum, IndexExpr, LoopAxis, axes_in, linear, offset
from kernelwright.compiler.graph.symbolic import Extent, size_index, size_poly
from kernelwright.compiler.schedule.bindings import Block, Dim, LineReduce, Loop, LoopedReduce, integer_tile
from kernelwright.compiler.schedule.scalar import Expr, walk_all
from kernelwright.core.dtypes import FLOATS
from kernelwright.core.operations import REDUCTIONS, neutral
from kernelwright.sketch import nodes
from kernelwright.sketch.index import Opaque, Range, Ranges, add, mul, simplify, to_index
from kernelwright.sketch.names import Names
from kernelwright.sketch.nodes import At, Axis, Cast, DType, FromIndex, Index, Int, Iota, Load, Number, Pick, Span, Sym, Tile

STEM = {"sum": "total", "prod": "product", "max": "peak", "min": "low", "any": "found", "all": "holds"}


@dataclass
class Emitter:
    """Turns expressions into tiles for one kernel."""

    rank: int
    names: Names  # of this kernel
    declare_view: Callable[[str, tuple[Extent, ...]], str]
    slots: dict[Expr, tuple[Tile, tuple[int, ...]]] = field(default_factory=dict)
    uses: Counter[Expr] = field(default_factory=Counter)
    always_pad: bool = False
    looped: dict[Expr, LoopedReduce] = field(default_factory=dict)
    batches: dict[Expr, list[Expr]] = field(default_factory=dict)
    moments: dict[Expr, tuple[Expr, Expr]] = field(default_factory=dict)  # sum and centred sum of squares made in one walk
    stems: dict[Expr, str] = field(default_factory=dict)
    separated: dict[Expr, LineReduce] = field(default_factory=dict)

    def count(self, roots: list[Expr]) -> None:
        """Notes how often each expression is used, so that shared ones get a name."""
        for e in walk_all(roots):
            for a in e.args:
                self.uses[a] += 1
        for r in roots:
            self.uses[r] += 1

    # ------------------------------------------------------------ expressions

    def tile(self, e: Expr, block: Block) -> tuple[Tile, int]:
        """The tile of an expression and its rank (trailing tile axes it has)."""
        home = block.home(e.free)
        if e in home.tiles:
            return home.tiles[e]
        made, rank = self._make(e, home)
        if e in home.tiles:  # made on the way, by a walk that gives several
            return home.tiles[e]
        shared = self.uses[e] > 1 or home is not block
        if shared and e.kind not in ("const", "index") and not isinstance(made, nodes.Var | Number):
            name = self.names.fresh(self._stem(e))
            home.statements.append(nodes.Assign(name, made))
            made = nodes.Var(name)
        home.tiles[e] = (made, rank)
        return made, rank

    def _stem(self, e: Expr) -> str:
        if e in self.stems:
            return self.stems[e]
        if e.kind == "access":
            return f"{e.data[0]}_tile"
        if e.kind == "cast" and e.args[0].kind == "access":
            return f"{e.args[0].data[0]}_tile"
        if e.kind == "reduce":
            return STEM[e.data[0]]
        return {"arg": "position", "scan": "running"}.get(e.kind, "t")

    def _make(self, e: Expr, block: Block) -> tuple[Tile, int]:
        if e.kind == "const":
            return Number(e.data), 0
        if e.kind == "index":
            return self.index_tile(e.data, block)
        if e.kind == "access":
            return self._access(e, block)
        if e.kind == "slot":
            return self._slot(e)
        if e in self.separated:
            return self._run_lines(e, self.separated[e], block)
        if e.kind == "reduce" and e in self.looped:
            return self._run_loop(e, block)
        if e.kind == "arg" and e in self.looped:
            return self._run_loop(e, block)
        if e.kind == "cast" and e.args[0].kind == "const":
            return Number(bool(e.args[0].data) if e.dtype == DType.bool else int(e.args[0].data)), 0
        args = [self.tile(a, block) for a in e.args]
        x, rank = args[0]
        if e.kind == "cast":
            return Cast(x, e.dtype), rank
        if e.kind == "bitcast":
            return nodes.Bitcast(x, e.dtype), rank
        if e.kind == "apply":
            return self._apply(e, args)
        if e.kind == "reduce":
            axes = tuple(self._axis(a, block, rank) for a in e.data[1])
            return nodes.Reduce(e.data[0], x, tuple(sorted(axes))), rank
        if e.kind == "arg":
            return nodes.ArgReduce(e.data[0], x, self._axis(e.data[1], block, rank)), rank
        op, loop_axis, reverse, exclusive = e.data
        x, rank = self._with_axis(args[0], loop_axis, block, e.dtype)
        return nodes.Scan(op, x, self._axis(loop_axis, block, rank), reverse, exclusive), rank

    def _with_axis(self, made: tuple[Tile, int], loop_axis: LoopAxis, block: Block, dtype: DType) -> tuple[Tile, int]:
        """The tile with a real extent along an axis's axis (an operand of a scan may not depend on it)."""
        binding = block.lookup(loop_axis)
        assert isinstance(binding, Dim)
        x, rank = made
        need = self.rank - binding.dim
        shape = tuple(binding.extent if i == 0 else Int(1) for i in range(need))
        zero = nodes.Full(shape, False if dtype == DType.bool else 0, dtype)
        op = "logical_or" if dtype == DType.bool else "add"
        if rank >= need and not isinstance(x, Number):
            return x, rank
        return nodes.Binary(op, x, zero), max(rank, need)

    def _axis(self, loop_axis: LoopAxis, block: Block, rank: int) -> int:
        binding = block.lookup(loop_axis)
        assert isinstance(binding, Dim), "a reduced axis must be a tile axis"
        return binding.dim - (self.rank - rank)

    def _apply(self, e: Expr, args: list[tuple[Tile, int]]) -> tuple[Tile, int]:
        rank = max(r for _, r in args)
        tiles = [t for t, _ in args]
        if all(isinstance(t, Number) for t in tiles):  # a literal needs a tile to take its dtype from
            tiles[-1] = nodes.Full((), tiles[-1].value, e.args[-1].dtype)  # type: ignore[union-attr]
        if e.data == "where":
            if isinstance(tiles[1], Number) and isinstance(tiles[2], Number):
                tiles[1] = nodes.Full((), tiles[1].value, e.dtype)
            if isinstance(tiles[0], Number):
                tiles[0] = nodes.Full((), tiles[0].value, DType.bool)
            return nodes.Where(*tiles), rank
        if len(tiles) == 1:
            return nodes.Unary(e.data, tiles[0]), rank
        return nodes.Binary(e.data, tiles[0], tiles[1]), rank

    def _slot(self, e: Expr) -> tuple[Tile, int]:
        tile, dims = self.slots[e] if e in self.slots else self.slots[next(s for s in self.slots if s.data[0] is e.data[0])]
        return self.arranged(tile, dims)

    # ------------------------------------------------------------ loops

    def _run_loop(self, e: Expr, block: Block) -> tuple[Tile, int]:
        """Runs the loop of a reduction together with others over the same axes that do not need each other."""
        if e in self.moments and all(m not in block.tiles and block.home(m.free) is block for m in self.moments[e]):
            self._run_moments(*self.moments[e], block)
            return block.tiles[e]
        batch = [b for b in self.batches.get(e, [e]) if b not in block.tiles and block.home(b.free) is block]
        if e not in batch:
            batch = [e]
        accumulators: list[list[str]] = []

        def body(inner: Block) -> None:
            for member, names in zip(batch, accumulators, strict=True):
                self._accumulate(member, names, inner)

        probe = Block(dict(block.bindings), block.parent)
        for member in batch:
            accumulators.append(self._start(member, block, probe))
        self.looped[e].run(block, body)
        for member, names in zip(batch, accumulators, strict=True):
            block.tiles[member] = (nodes.Var(names[-1]), self.rank)
        return block.tiles[e]

    def _run_lines(self, e: Expr, lines: LineReduce, block: Block) -> tuple[Tile, int]:
        """Folds the rows of all windows into one line that neighbouring windows share, and then the columns of each window."""
        how, op = lines.how, e.data[0]
        binding = block.lookup(how.along)
        assert isinstance(binding, Dim)
        assert isinstance(binding.extent, Int)
        length = how.length(binding.extent.value)
        largest = binding.largest * how.step + (how.window.extent - 1) * how.reach
        across = Dim(binding.dim, mul(Int(how.step), binding.start), Int(length), largest)
        inside = Block({how.line: across}, block)
        extents = [self._extent(d, e.free, block) for d in range(self.rank)]
        line, made = self.names.fresh("line"), self.names.fresh(STEM[op])
        shape = tuple(Int(length) if d == binding.dim else extent for d, extent in enumerate(extents))
        start = neutral(op, e.dtype)
        block.statements.append(nodes.Assign(line, nodes.Full(shape, start, e.dtype, "accumulator")))

        def fold_row(inner: Block) -> None:
            x, _ = self.tile(how.operand, inner)
            inner.statements.append(nodes.Assign(line, nodes.Binary(REDUCTIONS[op].step, nodes.Var(line), x)))

        def fold_column(inner: Block) -> None:
            at = inner.lookup(how.window)
            assert isinstance(at, Loop)
            spans = [
                Span(mul(Int(how.reach), at.index), extent, Int(how.step)) if d == binding.dim else Span(Int(0), extent)
                for d, extent in enumerate(extents)
            ]
            part = nodes.Part(nodes.Var(line), tuple(spans))
            inner.statements.append(nodes.Assign(made, nodes.Binary(REDUCTIONS[op].step, nodes.Var(made), part)))

        lines.rows.run(inside, fold_row)
        block.statements += inside.statements
        block.statements.append(nodes.Assign(made, nodes.Full(tuple(extents), start, e.dtype, "accumulator")))
        lines.columns.run(block, fold_column)
        return nodes.Var(made), self.rank

    def _run_moments(self, total: Expr, squares: Expr, block: Block) -> None:
        """Sum and centred sum of squares in one walk: each chunk gives its own mean and spread, which are merged into those of the
        chunks before it. As exact as two walks, and a row longer than the cache is read once less."""
        dtype = total.dtype
        shape = tuple(self._extent(d, total.free, block) for d in range(self.rank))
        mean, spread = self.names.fresh("mean"), self.names.fresh("spread")
        for name in (mean, spread):
            block.statements.append(nodes.Assign(name, nodes.Full(shape, 0.0, dtype, "accumulator")))

        walked = self.looped[total].loop_axes

        def scaled(tile: Tile, factor: Tile) -> Tile:
            return nodes.Binary("mul", tile, factor)

        def body(inner: Block) -> None:
            x, rank = self.tile(total.args[0], inner)
            before, size = _walked((*walked, *(a for a in total.data[1] if a not in walked)), inner)
            axes = tuple(sorted(self._axis(a, inner, rank) for a in total.data[1] if isinstance(inner.lookup(a), Dim)))
            own, apart, delta, weight = (self.names.fresh(stem) for stem in ("own", "apart", "delta", "weight"))
            local = nodes.Binary("div", nodes.Reduce("sum", x, axes), Number(float(size)))
            inner.statements.append(nodes.Assign(own, local))
            inner.statements.append(nodes.Assign(apart, nodes.Binary("sub", x, nodes.Var(own))))
            inner.statements.append(nodes.Assign(delta, nodes.Binary("sub", nodes.Var(own), nodes.Var(mean))))
            share = nodes.Binary("div", nodes.Full((), float(size), dtype), Cast(FromIndex(add(before, Int(size))), dtype))
            inner.statements.append(nodes.Assign(weight, share))
            step = nodes.Binary("add", nodes.Var(mean), scaled(nodes.Var(delta), nodes.Var(weight)))
            inner.statements.append(nodes.Assign(mean, step))
            within = nodes.Reduce("sum", scaled(nodes.Var(apart), nodes.Var(apart)), axes)
            between = scaled(
                scaled(nodes.Var(delta), nodes.Var(delta)), scaled(Cast(FromIndex(before), dtype), nodes.Var(weight))
            )
            more = nodes.Binary("add", nodes.Var(spread), nodes.Binary("add", within, between))
            inner.statements.append(nodes.Assign(spread, more))

        self.looped[total].run(block, body)
        count = math.prod(a.extent for a in total.data[1])
        block.tiles[total] = (scaled(nodes.Var(mean), Number(float(count))), self.rank)
        block.tiles[squares.args[0].args[0].args[1]] = (nodes.Var(mean), self.rank)  # the x - mean inside the squares
        block.tiles[squares] = (nodes.Var(spread), self.rank)

    def _start(self, e: Expr, block: Block, probe: Block) -> list[str]:
        shape = tuple(self._extent(d, e.free, block) for d in range(self.rank))
        if e.kind == "reduce":
            name = self.names.fresh(STEM[e.data[0]])
            start = nodes.Full(shape, neutral(e.data[0], e.dtype), e.dtype, "accumulator")
            block.statements.append(nodes.Assign(name, start))
            return [name]
        best, where = self.names.fresh("best"), self.names.fresh("position")
        dtype = e.args[0].dtype
        block.statements.append(nodes.Assign(best, nodes.Full(shape, neutral(e.data[0], dtype), dtype, "accumulator")))
        block.statements.append(nodes.Assign(where, nodes.Full(shape, 0, DType.i64, "accumulator")))
        return [best, where]

    def _extent(self, dim: int, free: frozenset[LoopAxis], block: Block) -> Index:
        for loop_axis in free:
            binding = block.lookup(loop_axis)
            if isinstance(binding, Dim) and binding.dim == dim:
                return binding.extent
        return Int(1)

    def _accumulate(self, e: Expr, names: list[str], block: Block) -> None:
        x, rank = self.tile(e.args[0], block)
        if e.kind == "reduce":
            axes = [a for a in e.data[1] if isinstance(block.lookup(a), Dim)]
            if axes:
                x = nodes.Reduce(e.data[0], x, tuple(sorted(self._axis(a, block, rank) for a in axes)))
            block.statements.append(nodes.Assign(names[0], nodes.Binary(REDUCTIONS[e.data[0]].step, nodes.Var(names[0]), x)))
            return
        best, where = nodes.Var(names[0]), nodes.Var(names[1])
        op, loop_axis = e.data
        binding = block.lookup(loop_axis)
        position: Tile
        if isinstance(binding, Dim):
            axis = self._axis(loop_axis, block, rank)
            local = nodes.ArgReduce(op, x, axis)
            position = nodes.Binary("add", local, FromIndex(binding.start))
            x = nodes.Reduce(op, x, (axis,))
        else:
            assert isinstance(binding, Loop)
            position = FromIndex(binding.index)
        if not isinstance(x, nodes.Var):
            name = self.names.fresh("x")
            block.statements.append(nodes.Assign(name, x))
            x = nodes.Var(name)
        better: Tile = nodes.Binary("gt" if op == "max" else "lt", x, best)
        if e.args[0].dtype in FLOATS:  # the first NaN wins and stays; an infinite first element must win over the start value
            fresh = nodes.Binary("logical_and", nodes.Unary("isnan", x), nodes.Unary("logical_not", nodes.Unary("isnan", best)))
            better = nodes.Binary("logical_or", better, fresh)
        flag = self.names.fresh("better")
        block.statements.append(nodes.Assign(flag, better))
        block.statements.append(nodes.Assign(names[1], nodes.Where(nodes.Var(flag), position, where)))
        block.statements.append(nodes.Assign(names[0], nodes.Where(nodes.Var(flag), x, best)))

    # ------------------------------------------------------------ coordinates and memory

    def resolve(self, c: IndexExpr, block: Block) -> tuple[Index, dict[int, Index], list[tuple[Extent, Tile, int]]]:
        """A coordinate as number + steps along tile axes + tiles (coefficient, tile, rank) for what is not linear."""
        base: Index = size_index(offset(c))
        steps: dict[int, Index] = {}
        tiles: list[tuple[Extent, Tile, int]] = []
        for term, k in linear(c):
            if isinstance(term, LoopAxis):
                binding = block.lookup(term)
                assert binding is not None, f"unbound axis {term}"
                if isinstance(binding, Loop):
                    base = add(base, mul(size_index(k), binding.index))
                else:
                    base = add(base, mul(size_index(k), binding.start))
                    steps[binding.dim] = add(steps.get(binding.dim, Int(0)), mul(size_index(k), binding.step))
            elif isinstance(term, Datum):
                tile, rank = self.tile(term.expression, block)
                tiles.append((k, tile, rank))
            else:
                assert isinstance(term, Opaque)
                name, by = {"//": "floordiv", "%": "mod"}[term.op], to_index(term.right)
                inner, inner_steps, inner_tiles = self.resolve(term.left, block)
                if not inner_steps and not inner_tiles:
                    base = add(base, mul(size_index(k), simplify(nodes.IndexOp(term.op, inner, by))))
                else:
                    tile, rank = self.index_tile(term.left, block)
                    tiles.append((k, nodes.Binary(name, tile, integer_tile(by)), rank))
        return base, {d: s for d, s in steps.items() if s != Int(0)}, tiles

    def index_tile(self, c: IndexExpr, block: Block) -> tuple[Tile, int]:
        """A coordinate as an i64 tile."""
        base, steps, tiles = self.resolve(c, block)
        parts: list[tuple[Tile, int]] = []
        for dim, step in steps.items():
            ramp: Tile = Iota(self._dim_extent(dim, c, block))
            if step != Int(1):
                ramp = nodes.Binary("mul", ramp, integer_tile(step))
            parts.append(self.arranged(ramp, (dim,)))
        for k, tile, rank in tiles:
            parts.append((nodes.Binary("mul", tile, integer_tile(size_index(k))) if k != 1 else tile, rank))
        if base != Int(0) or not parts:
            if not parts:
                return FromIndex(base), 0
            x, rank = parts[0]
            parts[0] = nodes.Binary("add", x, integer_tile(base)), rank
        total, rank = parts[0]
        for x, r in parts[1:]:
            total, rank = nodes.Binary("add", total, x), max(rank, r)
        return total, rank

    def _dim_extent(self, dim: int, c: IndexExpr, block: Block) -> Index:
        for loop_axis in axes_in(c):
            binding = block.lookup(loop_axis)
            if isinstance(binding, Dim) and binding.dim == dim:
                return binding.extent
        raise AssertionError("no axis of this coordinate runs along the tile axis")

    def arranged(self, tile: Tile, dims: tuple[int, ...]) -> tuple[Tile, int]:
        """A tile whose axes are the given tile axes, brought to ascending order with gaps of extent 1."""
        if not dims:
            return tile, 0
        order = sorted(range(len(dims)), key=lambda i: dims[i])
        if order != list(range(len(dims))):
            tile = nodes.Permute(tile, tuple(order))
        first = min(dims)
        for position, dim in enumerate(range(first, self.rank)):
            if dim not in dims:
                tile = nodes.Unsqueeze(tile, position)
        return tile, self.rank - first

    def region(
        self, coords: v.MultiIndex, shape: tuple[Extent, ...], block: Block
    ) -> tuple[tuple[Axis, ...], tuple[int, ...], bool]:
        """Region of a tensor, the tile axes that its result has in order, and whether it surely lies inside."""
        resolved = [self.resolve(c, block) for c in coords]
        use = Counter(d for _, steps, _ in resolved for d in steps)
        complex_axes = {
            i
            for i, (_, steps, tiles) in enumerate(resolved)
            if any(r for _, _, r in tiles) or len(steps) > 1 or any(use[d] > 1 for d in steps)
        }
        picked: set[int] = set()
        while True:  # a tile axis that some pick uses cannot be a span elsewhere
            picked = set().union(*(self._dims_of(coords[i], block) for i in complex_axes)) if complex_axes else set()
            more = {i for i, (_, steps, _) in enumerate(resolved) if i not in complex_axes and picked & set(steps)}
            if not more:
                break
            complex_axes |= more
        axes: list[Axis] = []
        span_dims: list[int] = []
        pick_dims = tuple(sorted(picked))
        for i, (base, steps, tiles) in enumerate(resolved):
            if i in complex_axes:
                axes.append(Pick(self._pick_tile(coords[i], pick_dims, block)))
            elif tiles:  # a single index read at run time: a pick without axes
                axes.append(Pick(self.index_tile(coords[i], block)[0]))
            elif steps:
                ((dim, step),) = steps.items()
                axes.append(Span(base, self._dim_extent(dim, coords[i], block), step))
                span_dims.append(dim)
            else:
                axes.append(At(base))
        return tuple(axes), (*pick_dims, *span_dims), all(self._inside(c, n, block) for c, n in zip(coords, shape, strict=True))

    def _dims_of(self, c: IndexExpr, block: Block) -> set[int]:
        return {b.dim for a in axes_in(c) if isinstance(b := block.lookup(a), Dim)}

    def _pick_tile(self, c: IndexExpr, dims: tuple[int, ...], block: Block) -> Tile:
        """The index tile with exactly the pick axes (others have extent 1 and are dropped)."""
        tile, rank = self.index_tile(c, block)
        first = self.rank - rank
        for dim in range(self.rank - 1, first - 1, -1):
            if dim not in dims:
                tile = nodes.Squeeze(tile, dim - first)
        return tile

    def _inside(self, c: IndexExpr, extent: Extent, block: Block) -> bool:
        """Whether every position is inside an axis, also those of a tile's last, incomplete step."""
        bound: dict[Any, Range] = {a: (a.low, size_poly(b.largest)) for a in axes_in(c) if (b := block.lookup(a)) is not None}
        ranges = Ranges(bound, others=None)
        low, high = ranges.interval(c)
        if low is not None and high is not None and isinstance(extent, int):
            return low >= 0 and high < extent
        return ranges.within(c, size_poly(extent))

    def _access(self, e: Expr, block: Block) -> tuple[Tile, int]:
        tensor, shape, coords = e.data
        axes, dims, inside = self.region(coords, shape, block)
        pad = None if inside and not self.always_pad else (False if e.dtype == DType.bool else 0.0 if e.dtype in FLOATS else 0)
        return self.arranged(Load(self.declare_view(tensor, shape), axes, pad), dims)

    def store(self, target: Expr, value: Expr, block: Block, mode: str = "set") -> None:
        """Stores an expression in its target, rounded to the target's dtype."""
        tensor, shape, coords = target.data
        tile, rank = self.tile(value, block)
        if value.dtype != target.dtype:
            tile = Cast(tile, target.dtype) if not isinstance(tile, Number) else nodes.Full((), tile.value, target.dtype)
        self.store_tile(tensor, shape, coords, tile, rank, block, mode)

    def store_tile(
        self,
        tensor: str,
        shape: tuple[Extent, ...],
        coords: v.MultiIndex,
        tile: Tile,
        rank: int,
        block: Block,
        mode: str = "set",
    ) -> None:
        """Stores a tile of this kernel's tile axes at coordinates."""
        axes, dims, _ = self.region(coords, shape, block)
        first = self.rank - rank
        if rank:
            for dim in range(self.rank - 1, first - 1, -1):
                if dim not in dims:
                    tile = nodes.Squeeze(tile, dim - first)
            have = [d for d in range(first, self.rank) if d in dims]
            missing = [d for d in dims if d not in have]  # leading axes that the tile does not depend on
            if have != [d for d in dims if d in have]:
                for _ in missing:
                    tile = nodes.Unsqueeze(tile, 0)
                full = sorted(missing) + have
                tile = nodes.Permute(tile, tuple(full.index(d) for d in dims))
            elif missing and list(dims) != sorted(dims):
                for position, d in enumerate(dims):
                    if d in missing:
                        tile = nodes.Unsqueeze(tile, position)
        block.statements.append(nodes.Store(self.declare_view(tensor, shape), axes, tile, mode))  # type: ignore[arg-type]


def _walked(loop_axes: tuple[LoopAxis, ...], block: Block) -> tuple[Index, int]:
    """How many elements loops over these axes, outermost first, have passed before this step, and how many it takes."""
    before: Index = Int(0)
    size = 1
    for loop_axis in loop_axes:
        binding = block.lookup(loop_axis)
        assert binding is not None
        before = mul(before, size_index(loop_axis.extent))
        if isinstance(binding, Loop):
            before = add(before, binding.index)
        else:
            assert isinstance(binding.extent, Int)
            before = add(before, binding.start)
            size *= binding.extent.value
    return before, size


def loop_var(names: Names, stem: str = "i") -> tuple[str, Sym]:
    """A fresh loop variable."""
    name = names.fresh(stem)
    return name, Sym(name)
