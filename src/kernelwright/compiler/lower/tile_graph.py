"""From a kernel's statements to blocks of effects over tile values.

In: a `nodes.Kernel` and the sizes of its sketch. Out: one `Block`. On the way short loops over purely elementwise bodies are
unrolled, so that their carried tiles become one expression (a pooling window, a few rows of a column sum) instead of a buffer
that goes to memory in each iteration; arg-reductions become a reduction and a search, both of which vectorise.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernelwright.compiler.lower.liveness import Liveness, names_bound
from kernelwright.compiler.lower.tile_values import (
    Access,
    AtAccess,
    Block,
    Carried,
    CommentEffect,
    LoadData,
    LoopEffect,
    MaterializeEffect,
    PickAccess,
    SpanAccess,
    Storage,
    StoreEffect,
    Value,
)
from kernelwright.core.errors import SketchError
from kernelwright.sketch import nodes
from kernelwright.sketch.index import Poly, Ranges, combine, from_index, poly
from kernelwright.sketch.nodes import DType

UNROLL_WHOLE = 32
"""A loop of at most this many elementwise steps (inner loops included) is unrolled as a whole."""
UNROLL_PART = 4
"""A longer one is unrolled by this factor: its carried tile then goes to memory once in four steps."""

_COMPARE = frozenset(["eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or"])
_TEST = frozenset(["isnan", "isinf", "logical_not"])
_CHEAP = (
    nodes.Var, nodes.Number, nodes.FromIndex, nodes.Iota, nodes.Full, nodes.Load, nodes.Unary, nodes.Binary, nodes.Where, nodes.Cast,
    nodes.Bitcast, nodes.Permute, nodes.Squeeze, nodes.Unsqueeze, nodes.Stack, nodes.Expand,
    nodes.Part,
)  # fmt: skip


class GraphBuilder:
    """Builds the graph of one kernel. `written_too` are tensors that this kernel both reads and writes: their loads are kept at
    once, because a later store may change what they would read."""

    def __init__(self, sizes: Mapping[str, Poly], tensors: Mapping[str, nodes.Tensor], kernel: nodes.Kernel) -> None:
        self.sizes = dict(sizes)
        self.tensors = tensors
        self.ranges = Ranges({})
        self.count = 0
        self.storage_names: set[str] = set()
        self.block = Block(None)
        self.env: dict[str, Value] = {}
        loaded, stored = set[str](), set[str]()
        _tensors_used(kernel.body, loaded, stored)
        root = {name: tensor.source if tensor.role == "view" else name for name, tensor in tensors.items()}
        self.roots = root
        self.written_too = {root[t] for t in loaded} & {root[t] for t in stored}
        self.kernel = kernel
        self.liveness = Liveness()

    def build(self) -> Block:
        """The whole kernel."""
        self.statements(self.kernel.body, set())
        return self.block

    # ------------------------------------------------------------ statements

    def statements(self, body: tuple[nodes.Statement, ...], live_after: set[str]) -> None:
        for position, statement in enumerate(body):
            match statement:
                case nodes.Assign():
                    value = self.typed(self.tile(statement.value), None)
                    if not value.name and value.op not in ("stored", "const"):
                        value.name = statement.name
                    self.env[statement.name] = value
                case nodes.Store():
                    self.store(statement)
                case nodes.For():
                    self.loop(statement, self.liveness.before(body[position + 1 :], live_after))
                case nodes.Comment():
                    self.block.effects.append(CommentEffect(statement.text))

    def store(self, statement: nodes.Store) -> None:
        tensor = self.tensors[statement.tensor]
        axes, _ = self.region(statement.region)
        value = self.typed(self.tile(statement.value), tensor.dtype)
        self.block.effects.append(StoreEffect(statement.tensor, axes, value, statement.mode))

    def loop(self, loop: nodes.For, live_after: set[str]) -> None:
        start, stop, step = (self.index(i) for i in (loop.start, loop.stop, loop.step))
        live_in = self.liveness.entering(loop, live_after)
        carried = sorted(names_bound(loop.body) & (live_in | live_after))
        trips = combine("//", stop - start + step - 1, step).constant
        if trips == 0:
            return
        steps = _steps(loop, self) if carried and loop.kind == "range" and step.constant else None
        if steps is not None and trips is not None and trips * steps <= UNROLL_WHOLE:
            for k in range(trips):
                self.iterate(loop, start + step * k, live_in | live_after)
            return
        if trips == 1:
            self.iterate(loop, start, live_in | live_after)
            return
        unroll = max(1, min(UNROLL_PART, UNROLL_WHOLE // steps)) if steps is not None else 1
        while unroll > 1 and trips is not None and trips % unroll and trips > 4 * UNROLL_WHOLE:
            unroll //= 2  # rather a divisor than a remainder loop in a long loop whose count is known
        if unroll <= 1:
            self.rolled(loop, start, stop, step, 1, carried, live_in | live_after)
            return
        whole = combine("//", stop - start, step * unroll) if trips is None else poly(trips // unroll)
        middle = start + whole * step * unroll
        self.rolled(loop, start, middle, step, unroll, carried, live_in | live_after)
        if trips is None:
            self.rolled(loop, middle, stop, step, 1, carried, live_in | live_after)
        else:
            for k in range(trips % unroll):
                self.iterate(loop, middle + step * k, live_in | live_after)

    def iterate(self, loop: nodes.For, at: Poly, live_after: set[str]) -> None:
        """One iteration in place, the loop variable replaced by its value."""
        before = self.sizes.get(loop.var)
        self.sizes[loop.var] = at
        self.statements(loop.body, live_after)
        self.sizes.pop(loop.var)
        if before is not None:
            self.sizes[loop.var] = before

    def rolled(
        self, loop: nodes.For, start: Poly, stop: Poly, step: Poly, unroll: int, names: list[str], live_after: set[str]
    ) -> None:
        """A real loop: carried names get storage, the body is built `unroll` times."""
        outer = self.block
        body = Block(outer)
        var = self.fresh(loop.var)
        trips = combine("//", stop - start - 1, step * unroll)
        last = start + step * unroll * trips if trips.constant is not None else stop - 1
        self.ranges.known[var] = (start, last)
        carried: list[Carried] = []
        self.block = body
        for name in names:
            initial = self.env.get(name)
            shape, dtype = (initial.shape, initial.dtype) if initial is not None else self.guess(loop, name, start)
            storage = Storage(self.fresh(name), shape, dtype)
            inside = self.value("stored", (), shape, dtype, storage)
            inside.storage = storage
            carried.append(Carried(name, initial, inside, storage))
            self.env[name] = inside
        outer_env = dict(self.env)
        for k in range(unroll):
            self.iterate(loop, poly(var) + step * k, live_after)
        for item in carried:
            item.final = self.env.get(item.name)
            if item.final is not None and [e.constant for e in item.final.shape] != [e.constant for e in item.storage.shape]:
                raise SketchError(f"{item.name} changes its shape inside the loop over {loop.var}", line=loop.line)
        self.block = outer
        self.env = outer_env
        outer.effects.append(LoopEffect(var, loop.kind, start, stop, step * unroll, body, carried, dict(loop.hints)))
        for item in carried:
            after = self.value("stored", (), item.storage.shape, item.storage.dtype, item.storage)
            after.storage = item.storage
            self.env[item.name] = after

    def guess(self, loop: nodes.For, name: str, start: Poly) -> tuple[tuple[Poly, ...], DType]:
        """Shape of a name that is first bound inside a loop and read after it: build one iteration and look."""
        kept = (self.block, dict(self.env))
        self.block = Block(self.block)
        self.iterate(loop, start, set())
        found = self.env[name]
        self.block, self.env = kept
        return found.shape, found.dtype

    def fresh(self, stem: str) -> str:
        """A C name not used before in this kernel."""
        name, k = stem, 1
        while name in self.storage_names or name in self.tensors or name in RESERVED:
            k += 1
            name = f"{stem}_{k}"
        self.storage_names.add(name)
        return name

    # ------------------------------------------------------------ tiles

    def index(self, index: nodes.Index) -> Poly:
        return from_index(index, self.sizes)

    def value(self, op: str, args: tuple[Value, ...], shape: tuple[Poly, ...], dtype: DType, data: object = None) -> Value:
        self.count += 1
        return Value(self.count, op, args, shape, dtype, data, home=self.block)

    def number(self, number: float | int | bool, dtype: DType, shape: tuple[Poly, ...] = ()) -> Value:
        return self.value("const", (), shape, dtype, number)

    def typed(self, value: Value, dtype: DType | None) -> Value:
        """A weak number with the dtype of what it meets (or its own default); anything else unchanged."""
        if not value.weak:
            return value
        return self.number(value.data, dtype if dtype is not None else value.dtype, value.shape)

    def tile(self, tile: nodes.Tile) -> Value:
        """The value of an expression here and now."""
        match tile:
            case nodes.Var():
                if tile.name not in self.env:
                    raise SketchError(f"{tile.name} is read before it is bound in kernel {self.kernel.name}")
                return self.env[tile.name]
            case nodes.Number():
                kind = DType.bool if isinstance(tile.value, bool) else DType.i64 if isinstance(tile.value, int) else DType.f32
                weak = self.number(tile.value, kind)
                weak.weak = True
                return weak
            case nodes.FromIndex():
                return self.value("index", (), (), DType.i64, self.index(tile.index))
            case nodes.Iota():
                return self.value("iota", (), (self.index(tile.extent),), DType.i64)
            case nodes.Full():
                return self.number(tile.value, tile.dtype, tuple(self.index(i) for i in tile.shape))
            case nodes.Load():
                return self.load(tile)
            case nodes.Unary():
                x = self.typed(self.tile(tile.x), None)
                return self.value("unary", (x,), x.shape, DType.bool if tile.op in _TEST else x.dtype, tile.op)
            case nodes.Binary():
                return self.binary(tile)
            case nodes.Stack():
                return self.stack(tile)
            case nodes.Where():
                return self.where(self.tile(tile.condition), self.tile(tile.a), self.tile(tile.b))
            case nodes.Cast() | nodes.Bitcast():
                x = self.typed(self.tile(tile.x), tile.dtype if isinstance(tile, nodes.Cast) else None)
                if x.dtype is tile.dtype:
                    return x
                return self.value("cast" if isinstance(tile, nodes.Cast) else "bitcast", (x,), x.shape, tile.dtype)
            case nodes.Reduce():
                return self.reduce(tile.op, self.typed(self.tile(tile.x), None), tile.axes)
            case nodes.ArgReduce():
                return self.arg_reduce(tile.op, self.typed(self.tile(tile.x), None), tile.axis)
            case nodes.Scan():
                x = self.typed(self.tile(tile.x), None)
                return self.value(
                    "scan", (x,), x.shape, x.dtype, (tile.op, tile.axis % len(x.shape), tile.reverse, tile.exclusive)
                )
            case nodes.ArgSort():
                x = self.tile(tile.x)
                return self.value("argsort", (x,), x.shape, DType.i64, (tile.axis % len(x.shape), tile.descending))
            case nodes.Take():
                x, at = self.tile(tile.x), self.tile(tile.indices)
                axis = tile.axis % len(x.shape)
                shape = tuple(
                    a if d == axis else broadcast_extent(a, e) for d, (a, e) in enumerate(zip(at.shape, x.shape, strict=True))
                )
                return self.value("take", (x, at), shape, x.dtype, axis)
            case nodes.Gemm():
                return self.gemm(tile)
            case _:
                return self.view(tile)

    def load(self, tile: nodes.Load) -> Value:
        axes, shape = self.region(tile.region)
        loaded = self.value(
            "load", (), shape, self.tensors[tile.tensor].dtype, LoadData(tile.tensor, axes, tile.pad, tile.level)
        )
        if self.roots[tile.tensor] in self.written_too:
            loaded.kept = True
            self.block.effects.append(MaterializeEffect(loaded))
        return loaded

    def region(self, region: tuple[nodes.Axis, ...]) -> tuple[tuple[Access, ...], tuple[Poly, ...]]:
        """The accesses of a region and the shape of its tile: picked axes first, then the spans."""
        axes: list[Access] = []
        picked: tuple[Poly, ...] = ()
        spans: list[Poly] = []
        for axis in region:
            if isinstance(axis, nodes.Span):
                axes.append(SpanAccess(self.index(axis.start), self.index(axis.extent), self.index(axis.step)))
                spans.append(self.index(axis.extent))
            elif isinstance(axis, nodes.At):
                axes.append(AtAccess(self.index(axis.index)))
            else:
                indices = self.typed(self.tile(axis.indices), DType.i64)
                picked = broadcast(picked, indices.shape)
                axes.append(PickAccess(indices))
        return tuple(axes), (*picked, *spans)

    def binary(self, tile: nodes.Binary) -> Value:
        a, b = self.tile(tile.a), self.tile(tile.b)
        a, b = self.typed(a, None if b.weak else b.dtype), self.typed(b, None if a.weak else a.dtype)
        if a.dtype is not b.dtype:
            raise SketchError(f"{tile.op} of {a.dtype} and {b.dtype}: cast one of them", line=tile.line)
        dtype = DType.bool if tile.op in _COMPARE else a.dtype
        return self.value("binary", (a, b), broadcast(a.shape, b.shape), dtype, tile.op)

    def where(self, condition: Value, a: Value, b: Value) -> Value:
        condition = self.typed(condition, DType.bool)
        a, b = self.typed(a, None if b.weak else b.dtype), self.typed(b, None if a.weak else a.dtype)
        return self.value("where", (condition, a, b), broadcast(broadcast(condition.shape, a.shape), b.shape), a.dtype)

    def stack(self, tile: nodes.Stack) -> Value:
        """Choices by position; each of them knows how many axes lie behind the one along which it chooses (stacks.py)."""
        parts = [self.typed(self.tile(part), None) for part in tile.tiles]
        shape, count, dtype = parts[0].shape, poly(len(parts)), parts[0].dtype
        behind = len(shape) - tile.axis
        which = self.value("iota", (), (count,), DType.i64)
        for _ in range(behind):
            which = self.value("unsqueeze", (which,), (*which.shape, poly(1)), DType.i64, len(which.shape))
        one, whole = (*shape[: tile.axis], poly(1), *shape[tile.axis :]), (*shape[: tile.axis], count, *shape[tile.axis :])
        rows = [self.value("unsqueeze", (part,), one, dtype, tile.axis) for part in parts]
        made = rows[-1]
        for k in reversed(range(len(rows) - 1)):
            here = self.value("binary", (which, self.number(k, DType.i64)), which.shape, DType.bool, "le")
            made = self.value("where", (here, rows[k], made), whole, dtype, behind)
        return made

    def reduce(self, op: str, x: Value, axes: tuple[int, ...]) -> Value:
        chosen = tuple(sorted(axis % len(x.shape) for axis in axes)) if x.shape else ()
        shape = tuple(poly(1) if d in chosen else extent for d, extent in enumerate(x.shape))
        if op in ("any", "all") and x.dtype is not DType.bool:
            x = self.value("cast", (x,), x.shape, DType.bool)
        if not chosen:
            return x
        return self.value("reduce", (x,), shape, x.dtype, (op, chosen))

    def arg_reduce(self, op: str, x: Value, axis: int) -> Value:
        """First position of the extreme: the smallest position whose element equals it (or is NaN, when there is one)."""
        axis %= len(x.shape)
        extent = x.shape[axis]
        best = self.reduce(op, x, (axis,))
        hit = self.value("binary", (x, best), x.shape, DType.bool, "eq")
        if x.dtype in (DType.f64, DType.f32, DType.f16, DType.bf16):
            # best is NaN only if an element is: then only the NaN elements differ from themselves, and nothing equals best
            unordered = self.value("unary", (x,), x.shape, DType.bool, "isnan")
            hit = self.value("binary", (hit, unordered), x.shape, DType.bool, "logical_or")
        small = self.ranges.nonnegative(poly(2**31 - 2) - extent)
        kind, limit = (DType.i32, 2**31 - 1) if small and extent.constant is not None else (DType.i64, 2**63 - 1)
        position: Value = self.value("iota", (), (extent,), DType.i64)
        if kind is DType.i32:
            position = self.value("cast", (position,), (extent,), kind)
        for _ in range(len(x.shape) - 1 - axis):
            position = self.value("unsqueeze", (position,), (*position.shape, poly(1)), kind, len(position.shape))
        first = self.reduce("min", self.where(hit, position, self.number(limit, kind)), (axis,))
        return first if kind is DType.i64 else self.value("cast", (first,), first.shape, DType.i64)

    def gemm(self, tile: nodes.Gemm) -> Value:
        a, b = self.tile(tile.a), self.tile(tile.b)
        acc = self.typed(self.tile(tile.acc), None) if tile.acc is not None else None
        if acc is not None:
            dtype = acc.dtype
        elif a.dtype in (DType.f32, DType.f16, DType.bf16):
            dtype = DType.f32
        else:
            dtype = DType.f64 if a.dtype is DType.f64 else DType.i32
        shape = (*a.shape[:-1], b.shape[-1])
        if acc is not None and len(shape) > 2:
            return self.value("binary", (acc, self.value("gemm", (a, b), shape, dtype)), shape, dtype, "add")
        args = (a, b) if acc is None else (a, b, acc)
        return self.value("gemm", args, shape, dtype)

    def view(self, tile: nodes.Tile) -> Value:
        x = self.typed(self.tile(tile.x), None)  # type: ignore[union-attr]
        one = poly(1)
        match tile:
            case nodes.Permute():
                order = tuple(axis % len(x.shape) for axis in tile.order)
                return self.value("permute", (x,), tuple(x.shape[a] for a in order), x.dtype, order)
            case nodes.Reshape():
                return self.value("reshape", (x,), tuple(self.index(i) for i in tile.shape), x.dtype)
            case nodes.Squeeze():
                axis = tile.axis % len(x.shape)
                return self.value("squeeze", (x,), x.shape[:axis] + x.shape[axis + 1 :], x.dtype, axis)
            case nodes.Unsqueeze():
                axis = tile.axis % (len(x.shape) + 1)
                return self.value("unsqueeze", (x,), (*x.shape[:axis], one, *x.shape[axis:]), x.dtype, axis)
            case nodes.Expand():
                return self.value("expand", (x,), tuple(self.index(i) for i in tile.shape), x.dtype)
            case nodes.Part():
                axes, shape = self.region(tile.region)
                return self.value("part", (x,), shape, x.dtype, axes)
        raise SketchError(f"{type(tile).__name__} is not a tile")


_WORDS = """
alignas auto bool break case catch char class const continue default delete do double else enum exp explicit
extern false float for friend goto if inline int long max min namespace new nullptr operator or and not xor
private protected public register return short signed sizeof static struct switch template this throw true try
typedef union unsigned using virtual void volatile while threads y0 y1 j0 j1 jn yn main signal log div abs std
lane block running scratch stream inside beyond
"""
RESERVED = frozenset(_WORDS.split())
"""C++ words and names of the C library that a sketch may well use for a tile or a loop variable."""


def broadcast_extent(a: Poly, b: Poly) -> Poly:
    """NumPy's rule for one axis."""
    return b if a.constant == 1 else a


