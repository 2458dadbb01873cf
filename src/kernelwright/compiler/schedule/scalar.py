"""Scalar expressions: what one element of a kernel's output is, written over the axes of its iteration space.

`Arena` makes expressions and keeps one object for each distinct one, so identity is equality and common subexpressions are shared.
`Tracer` turns values into expressions: it inlines views, pointwise maths and reductions down to the tensors in memory. What
cannot be inlined at the coordinates asked for raises `MustMaterialize`, and the partition then gives that value a tensor of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.index_maps import (
    Datum,
    IndexExpr,
    LoopAxis,
    axes_in,
    axis_index,
    certainly_below,
    certainly_natural,
    certainly_outside,
    constant_index,
    data_of,
    linear,
    only_axis,
    substituted,
)
from kernelwright.compiler.graph.symbolic import Extent, Size, size_poly
from kernelwright.core.dtypes import FLOATS, HALVES
from kernelwright.sketch.nodes import DType


@dataclass(frozen=True, eq=False)
class Expr:
    """`kind` is const, index, access, apply, cast, bitcast, reduce, arg, scan or slot; `data` is what belongs to the kind:
    the number; the Coord; (tensor, view shape, coords); the operation; –; –; (op, axes); (op, axis); (op, axis, reverse,
    exclusive); (value, coords). `free` are the axes that it depends on, `number` says when it was made."""

    kind: str
    data: Any
    args: tuple[Expr, ...]
    dtype: DType
    free: frozenset[LoopAxis]
    number: int
    value: v.Value | None = None


IndexRewrite = Callable[[IndexExpr, Callable[[Expr], Expr]], IndexExpr]


@dataclass
class Arena:
    """Makes expressions; the same request gives the same object."""

    table: dict[Any, Expr] = field(default_factory=dict)

    def _make(
        self,
        kind: str,
        data: Any,
        args: tuple[Expr, ...],
        dtype: DType,
        free: frozenset[LoopAxis],
        value: v.Value | None = None,
    ) -> Expr:
        key = (kind, data, args, dtype)
        found = self.table.get(key)
        if found is None:
            found = self.table[key] = Expr(kind, data, args, dtype, free, len(self.table), value)
        return found

    def const(self, value: float | int | bool, dtype: DType) -> Expr:
        key = ("nan",) if value != value else (type(value).__name__, value, str(value))  # 0.0, -0.0, 0 and False are different
        found = self.table.get((key, dtype))
        if found is None:
            found = self.table[(key, dtype)] = Expr("const", value, (), dtype, frozenset(), len(self.table))
        return found

    def number(self, value: float | int | bool | Size, dtype: DType) -> Expr:
        """A number, or one that depends on sizes, in a dtype."""
        if isinstance(value, Size):
            return self.cast(self.index(value.poly), dtype)
        return self.const(value, dtype)

    def index(self, index_expr: IndexExpr) -> Expr:
        if index_expr.constant is not None:
            return self.const(index_expr.constant, DType.i64)
        return self._make("index", index_expr, (), DType.i64, axes_in(index_expr))

    def access(self, tensor: str, shape: tuple[Extent, ...], coords: v.MultiIndex, dtype: DType) -> Expr:
        free = frozenset().union(*(axes_in(c) for c in coords)) if coords else frozenset()
        return self._make("access", (tensor, shape, coords), (), dtype, free)

    def apply(self, op: str, args: tuple[Expr, ...], dtype: DType) -> Expr:
        return self._make("apply", op, args, dtype, frozenset().union(*(a.free for a in args)))

    def cast(self, x: Expr, dtype: DType) -> Expr:
        if x.dtype == dtype:
            return x
        if x.kind == "const" and dtype in (DType.f32, DType.f64) and isinstance(x.data, int | float):
            return self.const(float(x.data), dtype)
        return self._make("cast", None, (x,), dtype, x.free)

    def bitcast(self, x: Expr, dtype: DType) -> Expr:
        return x if x.dtype == dtype else self._make("bitcast", None, (x,), dtype, x.free)

    def reduce(self, op: str, x: Expr, loop_axes: tuple[LoopAxis, ...], value: v.Value | None) -> Expr:
        """A reduction; axes that the operand does not depend on are reduced by arithmetic."""
        loop_axes = tuple(dict.fromkeys(loop_axes))
        inside = tuple(a for a in loop_axes if a in x.free)
        repeats: Extent = 1
        for loop_axis in loop_axes:
            repeats *= 1 if loop_axis in x.free else loop_axis.extent
        if inside:
            x = self._make("reduce", (op, inside), (x,), x.dtype, x.free - set(inside), value)
        if repeats != 1 and op in ("sum", "prod"):
            number = float(repeats) if x.dtype in FLOATS and isinstance(repeats, int) else repeats
            x = self.apply("mul" if op == "sum" else "pow", (x, self.number(number, x.dtype)), x.dtype)
        return x

    def arg(self, op: str, x: Expr, loop_axis: LoopAxis, value: v.Value | None) -> Expr:
        if loop_axis not in x.free:
            return self.const(0, DType.i64)
        return self._make("arg", (op, loop_axis), (x,), DType.i64, x.free - {loop_axis}, value)

    def scan(self, op: str, x: Expr, loop_axis: LoopAxis, reverse: bool, exclusive: bool, value: v.Value | None) -> Expr:
        return self._make("scan", (op, loop_axis, reverse, exclusive), (x,), x.dtype, x.free | {loop_axis}, value)

    def slot(self, value: v.Value, coords: v.MultiIndex, dtype: DType) -> Expr:
        free = frozenset().union(*(axes_in(c) for c in coords)) if coords else frozenset()
        return self._make("slot", (value, coords), (), dtype, free, value)

    def rewrite(
        self,
        roots: list[Expr],
        index_expr: IndexRewrite,
        renamed: Callable[[LoopAxis], tuple[LoopAxis, ...]],
        access: Callable[[Any], Any] | None = None,
    ) -> list[Expr]:
        """The roots with every coordinate passed through `coord` (which gets a function for the expressions inside run-time
        indices), bound axes renamed (one may become several), and accesses seen through another view by `access`."""
        done: dict[Expr, Expr] = {}

        def walk(e: Expr) -> Expr:
            if e not in done:
                done[e] = step(e)
            return done[e]

        def step(e: Expr) -> Expr:
            if e.kind == "const":
                return e
            if e.kind == "index":
                return self.index(index_expr(e.data, walk))
            if e.kind == "access":
                tensor, shape, coords = access(e.data) if access else e.data
                return self.access(tensor, shape, tuple(index_expr(c, walk) for c in coords), e.dtype)
            if e.kind == "slot":
                return self.slot(e.data[0], tuple(index_expr(c, walk) for c in e.data[1]), e.dtype)
            args = tuple(map(walk, e.args))
            if e.kind == "apply":
                return self.apply(e.data, args, e.dtype)
            if e.kind == "cast":
                return self.cast(args[0], e.dtype)
            if e.kind == "bitcast":
                return self.bitcast(args[0], e.dtype)
            if e.kind == "reduce":
                return self.reduce(e.data[0], args[0], tuple(a for old in e.data[1] for a in renamed(old)), e.value)
            if e.kind == "arg":
                return self.arg(e.data[0], args[0], renamed(e.data[1])[0], e.value)
            return self.scan(e.data[0], args[0], renamed(e.data[1])[0], e.data[2], e.data[3], e.value)

        return [walk(r) for r in roots]

    def substitute(self, roots: list[Expr], mapping: Mapping[LoopAxis, IndexExpr]) -> list[Expr]:
        """The roots with axes replaced by coordinates; a reduced axis may be renamed or split in several."""

        def renamed(loop_axis: LoopAxis) -> tuple[LoopAxis, ...]:
            return (
                tuple(t for t, _ in linear(mapping[loop_axis]) if isinstance(t, LoopAxis))
                if loop_axis in mapping
                else (loop_axis,)
            )

        return self.rewrite(roots, lambda c, walk: substituted(c, mapping, walk), renamed)


def walk_all(roots: list[Expr]) -> list[Expr]:
    """All expressions below the roots, operands first; expressions inside run-time indices are included."""
    order: list[Expr] = []
    seen: set[Expr] = set()

    def visit(e: Expr) -> None:
        if e in seen:
            return
        seen.add(e)
        for c in indices_of(e):
            for d in data_of(c):
                visit(d.expression)
        for a in e.args:
            visit(a)
        order.append(e)

    for r in roots:
        visit(r)
    return order


def indices_of(e: Expr) -> v.MultiIndex:
    """The coordinates that an expression contains itself."""
    if e.kind == "index":
        return (e.data,)
    if e.kind == "access":
        return tuple(e.data[2])
    return tuple(e.data[1]) if e.kind == "slot" else ()


MOST_REPEATS = 8
"""Copies of one reduction at different coordinates in one kernel. Sums over rows and columns in turn would double with every round."""


@dataclass
class Tracer:
    """Values to expressions, over tensors that are in memory (`placed`: value → tensor name) and slots filled from outside."""

    arena: Arena
    placed: Mapping[int, str]
    slots: frozenset[int] = frozenset()
    memo: dict[tuple[int, v.MultiIndex], Expr] = field(default_factory=dict)
    pinned: frozenset[int] = frozenset()  # values to be computed here although they are placed: the roots themselves
    repeated: dict[int, int] = field(default_factory=dict)  # how many copies of a reduction have been traced

    def at(self, value: v.Value, coords: v.MultiIndex) -> Expr:
        """The element of a value at coordinates, in its compute dtype."""
        key = (id(value), coords)
        if key not in self.memo:
            self.memo[key] = self._at(value, coords)
        return self.memo[key]

    def _at(self, value: v.Value, coords: v.MultiIndex) -> Expr:
        if id(value) in self.slots:
            return self.arena.slot(value, coords, value.dtype.computed)
        if id(value) in self.placed and id(value) not in self.pinned:
            return self._load(self.placed[id(value)], value, coords)
        handler = getattr(self, f"_{type(value).__name__.lower()}", None)
        if handler is None:
            raise v.MustMaterialize(value)
        expr: Expr = handler(value, coords)
        return expr

    def _load(self, tensor: str, value: v.Value, coords: v.MultiIndex) -> Expr:
        access = self.arena.access(tensor, value.shape, coords, value.dtype)
        return self.arena.cast(access, value.dtype.computed)

    def _leaf(self, value: v.Leaf, coords: v.MultiIndex) -> Expr:
        return self._load(value.tensor, value, coords)

    def _const(self, value: v.Const, coords: v.MultiIndex) -> Expr:
        return self.arena.number(value.value, value.dtype.computed)

    def _position(self, value: v.Position, coords: v.MultiIndex) -> Expr:
        return self.arena.cast(self.arena.index(coords[value.axis]), value.dtype.computed)

    def _map(self, value: v.Map, coords: v.MultiIndex) -> Expr:
        args = tuple(self.at(a, aligned(coords, value.shape, a.shape)) for a in value.args)
        dtype = value.dtype.computed
        if value.op == "cast":
            x = args[0]
            if value.dtype in HALVES:  # an explicit conversion rounds; maths then goes on in f32
                return x if _already(x, value.dtype) else self.arena.cast(self.arena.cast(x, value.dtype), DType.f32)
            return self.arena.cast(x, dtype)
        if value.op == "bitcast":
            return self.arena.bitcast(args[0], dtype)
        if value.compute is not None:
            want = value.compute.computed
            first = 1 if value.op == "where" else 0
            args = args[:first] + tuple(self.arena.cast(a, want) for a in args[first:])
        return self.arena.apply(value.op, args, dtype)

    def _view(self, value: v.View, coords: v.MultiIndex) -> Expr:
        source = value.source
        inner = value.move(coords)
        if value.fill is None:
            return self.at(source, inner)
        outside: list[tuple[IndexExpr, str, Extent]] = []
        for c, extent in zip(inner, source.shape, strict=True):
            if certainly_outside(c, extent):
                return self.arena.const(value.fill, value.dtype.computed)
            outside += [(c, "ge", 0)] if not certainly_natural(c) else []
            outside += [(c, "lt", extent)] if not certainly_below(c, extent) else []
        x = self.at(source, inner)
        if not outside:
            return x
        inside: Expr | None = None
        for c, op, bound in outside:
            test = self.arena.apply(op, (self.arena.index(c), self.arena.number(bound, DType.i64)), DType.bool)
            inside = test if inside is None else self.arena.apply("logical_and", (inside, test), DType.bool)
        assert inside is not None
        return self.arena.apply("where", (inside, x, self.arena.const(value.fill, x.dtype)), x.dtype)

    def _reduce(self, value: v.Reduce, coords: v.MultiIndex) -> Expr:
        self.repeated[id(value)] = self.repeated.get(id(value), 0) + 1
        if self.repeated[id(value)] > MOST_REPEATS and id(value) not in self.pinned:
            raise v.MustMaterialize(value)
        rest = list(coords)
        inner: list[IndexExpr] = []
        loop_axes: list[LoopAxis] = []
        for axis, extent in enumerate(value.source.shape):
            if axis in value.axes:
                if extent != 1:
                    loop_axes.append(LoopAxis(extent))
                inner.append(axis_index(loop_axes[-1]) if extent != 1 else constant_index(0))
            else:
                inner.append(rest.pop(0))
        body = self.at(value.source, tuple(inner))
        if value.dtype != value.source.dtype and value.op in ("sum", "prod"):
            body = self.arena.cast(body, value.dtype.computed)
        return self.arena.reduce(value.op, body, tuple(loop_axes), value)

    def _argreduce(self, value: v.ArgReduce, coords: v.MultiIndex) -> Expr:
        loop_axis = LoopAxis(value.source.shape[value.axis], whole=True)
        inner = (*coords[: value.axis], axis_index(loop_axis), *coords[value.axis :])
        return self.arena.arg(value.op, self.at(value.source, inner), loop_axis, value)

    def _scan(self, value: v.Scan, coords: v.MultiIndex) -> Expr:
        loop_axis = only_axis(coords[value.axis])
        if loop_axis is None or loop_axis.extent != value.shape[value.axis]:
            raise v.MustMaterialize(value)
        if any(loop_axis in axes_in(c) for i, c in enumerate(coords) if i != value.axis):
            raise v.MustMaterialize(value)
        body = self.at(value.source, coords)
        return self.arena.scan(value.op, body, loop_axis, value.reverse, value.exclusive, value)

    def _concat(self, value: v.Concat, coords: v.MultiIndex) -> Expr:
        position = coords[value.axis]
        start: Extent = 0
        chosen: Expr | None = None
        for part in value.parts:
            extent = part.shape[value.axis]
            stop = start + extent
            if extent != 0 and not certainly_outside(position - size_poly(start), extent):  # this part can be met
                within = constant_index(0) if extent == 1 else position - size_poly(start)  # of a stack: no position to look at
                inner = (*coords[: value.axis], within, *coords[value.axis + 1 :])
                x = self.at(part, inner)
                if chosen is None:
                    chosen = x
                else:
                    here = self.arena.apply("ge", (self.arena.index(position), self.arena.number(start, DType.i64)), DType.bool)
                    chosen = self.arena.apply("where", (here, x, chosen), x.dtype)
            start = stop
        assert chosen is not None
        return chosen

    def _gather(self, value: v.Gather, coords: v.MultiIndex) -> Expr:
        return self.at(value.source, self.positions(value, coords))

    def positions(self, value: v.Gather, coords: v.MultiIndex) -> v.MultiIndex:
        """Where in its source a lookup reads."""

        def read(which: int, at: v.MultiIndex, extent: Extent) -> IndexExpr:
            index = self.arena.cast(self.at(value.indices[which], at), DType.i64)
            zero = self.arena.const(0, DType.i64)
            negative = self.arena.apply("lt", (index, zero), DType.bool)
            wrapped = self.arena.apply("add", (index, self.arena.number(extent, DType.i64)), DType.i64)
            return axis_index(Datum(self.arena.apply("where", (negative, wrapped, index), DType.i64), extent))

        return value.build(coords, read)


def aligned(coords: v.MultiIndex, shape: tuple[Extent, ...], source: tuple[Extent, ...]) -> v.MultiIndex:
    """Coordinates of a broadcast source: axes align at the right, extent 1 stands still."""
    skipped = len(shape) - len(source)
    return tuple(constant_index(0) if extent == 1 else c for c, extent in zip(coords[skipped:], source, strict=True))


def _already(x: Expr, dtype: DType) -> bool:
    return x.kind == "cast" and x.args[0].dtype == dtype
