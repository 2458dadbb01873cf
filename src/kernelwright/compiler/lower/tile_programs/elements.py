"""A tile value at given positions as an expression of a tile program.

In: a value of the graph and an index for each of its axes: polynomials over scalars and block dimensions. Out: an `Expr`. Whatever is
elementwise, a view or a load is made on the spot for these positions: views are index arithmetic, loads are conditional. Values that
were materialized (carried tiles, reductions, products) are read at their own dimensions; any other reading of them is a gather.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kernelwright.compiler.lower.element_index import ElementIndex, Index, fitting, offset
from kernelwright.compiler.lower.tile_programs.lines import Expr, Name, Writer
from kernelwright.compiler.lower.tile_programs.plan import Dim, Extent, plain
from kernelwright.compiler.lower.tile_values import Value
from kernelwright.core.dtypes import HALVES
from kernelwright.core.errors import SketchError
from kernelwright.sketch.index import Poly, Ranges, poly
from kernelwright.sketch.nodes import DType


@dataclass(frozen=True)
class TensorPlace:
    """A tensor as the kernel sees it."""

    pointer: str
    shape: tuple[Extent, ...]
    strides: tuple[Extent, ...]
    dtype: DType


@dataclass(frozen=True)
class Tile:
    """A materialized tile: the expression, and for each axis its dimension ("" for an extent of 1)."""

    expr: Expr
    axes: tuple[str, ...]
    extents: tuple[Extent, ...]


class OpTable(Protocol):
    """How a language spells operations: a module op_table.py."""

    LANGUAGE: str

    def number(self, value: float | int | bool, dtype: DType) -> str: ...

    def unary(self, op: str, x: str, dtype: DType) -> str: ...

    def binary(self, op: str, a: str, b: str, dtype: DType) -> str: ...

    def where(self, test: str, a: str, b: str) -> str: ...

    def cast(self, x: str, source: DType, goal: DType) -> str: ...

    def bitcast(self, x: str, goal: DType) -> str: ...


class TileElements(ElementIndex):
    """Makes expressions."""

    table: OpTable
    out: Writer

    def __init__(self, out: Writer, tensors: dict[str, TensorPlace]) -> None:
        self.out = out
        self.tensors = tensors
        self.tiles: dict[object, Tile] = {}
        self.lanes: tuple[str, ...] = ()
        self.inverse: dict[tuple[int, Index], Index] = {}
        """Indices of a view's operand that are known, because the view's own index was made from them."""

    # ------------------------------------------------------------ dimensions

    def dimension(self, name: str, extent: Extent) -> str:
        """The representative of a dimension, declared at its first use; "" for an extent of 1."""
        if extent == 1:
            return ""
        dim = self.planned(name, extent)
        if dim.name not in self.out.dims:
            self.out.dims[dim.name] = dim
            self.out.order[dim.name] = len(self.out.order)
            self.out.ranges.known[dim.name] = (poly(0), poly(dim.extent) - 1)
            self.out.names[dim.name] = self.declared(dim)
        return dim.name

    def planned(self, name: str, extent: Extent) -> Dim:
        """The planned dimension of a surveyed name."""
        raise NotImplementedError

    def declared(self, dim: Dim) -> Name:
        """What the positions along a new dimension are called."""
        raise NotImplementedError

    def guards(self, dims: Sequence[str]) -> list[Poly]:
        """Conditions under which positions are inside the extents."""
        return [poly(self.out.dims[dim].extent) - 1 - poly(dim) for dim in dims if self.out.dims[dim].padded]

    @property
    def bounds(self) -> Ranges:
        return self.out.ranges

    # ------------------------------------------------------------ values

    def of(self, value: Value, index: Index) -> Expr:
        """The value at these positions."""
        key = (value.id, index)
        if key not in self.out.known:
            self.out.known[key] = self.make(value, index)
        return self.out.known[key]

    def key(self, value: Value) -> object | None:
        """The key under which a value is materialized, if it is."""
        if value.op == "stored":
            return ("stored", value.data.name)
        if value.op in ("reduce", "scan", "argsort", "gemm") or value.kept:
            return value.id
        return None

    def is_stored(self, value: Value) -> bool:
        return self.key(value) is not None

    def tile_of(self, value: Value) -> Tile:
        """The tile of a value that has a key."""
        key = self.key(value)
        return self.tiles[key] if key in self.tiles else self.materialize(value)

    def materialize(self, value: Value) -> Tile:
        """Makes a value's tile; the program does."""
        raise NotImplementedError

    def make(self, value: Value, index: Index) -> Expr:
        if self.is_stored(value):
            return self.read(self.tile_of(value), index, value)
        if value.dtype in (DType.i64, DType.i32) and value.op in ("binary", "cast", "unary", "index", "iota"):
            p = self.integer(value, index)
            if p is not None:
                return self.whole(p, value.dtype)
        hint = value.name or hint_of(value)
        match value.op:
            case "const":
                return Expr(self.table.number(value.data, value.dtype), (), value.dtype, 0)
            case "load":
                return self.load(value, index)
            case "take":
                return self._take(value, index)
            case "binary":
                return self._known(value, index) or self.binary(value, index)
            case "where":
                test = self.of(value.args[0], fitting(value.args[0], index))
                if test.text in ("True", "False"):
                    chosen = value.args[1 if test.text == "True" else 2]
                    return self.of(chosen, fitting(chosen, index))
                branches = self.alike([self.of(arg, fitting(arg, index)) for arg in value.args[1:]])
                return self.out.apply(self.table.where("{0}", "{1}", "{2}"), [test, *branches], value.dtype, hint)
            case "unary" | "cast" | "bitcast":
                operand, source = self.typed(self.of(value.args[0], index)), value.args[0].dtype
                if value.op == "unary":
                    text = self.table.unary(value.data, "{0}", source)
                elif value.op == "cast":
                    text = self.table.cast("{0}", source, value.dtype)
                else:
                    text = self.table.bitcast("{0}", value.dtype)
                return self.out.apply(text, [operand], value.dtype, hint)
            case "permute" | "squeeze" | "unsqueeze" | "expand" | "part" | "reshape":
                return self.of(value.args[0], self.viewed(value, index))
        raise SketchError(f"{self.table.LANGUAGE} has no {value.op}")

    def typed(self, expr: Expr) -> Expr:
        """A bare literal as something with a dtype, where the language asks for one."""
        return expr

    def alike(self, branches: list[Expr]) -> list[Expr]:
        """The branches of a choice, so that one of them has a dtype."""
        return branches

    def whole(self, p: Poly, dtype: DType) -> Expr:
        """A polynomial of positions as a value."""
        raise NotImplementedError

    def binary(self, value: Value, index: Index) -> Expr:
        """An operation of two values that is not known without computing it."""
        operands = [self.of(arg, fitting(arg, index)) for arg in value.args]
        text = self.table.binary(value.data, "{0}", "{1}", value.args[0].dtype)
        return self.out.apply(text, operands, value.dtype, value.name or hint_of(value))

    def _known(self, value: Value, index: Index) -> Expr | None:
        """A comparison of positions, or a conjunction of which one side is known."""
        if value.data in ("and", "logical_and") and value.args[0].dtype is DType.bool:
            a, b = (self.of(arg, fitting(arg, index)) for arg in value.args)
            return b if a.text == "True" else a if b.text == "True" else None
        return self.compared(value, index)

    def compared(self, value: Value, index: Index) -> Expr | None:
        """A comparison of positions: what always holds, or never, is said so."""
        test = self.comparison(value, index)
        if test is None:
            return None
        if self.out.ranges.nonnegative(test):
            return Expr("True", (), DType.bool, 0)
        if self.out.ranges.nonnegative(test * -1 - 1):
            return Expr("False", (), DType.bool, 0)
        dims = self.out.dims_of(test)
        return self.out.named(Expr(self.out.condition(test, dims), dims, DType.bool, self.out.level_of(test)))

    def viewed(self, value: Value, index: Index) -> Index:
        known = self.inverse.get((value.id, index))
        return known if known is not None else super().viewed(value, index)

    # ------------------------------------------------------------ tiles

    def read(self, tile: Tile, index: Index, value: Value) -> Expr:
        """A tile at an index: at its own dimensions, or gathered."""
        raise NotImplementedError

    def gather(self, tile: Tile, axis: int, at: Expr) -> Expr:
        """Elements along one axis at computed positions."""
        raise NotImplementedError

    def _take(self, value: Value, index: Index) -> Expr:
        x, at = value.args
        picked = self.of(at, fitting(at, index))
        if self.is_stored(x):
            return self.gather(self.tile_of(x), value.data, picked)
        runtime = self._run_time(picked)
        inner = tuple(
            runtime if axis == value.data else (poly(0) if x.shape[axis].constant == 1 else p) for axis, p in enumerate(index)
        )
        return self.of(x, inner)

    def picked(self, indices: Value, index: Index) -> Poly:
        return self._run_time(self.of(indices, index))

    def _run_time(self, expr: Expr) -> Poly:
        """A computed integer as a name that polynomials can use."""
        expr = self.out.named(expr, "at")
        name = f"@{expr.text}"
        self.out.names[name] = Name(expr.text, expr.dims, expr.level)
        return poly(name)

    # ------------------------------------------------------------ memory

    def load(self, value: Value, index: Index) -> Expr:
        """An element of a tensor."""
        raise NotImplementedError

    def reach(self, value: Value, index: Index) -> tuple[TensorPlace, Poly, list[Poly]]:
        """What a load reads: the tensor, the offset, and the conditions under which that is inside."""
        tensor = self.tensors[value.data.tensor]
        positions = self.positions(value.data.axes, index)
        conditions = self.outside(tensor.shape, positions) if value.data.pad is not None else []
        return tensor, offset(tensor.strides, positions), conditions

    def mask(self, conditions: Sequence[Poly], dims: tuple[str, ...]) -> str:
        """All conditions as one truth value."""
        return " & ".join(self.out.condition(p, dims) for p in dict.fromkeys(conditions))


