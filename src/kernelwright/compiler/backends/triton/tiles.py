"""A tile value at given positions as Triton expressions.

In: a value of the graph (cfamily/values.py) and an index for each of its axes: polynomials over scalars and block dimensions. Out: an
`Expr`. Whatever is elementwise, a view or a load is made on the spot for these positions: views are index arithmetic, loads are masked
loads. Values that live in registers (carried tiles, reductions, products) are read at their own dimensions; another reading of them
is a gather.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kernelwright.compiler.backends.triton import op_table
from kernelwright.compiler.backends.triton.lines import Expr, Name, Writer
from kernelwright.compiler.backends.triton.plan import Dim, Survey
from kernelwright.compiler.lower.tile_values import AtAccess, PickAccess, SpanAccess, Value
from kernelwright.core.errors import SketchError
from kernelwright.sketch.index import Poly, combine, poly, rejoined
from kernelwright.sketch.nodes import DType

Index = tuple[Poly, ...]


@dataclass(frozen=True)
class TensorPlace:
    """A tensor as the kernel sees it."""

    pointer: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType


@dataclass(frozen=True)
class Kept:
    """A tile in registers: the expression, and for each axis its dimension ("" for an extent of 1)."""

    expr: Expr
    axes: tuple[str, ...]
    extents: tuple[int, ...]


@dataclass
class Tiles:
    """Makes expressions. With a `survey` it is a dry run that puts down what it sees."""

    out: Writer
    tensors: dict[str, TensorPlace]
    survey: Survey | None
    kept: dict[object, Kept] = field(default_factory=dict)
    lanes: tuple[str, ...] = ()
    inverse: dict[tuple[int, Index], Index] = field(default_factory=dict)
    """Indices of a view's operand that are known, because the view's own index was made from them."""
    _runtime: int = 0

    # ------------------------------------------------------------ dimensions

    def dimension(self, name: str, extent: int) -> str:
        """The representative of a dimension, declared at its first use; "" for an extent of 1."""
        if extent == 1:
            return ""
        if self.survey is not None:
            self.survey.add(name, extent)
            if name not in self.out.dims:
                self._declare(Dim(name, extent, extent))
            return name
        dim = self.plan_of(name)
        if dim.name not in self.out.dims:
            self._declare(dim)
        return dim.name

    def plan_of(self, name: str) -> Dim:
        """The planned dimension of a surveyed name; the program sets it."""
        raise NotImplementedError

    def _declare(self, dim: Dim) -> None:
        """A dimension whose positions are known in the whole kernel; one that a loop walks over is declared by the loop."""
        self.out.dims[dim.name] = dim
        self.out.order[dim.name] = len(self.out.order)
        self.out.ranges.known[dim.name] = (poly(0), poly(dim.extent - 1))
        if self.survey is not None or dim.walk == "loop":
            self.out.names[dim.name] = Name(dim.name, (dim.name,), 0)
            return
        text = self.out.label(dim.name)
        start = f"{self.grid_start(dim)} + " if dim.walk == "grid" else ""
        self.out.line(f"{text} = {start}tl.arange(0, {self.out.size(dim.name)})", 0)
        self.out.names[dim.name] = Name(text, (dim.name,), 0)

    def grid_start(self, dim: Dim) -> str:
        raise NotImplementedError

    def guards(self, dims: Sequence[str]) -> list[Poly]:
        """Conditions under which positions are inside the extents."""
        return [poly(self.out.dims[dim].extent - 1) - poly(dim) for dim in dims if self.out.dims[dim].padded]

    # ------------------------------------------------------------ values

    def of(self, value: Value, index: Index) -> Expr:
        """The value at these positions."""
        key = (value.id, index)
        if key not in self.out.known:
            self.out.known[key] = self._make(value, index)
        return self.out.known[key]

    def register(self, value: Value) -> object | None:
        """The key under which a value lives in registers, if it does."""
        if value.op == "stored":
            return ("stored", value.data.name)
        if value.op in ("reduce", "scan", "argsort", "gemm") or value.kept:
            return value.id
        return None

    def heavy(self, value: Value) -> Kept:
        """Puts a value into registers; the schedule does."""
        raise NotImplementedError

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
                operand = self._typed(self.of(value.args[0], index))
                return self.out.apply(op_table.unary(value.data, "{0}", value.args[0].dtype), [operand], value.dtype, hint)
            case "binary":
                return self._binary(value, index)
            case "where":
                test = self.of(value.args[0], fitting(value.args[0], index))
                if test.text in ("True", "False"):
                    chosen = value.args[1 if test.text == "True" else 2]
                    return self.of(chosen, fitting(chosen, index))
                parts = [test, *(self.of(arg, fitting(arg, index)) for arg in value.args[1:])]
                if not parts[1].dims and not parts[2].dims and parts[1].atom and parts[2].atom:
                    parts[1] = self._typed(parts[1])
                return self.out.apply("tl.where({0}, {1}, {2})", parts, value.dtype, hint)
            case "cast":
                operand = self._typed(self.of(value.args[0], index))
                return self.out.apply(op_table.cast("{0}", value.args[0].dtype, value.dtype), [operand], value.dtype, hint)
            case "bitcast":
                operand = self._typed(self.of(value.args[0], index))
                return self.out.apply(f"{{0}}.to({op_table.TYPE[value.dtype]}, bitcast=True)", [operand], value.dtype, hint)
            case "permute" | "squeeze" | "unsqueeze" | "expand" | "part" | "reshape":
                return self.of(value.args[0], self.viewed(value, index))
        raise SketchError(f"Triton has no {value.op}")

    def _typed(self, expr: Expr) -> Expr:
        """A bare literal as a scalar tensor: methods and tl functions need a dtype."""
        if expr.dims or (not expr.text[:1].isdigit() and not expr.text.startswith(("-", "float", "True", "False"))):
            return expr
        return Expr(f"tl.full([], {expr.text}, {op_table.TYPE[expr.dtype]})", (), expr.dtype, expr.level)

    def _whole(self, p: Poly, dtype: DType) -> Expr:
        expr = self.out.index(p)
        if dtype is DType.i64 and expr.dims:
            return self.out.named(Expr(f"({expr.text}).to(tl.int64)", expr.dims, dtype, expr.level))
        return Expr(f"({expr.text})" if not expr.atom else expr.text, expr.dims, dtype, expr.level)

    def _compared(self, value: Value, index: Index) -> Expr | None:
        """A comparison of positions: what always holds, or never, is said so."""
        if value.data not in ("lt", "le", "gt", "ge"):
            return None
        a, b = (self.integer(arg, fitting(arg, index)) for arg in value.args)
        if a is None or b is None:
            return None
        gap = b - a if value.data in ("lt", "le") else a - b
        test = gap if value.data in ("le", "ge") else gap - 1
        if self.out.ranges.nonnegative(test):
            return Expr("True", (), DType.bool, 0)
        if self.out.ranges.nonnegative(test * -1 - 1):
            return Expr("False", (), DType.bool, 0)
        dims = self.out.dims_of(test)
        return self.out.named(Expr(self.out.condition(test, dims), dims, DType.bool, self.out.level_of(test)))

    def _binary(self, value: Value, index: Index) -> Expr:
        found = self._compared(value, index) or self._and(value, index)
        if found is not None:
            return found
        a, b = (self.of(arg, fitting(arg, index)) for arg in value.args)
        dtype, hint = value.args[0].dtype, value.name or "t"
        if value.data == "pow" and value.args[1].op == "const":
            text = op_table.small_power("{0}", value.args[1].data, dtype)
            if text is not None:
                return self.out.apply(text, [self._typed(a)], value.dtype, hint)
        if value.data in ("pow", "atan2", "copysign", "fmod", "mod") or (not a.dims and not b.dims):
            a, b = self._typed(a), self._typed(b)
        a, b = self._half(a, dtype), self._half(b, dtype)
        return self.out.apply(op_table.binary(value.data, "{0}", "{1}", dtype), [a, b], value.dtype, hint)

    def _and(self, value: Value, index: Index) -> Expr | None:
        """A conjunction of which one side is known."""
        if value.data not in ("and", "logical_and") or value.args[0].dtype is not DType.bool:
            return None
        a, b = (self.of(arg, fitting(arg, index)) for arg in value.args)
        return b if a.text == "True" else a if b.text == "True" else None

    def _half(self, expr: Expr, dtype: DType) -> Expr:
        """A literal beside a half float: both are widened in the text, which a literal cannot be."""
        return self._typed(expr) if dtype in (DType.f16, DType.bf16) else expr

    def integer(self, value: Value, index: Index) -> Poly | None:
        """An element that is a polynomial of positions, or None."""
        if self.register(value) is not None:
            return None
        match value.op:
            case "const" if value.dtype in (DType.i64, DType.i32) and not isinstance(value.data, bool | float):
                return poly(value.data)
            case "index":
                found: Poly = value.data
                return found
            case "iota":
                return index[0]
            case "cast" if value.dtype in (DType.i64, DType.i32) and value.args[0].dtype in (DType.i64, DType.i32):
                return self.integer(value.args[0], index)
            case "binary" if value.data in ("add", "sub", "mul", "floordiv", "mod"):
                a, b = (self.integer(arg, fitting(arg, index)) for arg in value.args)
                if a is None or b is None:
                    return None
                if value.data in ("floordiv", "mod"):
                    if b.constant is None or b.constant <= 0:
                        return None
                    return self.out.ranges.divide(a, b)[value.data == "mod"]
                return combine({"add": "+", "sub": "-", "mul": "*"}[value.data], a, b)
            case "permute" | "squeeze" | "unsqueeze" | "expand" | "part":
                return self.integer(value.args[0], self.viewed(value, index))
        return None

    def viewed(self, value: Value, index: Index) -> Index:
        """The operand's index for an element of a view."""
        known = self.inverse.get((value.id, index))
        if known is not None:
            return known
        x = value.args[0]
        match value.op:
            case "permute":
                inner = [poly(0)] * len(index)
                for axis, p in zip(value.data, index, strict=True):
                    inner[axis] = p
                return tuple(inner)
            case "squeeze":
                return (*index[: value.data], poly(0), *index[value.data :])
            case "unsqueeze":
                return index[: value.data] + index[value.data + 1 :]
            case "expand":
                return fitting(x, index)
            case "part":
                spans = iter(index)
                return tuple(a.index if isinstance(a, AtAccess) else a.start + a.step * next(spans) for a in value.data)
        return self.unflatten(flat(value.shape, index), x.shape)

    def unflatten(self, position: Poly, shape: tuple[Poly, ...]) -> Index:
        """A row-major position as an index of a shape."""
        inner: list[Poly] = []
        for extent in reversed(shape[1:]):
            position, rest = self.out.ranges.divide(position, extent)
            inner.append(rest)
        return (position, *reversed(inner)) if shape else ()

    # ------------------------------------------------------------ registers

    def _read(self, kept: Kept, index: Index, value: Value) -> Expr:
        """A kept tile at an index: at its own dimensions, or gathered along one axis."""
        odd: list[int] = []
        index = tuple(rejoined(p) for p in index)
        for axis, (dim, extent, p) in enumerate(zip(kept.axes, kept.extents, index, strict=True)):
            if extent == 1:
                continue
            name = _single(p)
            if name is None or name not in self.out.dims or self.out.dims[name].extent != extent:
                odd.append(axis)
            elif self.survey is not None:
                self.survey.join(name, dim)
            elif name != dim:
                odd.append(axis)
        if not odd:
            return kept.expr
        if len(odd) > 1:
            raise SketchError(
                f"a tile in registers ({value.name or value.op}) is read along two axes at other places than its own"
            )
        return self._gather(kept, odd[0], self.out.index(index[odd[0]]))

    def _gather(self, kept: Kept, axis: int, at: Expr) -> Expr:
        """Elements along one axis at computed positions."""
        own = kept.axes[axis]
        if self.survey is not None:
            self.survey.whole.add(own)
        if own not in kept.expr.dims:
            return kept.expr
        rest = tuple(dim for dim in kept.expr.dims if dim != own)
        if not at.dims:
            chosen = self.out.apply("tl.where({0} == {1}, {2}, 0)", [self.out.index(poly(own)), at, kept.expr], kept.expr.dtype)
            place = chosen.dims.index(own)
            return self.out.named(Expr(f"tl.sum({chosen.text}, axis={place})", rest, kept.expr.dtype, chosen.level))
        if len(at.dims) != 1:
            raise SketchError("a tile in registers is gathered by positions of two dimensions")
        # The dimension of the positions takes the place of the tile's own: both must stand at the same axis.
        target = self.out.sorted([*rest, at.dims[0]])
        if target.index(at.dims[0]) != kept.expr.dims.index(own):
            raise SketchError("a tile in registers is gathered into another order of axes")
        places = f"tl.broadcast_to({self.out.shaped(at, target)}, {self.out.sizes(target)})"
        text = f"tl.gather({kept.expr.text}, {places}, {target.index(at.dims[0])})"
        return self.out.named(Expr(text, target, kept.expr.dtype, max(kept.expr.level, at.level)))

    def _take(self, value: Value, index: Index) -> Expr:
        x, at = value.args
        picked = self.of(at, fitting(at, index))
        place = self.register(x)
        if place is not None:
            return self._gather(self.kept[place] if place in self.kept else self.heavy(x), value.data, picked)
        runtime = self.runtime(picked)
        inner = tuple(
            runtime if axis == value.data else (poly(0) if x.shape[axis].constant == 1 else p) for axis, p in enumerate(index)
        )
        return self.of(x, inner)

    def runtime(self, expr: Expr) -> Poly:
        """A computed integer as a name that polynomials can use."""
        expr = self.out.named(expr, "at")
        name = f"@{expr.text}"
        self.out.names[name] = Name(expr.text, expr.dims, expr.level)
        return poly(name)

    # ------------------------------------------------------------ memory

    def positions(self, axes: Sequence[object], index: Index) -> list[Poly]:
        """Where along each axis of a tensor the element at `index` of a region lies."""
        picked = max((len(a.indices.shape) for a in axes if isinstance(a, PickAccess)), default=0)
        spans = iter(index[picked:])
        found: list[Poly] = []
        for axis in axes:
            if isinstance(axis, SpanAccess):
                found.append(axis.start + axis.step * next(spans))
            elif isinstance(axis, AtAccess):
                found.append(axis.index)
            elif isinstance(axis, PickAccess):
                own = fitting(axis.indices, index[:picked])
                known = self.integer(axis.indices, own)
                found.append(known if known is not None else self.runtime(self.of(axis.indices, own)))
        return found

    def outside(self, tensor: TensorPlace, positions: Sequence[Poly]) -> list[Poly]:
        """Conditions `p >= 0` under which positions lie inside the tensor, those that always hold left out."""
        conditions = []
        for p, extent in zip(positions, tensor.shape, strict=True):
            runtime = any(name.startswith("@") for name in p.names)
            if runtime or not self.out.ranges.nonnegative(p):
                conditions.append(p)
            if runtime or not self.out.ranges.below(p, poly(extent)):
                conditions.append(poly(extent - 1) - p)
        return conditions

    def offset(self, tensor: TensorPlace, positions: Sequence[Poly]) -> Poly:
        total = poly(0)
        for p, stride in zip(positions, tensor.strides, strict=True):
            total = total + p * stride
        return rejoined(total)

    def mask(self, conditions: Sequence[Poly], dims: tuple[str, ...]) -> str:
        return " & ".join(self.out.condition(p, dims) for p in dict.fromkeys(conditions))

    def _load(self, value: Value, index: Index) -> Expr:
        data = value.data
        tensor = self.tensors[data.tensor]
        positions = self.positions(data.axes, index)
        offset = self.offset(tensor, positions)
        conditions = self.outside(tensor, positions) if data.pad is not None else []
        return self.load(tensor, offset, conditions, data.pad or 0, value.name or data.tensor)

    def load(self, tensor: TensorPlace, offset: Poly, conditions: Sequence[Poly], pad: float | int | bool, hint: str) -> Expr:
        """A masked load; positions beyond a padded dimension's extent are masked too."""
        dims = self.out.dims_of(offset)
        conditions = undecided([*conditions, *self.guards(dims)])
        every = self.out.sorted([*dims, *(dim for p in conditions for dim in self.out.dims_of(p))])
        level = max([self.out.level_of(offset), *(self.out.level_of(p) for p in conditions)])
        pointer = self.out.address(tensor.pointer, offset, every)
        if not conditions:
            return self.out.named(Expr(f"tl.load({pointer})", every, tensor.dtype, level), hint)
        if every and not dims:
            pointer += f" + tl.zeros({self.out.sizes(every)}, tl.int32)"
        other = op_table.number(pad, tensor.dtype)
        text = f"tl.load({pointer}, mask={self.mask(conditions, every)}, other={other})"
        return self.out.named(Expr(text, every, tensor.dtype, level), hint)


