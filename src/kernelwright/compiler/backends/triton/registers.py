"""Tiles that live in registers: reductions, products, scans and sorts, each made once where it is first needed.

A reduction over more than a block holds walks over it in a loop and accumulates element by element; only the last step crosses
threads. A product's inner dimension is walked in blocks of `tl.dot`; products with a side of extent 1 are sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernelwright.compiler.backends.triton import op_table
from kernelwright.compiler.backends.triton.elements import Elements
from kernelwright.compiler.lower.tile_programs.elements import Tile, extents, index_at
from kernelwright.compiler.lower.tile_programs.lines import Expr, Name
from kernelwright.compiler.lower.tile_programs.survey import DOT_TYPES
from kernelwright.compiler.lower.tile_values import Value
from kernelwright.core.dtypes import FLOATS
from kernelwright.core.errors import SketchError
from kernelwright.core.operations import neutral
from kernelwright.sketch.index import Poly, combine, poly
from kernelwright.sketch.nodes import DType

REDUCTIONS = {
    "sum": "tl.sum({0}, axis={1})",
    "prod": "tl.reduce({0}, {1}, _product)",
    "max": "tl.max({0}, axis={1})",
    "min": "tl.min({0}, axis={1})",
}
STEPS = {"sum": "{0} + {1}", "prod": "{0} * {1}", "max": "maximum", "min": "minimum"}


class Registers(Elements):
    """Makes tiles in registers."""

    in_place: dict[int, tuple[int, ...]]
    """Products by the carried tile to which they are added."""

    def walks(self, dims: Sequence[str]) -> Callable[[], None]:
        """Opens a loop over each of these dimensions; the function that is returned closes them."""
        heads = []
        for name in dims:
            dim = self.out.dims[name]
            size = self.out.size(name)
            variable = self.out.fresh(f"{self.out.label(name)}_start")
            text = self.out.fresh(f"offs_{self.out.label(name)}")
            heads.append(f"for {variable} in range(0, {self.out.place(poly(dim.extent), ())}, {size}):")
            self.out.open()
            self.out.line(f"{text} = {variable} + tl.arange(0, {size})")
            self.out.names[name] = Name(text, (name,), self.out.depth)

        def close() -> None:
            while heads:
                self.out.close(heads.pop())

        return close

    def _keep(self, text: str, value: Value, axes: tuple[str, ...], dims: tuple[str, ...]) -> Tile:
        name = self.out.fresh(
            value.name or {"reduce": "total", "gemm": "product", "scan": "running", "argsort": "order"}.get(value.op, "tile")
        )
        self.out.line(f"{name} = {text}")
        return Tile(Expr(name, dims, value.dtype, self.out.depth), axes, extents(value))

    def own(self, axes: Sequence[str]) -> tuple[str, ...]:
        """The dimensions of a tile in registers."""
        return self.out.sorted([*(dim for dim in axes if dim), *self.lanes])

    def loaded(self, value: Value) -> Tile:
        """A load of a tensor that is also written: read now."""
        axes = self.axes_of(value)
        dims = self.own(axes)
        expr = self.load(value, index_at(axes))
        return self._keep(self.out.filled(expr, dims) if dims else expr.text, value, axes, dims)

    # ------------------------------------------------------------ reductions

    def reduce(self, value: Value) -> Tile:
        op, _ = value.data
        x = value.args[0]
        axes, own, index = self.reduced_axes(value)
        result = self.own(axes)
        dims = self.out.sorted([*result, *own])
        start, dtype = neutral(op, value.dtype), value.dtype
        if op in ("any", "all"):
            op, dtype = ("max", DType.i32) if op == "any" else ("min", DType.i32)
        walked = [dim for dim in own if self.out.dims[dim].walk == "loop"]
        if not walked:
            expr = self._guarded(self._counted(self.of(x, index), dtype), own, start, dtype)
            text, left = self._reduced(op, self.out.filled(expr, dims), dims, own, dtype), result
        else:
            total = self.out.fresh(value.name or "total")
            self.out.line(f"{total} = tl.full({self.out.sizes(dims)}, {op_table.number(start, dtype)}, {op_table.TYPE[dtype]})")
            close = self.walks(walked)
            expr = self._guarded(self._counted(self.of(x, index), dtype), own, start, dtype)
            held = Expr(total, dims, dtype, self.out.depth)
            step = STEPS[op] if "{" in STEPS[op] else op_table.binary(STEPS[op], "{0}", "{1}", dtype)
            self.out.line(f"{total} = {self.out.filled(self.out.apply(step, [held, expr], dtype), dims)}")
            close()
            text, left = self._reduced(op, total, dims, own, dtype), result
        if value.dtype is DType.bool:
            text = f"({text}) != 0"
        return self._keep(text, value, axes, left)

    def _counted(self, expr: Expr, dtype: DType) -> Expr:
        return self.out.apply("{0}.to(tl.int32)", [self.typed(expr)], dtype) if expr.dtype is DType.bool else expr

    def _guarded(self, expr: Expr, dims: Sequence[str], start: float | int | bool, dtype: DType) -> Expr:
        """Positions beyond the extent count as the neutral element."""
        tests = self.guards(dims)
        if not tests:
            return expr
        every = self.out.sorted([*expr.dims, *(dim for p in tests for dim in self.out.dims_of(p))])
        level = max(expr.level, *(self.out.level_of(p) for p in tests))
        text = f"tl.where({self.mask(tests, every)}, {self.out.shaped(expr, every)}, {op_table.number(start, dtype)})"
        return self.out.named(Expr(text, every, dtype, level))

    def _reduced(self, op: str, text: str, dims: tuple[str, ...], own: Sequence[str], dtype: DType) -> str:
        """Reduces over the dimensions `own` of a tensor over `dims`."""
        if dtype in FLOATS and op in ("max", "min"):
            pattern = f"tl.reduce({{0}}, {{1}}, _{op}imum)"
        else:
            pattern = REDUCTIONS[op]
        left = list(dims)
        for dim in sorted(own, key=lambda name: -left.index(name)):
            text = pattern.format(text, left.index(dim))
            left.remove(dim)
        return f"({text}).to({op_table.TYPE[dtype]})" if dtype in (DType.i8, DType.i16, DType.u8) else text

    # ------------------------------------------------------------ products

    def gemm(self, value: Value) -> Tile:
        a, b, *rest = value.args
        axes, inner = self.product_axes(value)
        self.distinct(axes, inner)
        *batch, rows, columns = axes
        dims = self.own(axes)
        dot = bool(rows and columns and inner) and a.dtype in DOT_TYPES and not self.lanes and all(batch)
        name = start = self._filled_start(value, rest, axes, dims)
        if not (rest and rest[0].id in self.in_place.get(value.id, ()) and start.isidentifier()):
            name = self.out.fresh(value.name or "product")
            self.out.line(f"{name} = {start}")
        walked = self.walks([inner] if inner and self.out.dims[inner].walk == "loop" else [])
        left = self._operand(a, (*batch, rows, inner), inner)
        right = self._operand(b, (*batch, inner, columns), inner)
        if dot:
            texts = self._matrix(left, (*batch, rows, inner)), self._matrix(right, (*batch, inner, columns))
            precision = ', input_precision="ieee"' if a.dtype is DType.f32 else ""
            kind = f", out_dtype={op_table.TYPE[value.dtype]}" if value.dtype in (DType.f64, DType.i32) else ""
            if axes == dims and value.dtype in (DType.f32, DType.i32, DType.f64):
                self.out.line(f"{name} = tl.dot({texts[0]}, {texts[1]}, {name}{precision}{kind})")
            else:
                text = self._transposed(f"tl.dot({texts[0]}, {texts[1]}{precision}{kind})", axes, dims)
                self.out.line(f"{name} = {name} + ({text}).to({op_table.TYPE[value.dtype]})")
        else:
            wide = [self.out.apply(f"{{0}}.to({op_table.TYPE[value.dtype]})", [side], value.dtype) for side in (left, right)]
            product = self.out.apply("{0} * {1}", wide, value.dtype)
            if inner:
                full = self.out.sorted([*dims, inner])
                text = f"tl.sum({self.out.filled(product, full)}, axis={full.index(inner)})"
            else:
                text = self.out.filled(product, dims)
            self.out.line(f"{name} = {name} + {text}")
        walked()
        return Tile(Expr(name, dims, value.dtype, self.out.depth), axes, extents(value))

    def _filled_start(self, value: Value, rest: Sequence[Value], axes: tuple[str, ...], dims: tuple[str, ...]) -> str:
        zero = Expr(op_table.number(0, value.dtype), (), value.dtype, 0)
        first = self.of(rest[0], index_at(axes)) if rest else zero
        return self.out.filled(first, dims) if dims else self.typed(first).text

    def _operand(self, value: Value, axes: tuple[str, ...], inner: str) -> Expr:
        expr = self.typed(self.of(value, index_at(axes)))
        return self._guarded(expr, [inner] if inner and not self._masked(value) else [], 0, value.dtype)

    def _masked(self, value: Value) -> bool:
        """A load gives zeros beyond the extent already, through views as well."""
        while value.op in ("permute", "squeeze", "unsqueeze", "reshape", "part"):
            value = value.args[0]
        return value.op == "load" and not value.kept and not value.data.pad

    def _matrix(self, expr: Expr, order: tuple[str, ...]) -> str:
        """An operand of `tl.dot` with its axes in this order."""
        dims = self.out.sorted(order)
        text = self.out.named(Expr(self.out.filled(expr, dims), dims, expr.dtype, self.out.depth)).text
        return self._transposed(text, dims, order)

    @staticmethod
    def _transposed(text: str, have: tuple[str, ...], want: tuple[str, ...]) -> str:
        if have == want:
            return text
        return f"tl.trans({text})" if len(want) == 2 else f"tl.permute({text}, {[have.index(dim) for dim in want]})"

    # ------------------------------------------------------------ order

    def scan(self, value: Value) -> Tile:
        op, axis, reverse, exclusive = value.data
        x = value.args[0]
        axes = self.axes_of(value)
        dims = self.own(axes)
        index = index_at(axes)
        start = -float("inf") if op == "logsumexp" else neutral(op, value.dtype)
        if not axes[axis]:
            expr = Expr(op_table.number(start, value.dtype), (), value.dtype, 0) if exclusive else self.of(x, index)
            return self._keep(self.out.filled(expr, dims) if dims else self.typed(expr).text, value, axes, dims)
        own = axes[axis]
        if exclusive:
            # The neighbour, or at the end the element itself, which is replaced below: nothing outside is read.
            last = poly(self.out.dims[own].extent) - 1
            shift = combine("min", poly(own) + 1, last) if reverse else combine("max", poly(own) - 1, poly(0))
            expr = self.of(x, (*index[:axis], shift, *index[axis + 1 :]))
            inside = poly(self.out.dims[own].extent) - 2 - poly(own) if reverse else poly(own) - 1
            expr = self._chosen(expr, inside, start, value.dtype)
        else:
            expr = self.of(x, index)
        expr = self._guarded(expr, [own], start, value.dtype)
        place = dims.index(own)
        text = self.out.filled(expr, dims)
        direction = ", reverse=True" if reverse else ""
        if op == "sum":
            text = f"tl.cumsum({text}, axis={place}{direction})"
        elif op == "prod":
            text = f"tl.cumprod({text}, axis={place}{direction})"
        else:
            function = "_log_sum_exp" if op == "logsumexp" else f"_{op}imum"
            text = f"tl.associative_scan({text}, {place}, {function}{direction})"
        return self._keep(f"({text}).to({op_table.TYPE[value.dtype]})", value, axes, dims)

    def _chosen(self, expr: Expr, test: Poly, start: float | int | bool, dtype: DType) -> Expr:
        every = self.out.sorted([*expr.dims, *self.out.dims_of(test)])
        text = f"tl.where({self.out.condition(test, every)}, {self.out.shaped(expr, every)}, {op_table.number(start, dtype)})"
        return self.out.named(Expr(text, every, dtype, max(expr.level, self.out.level_of(test))))

    def argsort(self, value: Value) -> Tile:
        """Sorts integers that hold the order of an element above its position: so the sort is stable and gives positions."""
        axis, descending = value.data
        x = value.args[0]
        if x.dtype in (DType.f64, DType.i64):
            raise SketchError(f"Triton sorts 32-bit elements, not {x.dtype}")
        axes = self.axes_of(value)
        dims = self.own(axes)
        own = axes[axis]
        if not own:
            return self._keep(
                f"tl.zeros({self.out.sizes(dims)}, tl.int64)" if dims else "tl.full([], 0, tl.int64)", value, axes, dims
            )
        if dims[-1] != own:
            raise SketchError("Triton sorts along the last axis of a block")
        expr = self.typed(self.of(x, index_at(axes)))
        wide = "{0}.to(tl.float32)" if x.dtype in FLOATS else "{0}.to(tl.int32)"
        key = self.out.apply(f"_order({wide})" if x.dtype in FLOATS else wide, [expr], DType.i32)
        if descending:
            key = self.out.apply("~{0}", [key], DType.i32)
        place = self.out.index(poly(own))
        packed = self.out.apply("({0}.to(tl.int64) << 32) | {1}.to(tl.int64)", [key, place], DType.i64)
        packed = self._guarded(packed, [own], 2**63 - 1, DType.i64)
        return self._keep(f"tl.sort({self.out.filled(packed, dims)}) & 0xFFFFFFFF", value, axes, dims)