_HINTS = {
    "add": "added", "sub": "less", "mul": "scaled", "div": "ratio", "maximum": "upper", "minimum": "lower", "neg": "negated",
    "abs": "size",
}  # fmt: skip


def hint_of(value: Value) -> str:
    """What to call a value that the sketch does not name: by what made it."""
    if value.op in ("unary", "binary"):
        return _HINTS.get(value.data, str(value.data))
    return {"where": "chosen", "cast": "rounded" if value.dtype in HALVES else "wide", "bitcast": "bits"}.get(value.op, "t")


def undecided(conditions: Sequence[Poly]) -> list[Poly]:
    """Conditions `p >= 0` that are not true for every element: a mask of Python's True is none to older Tritons."""
    return [p for p in conditions if p.constant is None or p.constant < 0]


def extents(value: Value) -> tuple[Extent, ...]:
    """A tile's shape: numbers, but for what varies."""
    return tuple(map(plain, value.shape))


def index_at(axes: Sequence[str]) -> Index:
    """The index of an element whose axes have these dimensions."""
    return tuple(poly(dim) if dim else poly(0) for dim in axes)


def single(p: Poly) -> str | None:
    """The name, if a polynomial is just one."""
    if len(p.terms) == 1 and p.terms[0][1] == 1 and len(p.terms[0][0]) == 1 and isinstance(p.terms[0][0][0], str):
        return p.terms[0][0][0]
    return None


def products(x: str, power: float, floats: bool, one: str, root: str) -> str | None:
    """A power as products and roots of `x`, where it is one that torch computes so; `root` is the language's square root."""
    square = f"({x} * {x})"
    if not floats:
        return {2: square, 3: f"({x} * {x} * {x})"}.get(int(power)) if power in (2, 3) else None
    return {
        1.0: x, 2.0: square, 3.0: f"({x} * {x} * {x})", 4.0: f"({square} * {square})", 0.5: f"{root}({x})",
        -0.5: f"({one} / {root}({x}))", -1.0: f"({one} / {x})", -2.0: f"({one} / {square})",
    }.get(float(power))  # fmt: skip
