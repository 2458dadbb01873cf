"""A tile value at given positions as a TileLang expression: what tile programs share (compiler/lower/tile_programs/elements.py), spelled
for one element. Global memory is read as it is, because TileLang itself pads with zeros at the edges; tiles live in fragments and are
copied to shared memory where another thread's part is read.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.compiler.backends.tilelang import op_table
from kernelwright.compiler.backends.tilelang.lines import ElementWriter
from kernelwright.compiler.lower.element_index import Index, fitting
from kernelwright.compiler.lower.tile_programs.elements import TensorPlace, Tile, single
from kernelwright.compiler.lower.tile_programs.lines import Expr, Name
from kernelwright.compiler.lower.tile_programs.plan import Dim
from kernelwright.compiler.lower.tile_programs.program import TileProgram
from kernelwright.compiler.lower.tile_values import Value
from kernelwright.sketch.index import Poly, rejoined
from kernelwright.sketch.nodes import DType


class Elements(TileProgram):
    """Makes expressions of one element."""

    table = op_table
    out: ElementWriter
    shared: set[str]
    """Tiles that live in shared memory."""
    begins: dict[str, str]
    """Where the block begins along each dimension, as a text."""
    flags: set[str]
    """Tiles of truth values, which are held as integers."""
    walked: tuple[str, ...] = ()
    """Dimensions of the tile that is being filled."""
    reduced: dict[str, tuple[int, ...]]
    """Fragments that were reduced, and the shapes of the tiles they come from."""

    # ------------------------------------------------------------ dimensions

    def declared(self, dim: Dim) -> Name:
        label = self.out.label(dim.name)
        start = self.grid_start(dim) if dim.walk == "grid" else "0"
        self.begins[dim.name] = start
        return Name(label if start == "0" else f"({start} + {label})", (dim.name,), 0)

    # ------------------------------------------------------------ values

    def of(self, value: Value, index: Index) -> Expr:
        expr = super().of(value, index)
        if value.dtype is DType.bool and expr.text in ("True", "False"):
            return Expr(expr.text, (), DType.bool, 0)
        return expr

    def truth(self, expr: Expr) -> str:
        """A text that can be stored."""
        return f"T.bool({expr.text})" if expr.text in ("True", "False") else expr.text

    def whole(self, p: Poly, dtype: DType) -> Expr:
        if p.constant is not None:
            return Expr(op_table.number(p.constant, dtype), (), dtype, 0)
        expr = self.out.index(p)
        text = f'T.cast({expr.text}, "int64")' if dtype is DType.i64 else expr.text
        return Expr(text, expr.dims, dtype, expr.level)

    def binary(self, value: Value, index: Index) -> Expr:
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

    def read(self, tile: Tile, index: Index, value: Value) -> Expr:
        """A tile: at its own dimensions in place, anywhere else through shared memory."""
        odd: dict[str, Poly] = {}
        for dim, extent, p in zip(tile.axes, tile.extents, (rejoined(p) for p in index), strict=True):
            if extent == 1 or not dim:
                continue
            if single(p) != dim:
                odd[dim] = p
        if not odd:
            return self._element(tile, {}, tile.expr.dims)
        texts = {dim: self.out.place(p, ()) for dim, p in odd.items()}
        dims = [dim for dim in tile.expr.dims if dim not in odd]
        return self._element(tile, texts, self.out.sorted([*dims, *(d for p in odd.values() for d in self.out.dims_of(p))]))

    def gather(self, tile: Tile, axis: int, at: Expr) -> Expr:
        own = tile.axes[axis]
        if own not in tile.expr.dims:
            return self._element(tile, {}, tile.expr.dims)
        rest = [dim for dim in tile.expr.dims if dim != own]
        return self._element(tile, {own: at.text}, self.out.sorted([*rest, *at.dims]))

    def _element(self, tile: Tile, texts: dict[str, str], dims: tuple[str, ...]) -> Expr:
        name = tile.expr.text
        if name not in self.shared and (texts or self._astride(tile)):
            name = self._exposed(tile)
        place = ", ".join(texts.get(dim) or self.out.label(dim) for dim in tile.expr.dims) or "0"
        text = f"{name}[{place}]"
        return Expr(f"({text} != 0)" if tile.expr.text in self.flags else text, dims, tile.expr.dtype, self.out.depth)

    def _astride(self, tile: Tile) -> bool:
        """Whether a fragment is repeated along axes that do not suit the threads which hold it: another than the last, or several
        that are not those it was reduced over. TileLang would have a thread do the whole of such an axis (a mean of [2, 8] in a tile
        of [2, 64, 8] made 128 registers of 8, and 2.5 KB of spills), or find no layout at all."""
        own = tile.expr.dims
        if not own or not set(own) < set(self.walked):
            return False
        if own != self.walked[: len(own)]:
            return True
        return len(self.walked) > len(own) + 1 and self.reduced.get(tile.expr.text) != self.sizes(self.walked)

    def sizes(self, dims: Sequence[str]) -> tuple[int, ...]:
        """The shape of a tile over dimensions."""
        return tuple(self.out.dims[dim].size for dim in dims)

    def _exposed(self, tile: Tile) -> str:
        """A copy of a fragment in shared memory, made before the loop that reads it."""
        key = ("exposed", tile.expr.text)
        if key not in self.out.known:
            kind = "int32" if tile.expr.text in self.flags else tile.expr.dtype.torch_name
            name = self.out.allocate("shared", f"{tile.expr.text}_shared", tile.expr.dims, kind)
            self.out.line(f"T.copy({tile.expr.text}, {name})", self.out.depth - 1)
            self.out.known[key] = Expr(name, (), tile.expr.dtype, self.out.depth - 1)
        return self.out.known[key].text

    # ------------------------------------------------------------ memory

    def element(self, tensor: TensorPlace, positions: Sequence[Poly]) -> str:
        """A place in global memory."""
        return f"{tensor.pointer}[{', '.join(self.out.place(p, ()) for p in positions) or '0'}]"

    def load(self, value: Value, index: Index) -> Expr:
        data = value.data
        tensor = self.tensors[data.tensor]
        positions = [rejoined(p) for p in self.positions(data.axes, index)]
        # Outside of a tensor TileLang reads zeros: only another padding must be said.
        conditions = self.outside(tensor.shape, positions) if data.pad else []
        dims = self.out.sorted([dim for p in (*positions, *conditions) for dim in self.out.dims_of(p)])
        text = self.element(tensor, positions)
        if conditions:
            text = f"T.if_then_else({self.mask(conditions, dims)}, {text}, {op_table.number(data.pad, tensor.dtype)})"
        return self.out.named(Expr(text, dims, tensor.dtype, self.out.depth), value.name or data.tensor)
