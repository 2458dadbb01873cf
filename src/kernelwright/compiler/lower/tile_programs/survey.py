"""A dry run over a block: which dimensions there are, which of them are read as one another, in which blocks they meet.

In: a block's effects. Out: a `Survey`, from which plan.py cuts dimensions to size. Walks like the languages' programs do and writes
nothing: an expression here has dimensions and no meaning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelwright.compiler.lower.element_index import Index, fitting, offset
from kernelwright.compiler.lower.tile_programs.elements import TensorPlace, Tile, extents, index_at, single, undecided
from kernelwright.compiler.lower.tile_programs.lines import Expr, Name, Writer
from kernelwright.compiler.lower.tile_programs.plan import DEPTH, Dim, Extent, Survey
from kernelwright.compiler.lower.tile_programs.program import TileProgram, outer_values, reached
from kernelwright.compiler.lower.tile_values import LoopEffect, StoreEffect, Value
from kernelwright.core.errors import SketchError
from kernelwright.sketch.index import Opaque, Poly, Ranges, combine, poly, rejoined
from kernelwright.sketch.nodes import DType

DOT_TYPES = frozenset({DType.f32, DType.f16, DType.bf16, DType.f64, DType.i8})
"""Operands of a matrix product that the units for such products take."""


class Surveyor(TileProgram):
    """Puts down what a program would need."""

    barrier = ""
    out: _Dimensions

    def __init__(self, ranges: Ranges, tensors: dict[str, TensorPlace], examples: Mapping[str, int]) -> None:
        super().__init__(_Dimensions(ranges), tensors)
        self.table = _Unspelled()
        self.survey = Survey(examples)

    def planned(self, name: str, extent: Extent) -> Dim:
        self.survey.add(name, extent)
        return Dim(name, extent, 1)

    def declared(self, dim: Dim) -> Name:
        return Name(dim.name, (dim.name,), 0)

    def _own(self, axes: Sequence[str]) -> tuple[str, ...]:
        """The dimensions of a tile."""
        return self.out.sorted([dim for dim in axes if dim])

    def _kept(self, axes: Sequence[str]) -> None:
        """Puts down a materialized tile."""
        self.survey.kept |= {dim for dim in axes if dim}
        self.survey.blocks.append(self._own(axes))

    def _tile(self, value: Value, axes: tuple[str, ...]) -> Tile:
        return Tile(Expr(f"v{value.id}", self._own(axes), value.dtype, self.out.depth), axes, extents(value))

    # ------------------------------------------------------------ values

    def whole(self, p: Poly, dtype: DType) -> Expr:
        return self.out.index(p)

    def read(self, tile: Tile, index: Index, value: Value) -> Expr:
        odd: list[int] = []
        index = tuple(rejoined(p) for p in index)
        for axis, (dim, extent, p) in enumerate(zip(tile.axes, tile.extents, index, strict=True)):
            if extent == 1:
                continue
            name = single(p)
            if name is None or name not in self.out.dims or self.out.dims[name].extent != extent:
                odd.append(axis)
            else:
                self.survey.join(name, dim)
        if len(odd) > 1:
            raise SketchError(
                f"a materialized tile ({value.name or value.op}) is read along two axes at other places than its own"
            )
        return self.gather(tile, odd[0], self.out.index(index[odd[0]])) if odd else tile.expr

    def gather(self, tile: Tile, axis: int, at: Expr) -> Expr:
        own = tile.axes[axis]
        self.survey.whole.add(own)
        return gathered(self.out, tile, own, at)

    def load(self, value: Value, index: Index) -> Expr:
        tensor, place, conditions = self.reach(value, index)
        return self.out.named(self.out.over(tensor.dtype, [], place, *conditions))

    # ------------------------------------------------------------ tiles

    def loaded(self, value: Value) -> Tile:
        axes = self.axes_of(value)
        self._kept(axes)
        self.load(value, index_at(axes))
        return self._tile(value, axes)

    def reduce(self, value: Value) -> Tile:
        axes, own, index = self.reduced_axes(value)
        self.survey.inner |= set(own)
        self.survey.blocks.append(self._own([*axes, *own]))
        self._kept(axes)
        self.of(value.args[0], index)
        return self._tile(value, axes)

    def gemm(self, value: Value) -> Tile:
        a, b, *rest = value.args
        axes, inner = self.product_axes(value)
        *batch, rows, columns = axes
        survey, exact = self.survey, a.dtype in (DType.f32, DType.f64)
        dot = bool(rows and columns and inner) and a.dtype in DOT_TYPES and all(batch)
        if inner:
            survey.inner.add(inner)
            if dot:
                survey.wants[inner] = DEPTH if exact else 2 * DEPTH
        self._kept(axes)
        if dot:
            survey.dots |= {rows, columns, inner}
            survey.exact |= {rows, columns} if exact else set()
        else:
            survey.blocks.append(self._own([*axes, inner]))
        for start in rest[:1]:
            self.of(start, index_at(axes))
        self.of(a, index_at((*batch, rows, inner)))
        self.of(b, index_at((*batch, inner, columns)))
        return self._tile(value, axes)

    def scan(self, value: Value) -> Tile:
        _, axis, reverse, exclusive = value.data
        axes = self._row(value, axis)
        index, own = index_at(axes), axes[axis]
        if own and exclusive:
            last = poly(self.out.dims[own].extent) - 1
            shift = combine("min", poly(own) + 1, last) if reverse else combine("max", poly(own) - 1, poly(0))
            index = (*index[:axis], shift, *index[axis + 1 :])
        if own or not exclusive:
            self.of(value.args[0], index)
        return self._tile(value, axes)

    def argsort(self, value: Value) -> Tile:
        axis, x = value.data[0], value.args[0]
        if x.dtype in (DType.f64, DType.i64):
            raise SketchError(f"a tile program sorts 32-bit elements, not {x.dtype}")
        axes = self._row(value, axis)
        if axes[axis]:
            if self._own(axes)[-1] != axes[axis]:
                raise SketchError("a tile program sorts along the last axis of a block")
            self.of(x, index_at(axes))
        return self._tile(value, axes)

    def _row(self, value: Value, axis: int) -> tuple[str, ...]:
        """Dimensions of a tile whose axis must lie in the block as a whole."""
        axes = self.axes_of(value)
        self._kept(axes)
        if axes[axis]:
            self.survey.whole.add(axes[axis])
            self.survey.along.add(axes[axis])
        return axes

    # ------------------------------------------------------------ effects

    def loop(self, effect: LoopEffect) -> None:
        self.prepare(*outer_values(effect))
        tiles: dict[str, Tile] = {}
        for item in effect.carried:
            axes, shape = self.carried_axes(item)
            self._kept(axes)
            if item.initial is not None:
                self.prepare(item.initial)
                self.of(item.initial, fitting(item.initial, index_at(axes)))
            name = self.out.fresh(item.name)
            tiles[item.name] = Tile(Expr(name, self._own(axes), item.storage.dtype, self.out.depth), axes, shape)
        for bound in (effect.start, effect.stop, effect.step):
            self.scalar(bound)
        self.out.open()
        self.out.names[effect.var] = Name(self.out.fresh(effect.var), (), self.out.depth)
        self.carry(effect.carried, tiles)
        self.block(effect.body)
        for item, final in self.changed(effect):
            self.of(final, fitting(final, index_at(tiles[item.name].axes)))
        self.forget()
        self.out.close("")
        self.carry(effect.carried, tiles)

    def stores_region(self, effect: StoreEffect, names: Sequence[str]) -> None:
        reads = any(self.is_stored(value) for value in reached(effect.value, self.key))
        self.survey.roots |= dict.fromkeys(names, reads)

    def store_at(self, effect: StoreEffect, index: Index, conditions: list[Poly]) -> None:
        tensor = self.tensors[effect.tensor]
        value = self.of(effect.value, fitting(effect.value, index))
        positions = self.positions(effect.axes, index)
        tests = undecided([*conditions, *self.outside(tensor.shape, positions)])
        own = [dim for p in index for dim in self.out.dims_of(p)]
        place = offset(tensor.strides, positions)
        self.survey.blocks.append(self.out.over(value.dtype, [*value.dims, *own], place, *tests).dims)


class _Dimensions(Writer):
    """Expressions of which only the dimensions count."""

    def named(self, expr: Expr, hint: str = "t") -> Expr:
        return expr if expr.atom else Expr(self.fresh(hint), expr.dims, expr.dtype, expr.level)

    def shaped(self, expr: Expr, dims: tuple[str, ...]) -> str:
        return expr.text

    def apply(self, template: str, args: Sequence[Expr], dtype: DType, hint: str = "t") -> Expr:
        level = max((arg.level for arg in args), default=0)
        return Expr(self.fresh(hint), self.union(*args), dtype, level)

    def over(self, dtype: DType, dims: Sequence[str], *places: Poly) -> Expr:
        """Something over these dimensions and all that the polynomials have."""
        every = self.sorted([*dims, *(dim for p in places for dim in self.dims_of(p))])
        return Expr("( )", every, dtype, max((self.level_of(p) for p in places), default=0))

    def index(self, p: Poly) -> Expr:
        if p.constant is not None:
            return Expr(str(p.constant), (), DType.i32, 0)
        return self.named(self.over(DType.i32, [], p))

    def quotient(self, atom: Opaque) -> Expr:
        return self.over(DType.i32, [], Poly((((atom,), 1),)))


class _Unspelled:
    """A table of operations without texts."""

    LANGUAGE = "a tile program"

    def number(self, value: float | int | bool, dtype: DType) -> str:
        return str(bool(value)) if dtype is DType.bool else str(int(value) if value == value and abs(value) < 1e18 else 0)

    def unary(self, op: str, x: str, dtype: DType) -> str:
        return x

    def binary(self, op: str, a: str, b: str, dtype: DType) -> str:
        return a

    def where(self, test: str, a: str, b: str) -> str:
        return a

    def cast(self, x: str, source: DType, goal: DType) -> str:
        return x

    def bitcast(self, x: str, goal: DType) -> str:
        return x


def gathered(out: Writer, tile: Tile, own: str, at: Expr) -> Expr:
    """What a gather along a tile's dimension `own` has for dimensions: those of the positions stand where the tile's own stood."""
    if own not in tile.expr.dims:
        return tile.expr
    rest = [dim for dim in tile.expr.dims if dim != own]
    target = out.sorted([*rest, *at.dims])
    if len(at.dims) > 1:
        raise SketchError("a materialized tile is gathered by positions of two dimensions")
    if at.dims and target.index(at.dims[0]) != tile.expr.dims.index(own):
        raise SketchError("a materialized tile is gathered into another order of axes")
    return out.named(Expr("( )", target, tile.expr.dtype, max(tile.expr.level, at.level)))
