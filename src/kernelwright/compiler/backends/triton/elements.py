"""A tile value at given positions as a Triton expression: what tile programs share (compiler/lower/tile_programs/elements.py), spelled
with tensors whose axes are the block's dimensions. Loads are masked; tiles are registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kernelwright.compiler.backends.triton import op_table
from kernelwright.compiler.backends.triton.lines import TensorWriter
from kernelwright.compiler.lower.element_index import Index, fitting
from kernelwright.compiler.lower.tile_programs.elements import TensorPlace, Tile, hint_of, single, undecided
from kernelwright.compiler.lower.tile_programs.lines import Expr, Name
from kernelwright.compiler.lower.tile_programs.plan import Dim
from kernelwright.compiler.lower.tile_programs.program import TileProgram
from kernelwright.compiler.lower.tile_values import Value
from kernelwright.core.dtypes import HALVES
from kernelwright.core.errors import SketchError
from kernelwright.sketch.index import Poly, poly, rejoined
from kernelwright.sketch.nodes import DType


@dataclass
class Walk:
    """The loop of a product that is being written: its variable, and what moves on at its end."""

    var: str
    start: Poly
    step: int
    depth: int
    lines: list[str] = field(default_factory=list)


class Elements(TileProgram):
    """Makes expressions of tensors."""

    table = op_table
    out: TensorWriter
    walk: Walk | None = None

    def declared(self, dim: Dim) -> Name:
        """Positions are known in the whole kernel; those of a dimension that a loop walks over the loop declares."""
        if dim.walk == "loop":
            return Name(dim.name, (dim.name,), 0)
        start = f"{self.grid_start(dim)} + " if dim.walk == "grid" else ""
        text = self.out.later(f"offs_{self.out.label(dim.name)}", f"{start}tl.arange(0, {self.out.size(dim.name)})")
        return Name(text, (dim.name,), 0)

    # ------------------------------------------------------------ values

    def typed(self, expr: Expr) -> Expr:
        """A bare literal as a scalar tensor: methods and tl functions need a dtype."""
        if expr.dims or (not expr.text[:1].isdigit() and not expr.text.startswith(("-", "float", "True", "False"))):
            return expr
        return Expr(f"tl.full([], {expr.text}, {op_table.TYPE[expr.dtype]})", (), expr.dtype, expr.level)

    def alike(self, branches: list[Expr]) -> list[Expr]:
        first, second = branches
        literals = not first.dims and not second.dims and first.atom and second.atom
        return [self.typed(first), second] if literals else branches

    def whole(self, p: Poly, dtype: DType) -> Expr:
        expr = self.out.index(p)
        if dtype is DType.i64 and expr.dims:
            return self.out.named(Expr(f"({expr.text}).to(tl.int64)", expr.dims, dtype, expr.level))
        return Expr(f"({expr.text})" if not expr.atom else expr.text, expr.dims, dtype, expr.level)

    def binary(self, value: Value, index: Index) -> Expr:
        a, b = (self.of(arg, fitting(arg, index)) for arg in value.args)
        dtype, hint = value.args[0].dtype, value.name or hint_of(value)
        if value.data == "pow" and value.args[1].op == "const":
            text = op_table.small_power("{0}", value.args[1].data, dtype)
            if text is not None:
                return self.out.apply(text, [self.typed(a)], value.dtype, hint)
        # both halves are widened in the text, which a literal cannot be
        methods = value.data in ("pow", "atan2", "copysign", "fmod", "mod") or dtype in HALVES
        if methods or (not a.dims and not b.dims):
            a, b = self.typed(a), self.typed(b)
        return self.out.apply(op_table.binary(value.data, "{0}", "{1}", dtype), [a, b], value.dtype, hint)

    # ------------------------------------------------------------ tiles

    def read(self, tile: Tile, index: Index, value: Value) -> Expr:
        """A tile in registers at an index: at its own dimensions, or gathered along one axis."""
        odd: list[int] = []
        index = tuple(rejoined(p) for p in index)
        for axis, (dim, extent, p) in enumerate(zip(tile.axes, tile.extents, index, strict=True)):
            if extent == 1:
                continue
            if single(p) != dim:
                odd.append(axis)
        if not odd:
            return tile.expr
        if len(odd) > 1:
            raise SketchError(
                f"a tile in registers ({value.name or value.op}) is read along two axes at other places than its own"
            )
        return self.gather(tile, odd[0], self.out.index(index[odd[0]]))

    def gather(self, tile: Tile, axis: int, at: Expr) -> Expr:
        """Elements along one axis at computed positions."""
        own = tile.axes[axis]
        if own not in tile.expr.dims:
            return tile.expr
        rest = tuple(dim for dim in tile.expr.dims if dim != own)
        if not at.dims:
            chosen = self.out.apply("tl.where({0} == {1}, {2}, 0)", [self.out.index(poly(own)), at, tile.expr], tile.expr.dtype)
            place = chosen.dims.index(own)
            return self.out.named(Expr(f"tl.sum({chosen.text}, axis={place})", rest, tile.expr.dtype, chosen.level))
        if len(at.dims) != 1:
            raise SketchError("a tile in registers is gathered by positions of two dimensions")
        # The dimension of the positions takes the place of the tile's own: both must stand at the same axis.
        target = self.out.sorted([*rest, at.dims[0]])
        if target.index(at.dims[0]) != tile.expr.dims.index(own):
            raise SketchError("a tile in registers is gathered into another order of axes")
        places = f"tl.broadcast_to({self.out.shaped(at, target)}, {self.out.sizes(target)})"
        text = f"tl.gather({tile.expr.text}, {places}, {target.index(at.dims[0])})"
        return self.out.named(Expr(text, target, tile.expr.dtype, max(tile.expr.level, at.level)))

    # ------------------------------------------------------------ memory

    def load(self, value: Value, index: Index) -> Expr:
        data = value.data
        return self.load_at(*self.reach(value, index), data.pad or 0, value.name or data.tensor)

    def load_at(
        self, tensor: TensorPlace, offset: Poly, conditions: Sequence[Poly], pad: float | int | bool, hint: str
    ) -> Expr:
        """A masked load; positions beyond a padded dimension's extent are masked too."""
        dims = self.out.dims_of(offset)
        conditions = undecided([*conditions, *self.guards(dims)])
        every = self.out.sorted([*dims, *(dim for p in conditions for dim in self.out.dims_of(p))])
        level = max([self.out.level_of(offset), *(self.out.level_of(p) for p in conditions)])
        pointer = self._advanced(tensor, offset, every) or self.out.address(tensor.pointer, offset, every)
        if not conditions:
            return self.out.named(Expr(f"tl.load({pointer})", every, tensor.dtype, level), hint)
        if every and not dims:
            pointer += f" + tl.zeros({self.out.sizes(every)}, tl.int32)"
        other = op_table.number(pad, tensor.dtype)
        text = f"tl.load({pointer}, mask={self.mask(conditions, every)}, other={other})"
        return self.out.named(Expr(text, every, tensor.dtype, level), hint)

    def _advanced(self, tensor: TensorPlace, offset: Poly, dims: tuple[str, ...]) -> str:
        """Pointers that stand before the loop of a product and move on with it; "" where they do not move evenly."""
        walk = self.walk
        if walk is None or self.out.depth != walk.depth or len(self.out.dims_of(offset)) < 2:
            return ""
        along = offset.coefficient(walk.var)
        if along is None or along.constant is None or not along.terms:
            return ""
        rest = offset - poly(walk.var) * along.constant
        if walk.var in rest.names or self.out.level_of(rest) >= walk.depth:
            return ""
        first = self.out.address(tensor.pointer, rest + walk.start * along.constant, dims)
        name = self.out.fresh(f"{tensor.pointer}s")
        self.out.line(f"{name} = {first}", walk.depth - 1)
        walk.lines.append(f"{name} += {along.constant * walk.step}")
        return name