def broadcast(a: tuple[Poly, ...], b: tuple[Poly, ...]) -> tuple[Poly, ...]:
    """NumPy's rule for two shapes."""
    rank = max(len(a), len(b))
    one = (poly(1),)
    left, right = one * (rank - len(a)) + a, one * (rank - len(b)) + b
    return tuple(broadcast_extent(x, y) for x, y in zip(left, right, strict=True))


def _tensors_used(body: tuple[nodes.Statement, ...], loaded: set[str], stored: set[str]) -> None:
    for statement in body:
        match statement:
            case nodes.Assign():
                loaded |= _tensors_loaded(statement.value)
            case nodes.Store():
                stored.add(statement.tensor)
                loaded |= _tensors_loaded(statement.value)
                loaded |= set().union(*(_tensors_loaded(a.indices) for a in statement.region if isinstance(a, nodes.Pick)))
            case nodes.For():
                _tensors_used(statement.body, loaded, stored)


def _tensors_loaded(tile: object) -> set[str]:
    return {node.tensor for node in walk(tile) if isinstance(node, nodes.Load)}


def walk(tile: object) -> list[object]:
    """All nodes of an expression, those in regions included."""
    if isinstance(tile, tuple):
        return [node for item in tile for node in walk(item)]
    if not hasattr(tile, "__dataclass_fields__"):
        return []
    return [tile, *(node for name in tile.__dataclass_fields__ for node in walk(getattr(tile, name)))]


def _steps(loop: nodes.For, builder: GraphBuilder) -> int | None:
    """Elementwise steps in one iteration if the body is nothing but such (inner loops of known length multiplied in), else None."""
    steps = 0
    for statement in loop.body:
        match statement:
            case nodes.Assign():
                parts = [n for n in walk(statement.value) if isinstance(n, nodes.Tile)]
                if not all(isinstance(n, _CHEAP) for n in parts):
                    return None
                steps += 1 if any(isinstance(n, nodes.Load) for n in parts) else 0
            case nodes.For():
                start, stop, step = (from_index(i, builder.sizes) for i in (statement.start, statement.stop, statement.step))
                if step.constant is None or statement.kind != "range":
                    return None
                trips = combine("//", stop - start + step - 1, step).constant
                inner = _steps(statement, builder)
                if trips is None or inner is None:
                    return None
                steps += trips * inner
            case nodes.Store():
                return None
    return max(steps, 1)
