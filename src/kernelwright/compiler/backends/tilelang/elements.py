"""A tile value at given positions as a TileLang expression of one element.

In: a value of the graph and an index for each of its axes. Out: an `Expr`. Triton's coder (compiler/backends/triton/tiles.py) owns
what both have in
common: views as index arithmetic, integers as polynomials, conditions. Here: reads of global memory, which TileLang itself pads with
zeros at the edges, and reads of tiles, which live in fragments and are copied to shared memory where another thread's part is read.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.compiler.backends.tilelang import op_table
from kernelwright.compiler.backends.tilelang.lines import ElementWriter
from kernelwright.compiler.backends.triton.lines import Expr, Name
from kernelwright.compiler.backends.triton.plan import Dim
from kernelwright.compiler.backends.triton.program import Program
from kernelwright.compiler.backends.triton.tiles import Index, Kept, TensorPlace, _single, fitting
from kernelwright.compiler.lower.tile_values import Value
from kernelwright.core.errors import SketchError
from kernelwright.sketch.index import Poly, poly, rejoined
from kernelwright.sketch.nodes import DType


class Elements(Program):
    """Makes expressions of one element."""

    out: ElementWriter
    shared: set[str]
    """Kept tiles that live in shared memory."""
    begins: dict[str, str]
    """Where the block begins along each dimension, as a text."""
    flags: set[str]
    """Kept tiles of truth values, which are held as integers."""
    walked: tuple[str, ...] = ()
    """Dimensions of the tile that is being filled."""
    reduced: dict[str, tuple[int, ...]]
    """Fragments that were reduced, and the shapes of the tiles they come from."""

    # ------------------------------------------------------------ dimensions

    def _declare(self, dim: Dim) -> None:
        self.out.dims[dim.name] = dim
        self.out.order[dim.name] = len(self.out.order)
        self.out.ranges.known[dim.name] = (poly(0), poly(dim.extent - 1))
        label = self.out.label(dim.name)
        start = self.grid_start(dim) if dim.walk == "grid" else "0"
        self.begins[dim.name] = start
        self.out.names[dim.name] = Name(label if start == "0" else f"({start} + {label})", (dim.name,), 0)

    # ------------------------------------------------------------ values

    def _make(self, value: Value, index: Index) -> Expr:
        place = self.register(value)
        if place is not None:
            return self._read(self.kept[place] if place in self.kept else self.heavy(value), index, value)
        if value.dtype in (DType.i64, DType.i32) and value.op in ("binary", "cast", "unary", "index", "iota"):
            p = self.integer(value, index)
            if p is not None:
                return self._whole(p, value.dtype)
        hint = value.name or "t"
        match value.op:
            case "const":
                return Expr(op_table.number(value.data, value.dtype), (), value.dtype, 0)
            case "load":
                return self._load(value, index)
            case "take":
                return self._take(value, index)
            case "unary":
                return self.out.apply(
                    op_table.unary(value.data, "{0}", value.args[0].dtype), [self.of(value.args[0], index)], value.dtype, hint
                )
            case "binary":
                return self._binary(value, index)
            case "where":
                test = self.of(value.args[0], fitting(value.args[0], index))
                if test.text in ("True", "False"):
                    chosen = value.args[1 if test.text == "True" else 2]
                    return self.of(chosen, fitting(chosen, index))
                parts = [test, *(self.of(arg, fitting(arg, index)) for arg in value.args[1:])]
                return self.out.apply("T.if_then_else({0}, {1}, {2})", parts, value.dtype, hint)
            case "cast":
                operand = self.of(value.args[0], index)
                return self.out.apply(op_table.cast("{0}", value.args[0].dtype, value.dtype), [operand], value.dtype, hint)
            case "bitcast":
                operand = self.of(value.args[0], index)
                return self.out.apply(f'T.reinterpret({{0}}, "{value.dtype.torch_name}")', [operand], value.dtype, hint)
            case "permute" | "squeeze" | "unsqueeze" | "expand" | "part" | "reshape":
                return self.of(value.args[0], self.viewed(value, index))
        raise SketchError(f"TileLang has no {value.op}")

    def of(self, value: Value, index: Index) -> Expr:
        expr = super().of(value, index)
        if value.dtype is DType.bool and expr.text in ("True", "False"):
            return Expr(expr.text, (), DType.bool, 0)
        return expr

    def truth(self, expr: Expr) -> str:
        """A text that can be stored."""
        return f"T.bool({expr.text})" if expr.text in ("True", "False") else expr.text

    def _typed(self, expr: Expr) -> Expr:
        return expr

    def _whole(self, p: Poly, dtype: DType) -> Expr:
        if p.constant is not None:
            return Expr(op_table.number(p.constant, dtype), (), dtype, 0)
        expr = self.out.index(p)
        text = f'T.cast({expr.text}, "int64")' if dtype is DType.i64 else expr.text
        return Expr(text, expr.dims, dtype, expr.level)

    def _binary(self, value: Value, index: Index) -> Expr:
        found = self._compared(value, index) or self._and(value, index)
        if found is not None:
            return found
        a, b = (self.of(arg, fitting(arg, index)) for arg in value.args)
        a, b = (Expr(self.truth(expr), expr.dims, expr.dtype, expr.level) for expr in (a, b))
        dtype, hint = value.args[0].dtype, value.name or "t"
        if value.data == "pow" and value.args[1].op == "const":
            short = self.out.named(a)
            text = op_table.small_power(short.text, value.args[1].data, dtype)
            if text is not None:
                return self.out.apply(text, [short], value.dtype, hint)
        return self.out.apply(op_table.binary(value.data, "{0}", "{1}", dtype), [a, b], value.dtype, hint)

    # ------------------------------------------------------------ tiles

    def _read(self, kept: Kept, index: Index, value: Value) -> Expr:
        """A kept tile: at its own dimensions in place, anywhere else through shared memory."""
        odd: dict[str, Poly] = {}
        for dim, extent, p in zip(kept.axes, kept.extents, (rejoined(p) for p in index), strict=True):
            if extent == 1 or not dim:
                continue
            if _single(p) != dim:
                odd[dim] = p
        if not odd:
            return self._element(kept, {}, kept.expr.dims)
        texts = {dim: self.out.place(p, ()) for dim, p in odd.items()}
        dims = [dim for dim in kept.expr.dims if dim not in odd]
        return self._element(kept, texts, self.out.sorted([*dims, *(d for p in odd.values() for d in self.out.dims_of(p))]))

    def _gather(self, kept: Kept, axis: int, at: Expr) -> Expr:
        own = kept.axes[axis]
        if own not in kept.expr.dims:
            return self._element(kept, {}, kept.expr.dims)
        rest = [dim for dim in kept.expr.dims if dim != own]
        return self._element(kept, {own: at.text}, self.out.sorted([*rest, *at.dims]))

    def _element(self, kept: Kept, texts: dict[str, str], dims: tuple[str, ...]) -> Expr:
        name = kept.expr.text
        if name not in self.shared and (texts or self._astride(kept)):
            name = self._exposed(kept)
        place = ", ".join(texts.get(dim) or self.out.label(dim) for dim in kept.expr.dims) or "0"
        text = f"{name}[{place}]"
        return Expr(f"({text} != 0)" if kept.expr.text in self.flags else text, dims, kept.expr.dtype, self.out.depth)

    def _astride(self, kept: Kept) -> bool:
        """Whether a fragment is repeated along axes that do not suit the threads which hold it: another than the last, or several
        that are not those it was reduced over. TileLang would have a thread do the whole of such an axis (a mean of [2, 8] in a tile
        of [2, 64, 8] made 128 registers of 8, and 2.5 KB of spills), or find no layout at all."""
        own = kept.expr.dims
        if not own or not set(own) < set(self.walked):
            return False
        if own != self.walked[: len(own)]:
            return True
        return len(self.walked) > len(own) + 1 and self.reduced.get(kept.expr.text) != self.sizes(self.walked)

    def sizes(self, dims: Sequence[str]) -> tuple[int, ...]:
        """The shape of a tile over dimensions."""
        return tuple(self.out.dims[dim].size for dim in dims)

    def _exposed(self, kept: Kept) -> str:
        """A copy of a fragment in shared memory, made before the loop that reads it."""
        key = ("exposed", kept.expr.text)
        if key not in self.out.known:
            kind = "int32" if kept.expr.text in self.flags else kept.expr.dtype.torch_name
            name = self.out.allocate("shared", f"{kept.expr.text}_shared", kept.expr.dims, kind)
            self.out.line(f"T.copy({kept.expr.text}, {name})", self.out.depth - 1)
            self.out.known[key] = Expr(name, (), kept.expr.dtype, self.out.depth - 1)
        return self.out.known[key].text

    # ------------------------------------------------------------ memory

    def element(self, tensor: TensorPlace, positions: Sequence[Poly]) -> str:
        """A place in global memory."""
        return f"{tensor.pointer}[{', '.join(self.out.place(p, ()) for p in positions) or '0'}]"

    def _load(self, value: Value, index: Index) -> Expr:
        data = value.data
        tensor = self.tensors[data.tensor]
        positions = [rejoined(p) for p in self.positions(data.axes, index)]
        # Outside of a tensor TileLang reads zeros: only another padding must be said.
        conditions = self.outside(tensor, positions) if data.pad else []
        dims = self.out.sorted([dim for p in (*positions, *conditions) for dim in self.out.dims_of(p)])
        text = self.element(tensor, positions)
        if conditions:
            text = f"T.if_then_else({self.mask(conditions, dims)}, {text}, {op_table.number(data.pad, tensor.dtype)})"
        return self.out.named(Expr(text, dims, tensor.dtype, self.out.depth), value.name or data.tensor)