def undecided(conditions: Sequence[Poly]) -> list[Poly]:
    """Conditions `p >= 0` that are not true for every element: a mask of Python's True is none to older Tritons."""
    return [p for p in conditions if p.constant is None or p.constant < 0]


def fitting(value: Value, index: Index) -> Index:
    """NumPy's broadcasting: the operand's own axes, at 0 where its extent is 1."""
    own = index[len(index) - len(value.shape) :] if value.shape else ()
    return tuple(poly(0) if extent.constant == 1 else p for extent, p in zip(value.shape, own, strict=True))


def flat(shape: tuple[Poly, ...], index: Index) -> Poly:
    position = poly(0)
    for extent, p in zip(shape, index, strict=True):
        position = position * extent + (poly(0) if extent.constant == 1 else p)
    return position


def extents(value: Value) -> tuple[int, ...]:
    """A tile's shape in numbers."""
    found = [extent.constant for extent in value.shape]
    if any(extent is None for extent in found):
        raise SketchError("a tile whose extents are known only at run time cannot be a Triton block")
    return tuple(int(extent) for extent in found if extent is not None)


def _single(p: Poly) -> str | None:
    """The name, if a polynomial is just one."""
    if len(p.terms) == 1 and p.terms[0][1] == 1 and len(p.terms[0][0]) == 1 and isinstance(p.terms[0][0][0], str):
        return p.terms[0][0][0]
    return None
