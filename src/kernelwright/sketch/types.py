"""Shape and dtype of every tile.

In: tile expressions, with the types of the names in scope. Out: a `TileType` (extents as expressions over sizes and tunables,
and a dtype), or a SketchError that says what does not fit. The checker and all emitters share this one set of rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from kernelwright.core.dtypes import FLOATS, INTEGERS
from kernelwright.core.errors import SketchError
from kernelwright.sketch import nodes
from kernelwright.sketch.dtypes import binary_dtype, require_ordered, require_reducible, unary_dtype, wider
from kernelwright.sketch.index import constant, equal, evaluate, mul, show, simplify, substitute, symbols
from kernelwright.sketch.nodes import DType, Index, Int, Tile

COMBINATIONS = 256
"""Most settings of the tunables that a proof by enumeration looks at."""


@dataclass(frozen=True)
class TileType:
    """The extents (simplified, over sizes and tunables) and element type of a tile."""

    shape: tuple[Index, ...]
    dtype: DType

    def __str__(self) -> str:
        return f"{show_shape(self.shape)} {self.dtype.value}"


class Unknown(Exception):
    """A name whose binding failed to check is used; not an error of its own, since that one was reported."""


def show_shape(shape: Sequence[Index]) -> str:
    """A shape as people read it."""
    return "[" + ", ".join(show(extent) for extent in shape) + "]"


class Typer:
    """The typing rules for one sketch. While `found` is a table, results are kept in it by object, so that an expression whose
    parts are shared is typed in linear time; whoever sets it replaces it when the types of names change."""

    def __init__(self, sketch: nodes.Sketch) -> None:
        self.tensors = {tensor.name: tensor for tensor in sketch.tensors}
        self.static = {size.name: size.value for size in sketch.sizes if not size.dynamic}
        self.dynamic = tuple(size for size in sketch.sizes if size.dynamic)
        self.domains = {tunable.name: tunable.domain for tunable in sketch.tunables}
        self.found: dict[int, TileType] | None = None
        self.constants = self.static.keys() | self.domains.keys() | {s.name for s in sketch.sizes}

    # ---- extents

    def settings(self, names: frozenset[str]) -> list[dict[str, int]]:
        """The settings of those tunables among `names`, all of them when they are not too many."""
        used = sorted(names & self.domains.keys())
        domains = [self.domains[name] for name in used]
        every = [dict(zip(used, values, strict=True)) for values in product(*domains)]
        stride = max(1, -(-len(every) // COMBINATIONS))
        return every[::stride]

    def same(self, left: Index, right: Index) -> bool:
        """Whether two extents are equal for the declared sizes and every setting of the tunables."""
        if left == right:
            return True
        a, b = substitute(left, self.static), substitute(right, self.static)
        if equal(a, b):
            return True
        names = symbols(a) | symbols(b)
        if not names or not names <= self.domains.keys():
            return False
        try:
            return all(evaluate(a, setting) == evaluate(b, setting) for setting in self.settings(names))
        except ZeroDivisionError:
            raise SketchError(f"the extents {show(a)} and {show(b)} cannot be compared: one divides by zero") from None

    def is_one(self, extent: Index) -> bool:
        """Whether an extent is 1 by declaration (and so broadcasts)."""
        return constant(substitute(extent, self.static)) == 1

    def extent(self, extent: Index) -> Index:
        """An extent in normal form; loop variables may not occur in it."""
        simple = simplify(extent)
        if strange := sorted(symbols(simple) - self.constants):
            raise SketchError(
                f"the extent {show(simple)} depends on {', '.join(strange)}",
                hint="extents may use sizes and tunables only, never loop variables; load a full tile with pad",
            )
        return simple

    def broadcast(self, left: Sequence[Index], right: Sequence[Index], what: str) -> tuple[Index, ...]:
        """NumPy's rule for two shapes."""
        rank = max(len(left), len(right))
        a = [Int(1)] * (rank - len(left)) + list(left)
        b = [Int(1)] * (rank - len(right)) + list(right)
        result = []
        for x, y in zip(a, b, strict=True):
            if self.is_one(x):
                result.append(y)
            elif self.is_one(y) or self.same(x, y):
                result.append(x)
            else:
                raise SketchError(
                    f"{what}: shapes {show_shape(left)} and {show_shape(right)} do not broadcast",
                    hint="reductions keep their axis with extent 1; use squeeze, unsqueeze or permute to line the axes up",
                )
        return tuple(result)

    # ---- regions

    def region_shape(self, region: Sequence[nodes.Axis], names: Mapping[str, TileType | None]) -> tuple[Index, ...]:
        """The shape of the tile a region covers: picked axes first, then the spans."""
        picked: tuple[Index, ...] = ()
        spans: list[Index] = []
        for axis in region:
            match axis:
                case nodes.Pick(indices):
                    found = self.type_of(indices, names)
                    if found.dtype not in INTEGERS:
                        raise SketchError(f"pick needs an integer tile, not {found}", hint="cast it to i64")
                    picked = self.broadcast(picked, found.shape, "picks of one region")
                case nodes.Span(_, extent):
                    spans.append(self.extent(extent))
        return (*picked, *spans)

    def _loaded(self, load: nodes.Load, names: Mapping[str, TileType | None]) -> TileType:
        tensor = self.tensors.get(load.tensor)
        if tensor is None:
            raise SketchError(f"load of unknown tensor {load.tensor}", line=load.line)
        if len(load.region) != len(tensor.shape):
            raise SketchError(
                f"{load.tensor} has {len(tensor.shape)} axes, but the load names {len(load.region)}", line=load.line
            )
        if load.pad is not None:
            self.require_number(load.pad, tensor.dtype, "pad")
        return TileType(self.region_shape(load.region, names), tensor.dtype)

    # ---- numbers

    def require_number(self, value: float | int | bool, dtype: DType, what: str) -> None:
        """A literal must be representable in the dtype it takes."""
        if isinstance(value, bool):
            fits = dtype is DType.bool
        elif isinstance(value, int):
            fits = dtype is not DType.bool
        else:
            fits = dtype in FLOATS
        if not fits:
            raise SketchError(
                f"{what} {value} does not fit a {dtype.value} tile", hint="write a literal of that dtype, or cast"
            )

    def pair(self, a: Tile, b: Tile, names: Mapping[str, TileType | None], what: str) -> tuple[tuple[Index, ...], DType]:
        """Shape and common dtype of two operands, of which one may be a bare number."""
        if isinstance(a, nodes.Number) and isinstance(b, nodes.Number):
            raise SketchError(f"{what} of two bare numbers has no dtype", hint="use full([], value, dtype) for one of them")
        for number, tile in ((a, b), (b, a)):
            if isinstance(number, nodes.Number):
                found = self.type_of(tile, names)
                self.require_number(number.value, found.dtype, what)
                return found.shape, found.dtype
        left, right = self.type_of(a, names), self.type_of(b, names)
        if left.dtype is not right.dtype:
            raise SketchError(
                f"{what} of {left.dtype.value} and {right.dtype.value}",
                hint=f"nothing is promoted silently; write cast(…, {wider(left.dtype, right.dtype).value})",
            )
        return self.broadcast(left.shape, right.shape, what), left.dtype

    # ---- expressions

    def type_of(self, tile: Tile, names: Mapping[str, TileType | None]) -> TileType:
        """The type of an expression, given the types of the names in scope (None: its binding failed to check)."""
        known = self.found.get(id(tile)) if self.found is not None else None
        if known is not None:
            return known
        try:
            result = self._rules(tile, names)
            if self.found is not None:
                self.found[id(tile)] = result
            return result
        except SketchError as error:
            line = getattr(tile, "line", 0)
            if line and not error.line:
                raise SketchError(error.reason, line=line, hint=error.hint) from None
            raise

    def _rules(self, tile: Tile, names: Mapping[str, TileType | None]) -> TileType:
        match tile:
            case nodes.Var(name):
                if name not in names:
                    raise SketchError(f"{name} is read before it is bound", hint=f"bind it first: {name} = …")
                found = names[name]
                if found is None:
                    raise Unknown
                return found
            case nodes.Number(value):
                raise SketchError(f"the number {value} meets no tile to take its dtype from", hint="use full([], value, dtype)")
            case nodes.FromIndex():
                return TileType((), DType.i64)
            case nodes.Iota(extent):
                return TileType((self.extent(extent),), DType.i64)
            case nodes.Full(shape, value, dtype):
                self.require_number(value, dtype, "full")
                return TileType(tuple(self.extent(e) for e in shape), dtype)
            case nodes.Load():
                return self._loaded(tile, names)
            case nodes.Unary(op, x):
                found = self.type_of(x, names)
                return TileType(found.shape, unary_dtype(op, found.dtype))
            case nodes.Binary(op, a, b):
                shape, dtype = self.pair(a, b, names, op)
                return TileType(shape, binary_dtype(op, dtype))
            case nodes.Where(condition, a, b):
                chosen = self.type_of(condition, names)
                if chosen.dtype is not DType.bool:
                    raise SketchError(f"where needs a bool condition, not {chosen}", hint="compare it: cond != 0")
                shape, dtype = self.pair(a, b, names, "where")
                return TileType(self.broadcast(chosen.shape, shape, "where"), dtype)
            case nodes.Cast(nodes.Number(), dtype):
                return TileType((), dtype)
            case nodes.Cast(x, dtype):
                return TileType(self.type_of(x, names).shape, dtype)
            case nodes.Bitcast(x, dtype):
                found = self.type_of(x, names)
                if found.dtype.size != dtype.size:
                    raise SketchError(f"bitcast of {found.dtype.value} to {dtype.value}, which has another width")
                return TileType(found.shape, dtype)
            case nodes.Gemm():
                return self._gemm(tile, names)
            case nodes.Reduce() | nodes.ArgReduce() | nodes.Scan() | nodes.ArgSort() | nodes.Take():
                return self._along(tile, names)
        return self._moved(tile, names)

    def _gemm(self, tile: nodes.Gemm, names: Mapping[str, TileType | None]) -> TileType:
        a, b = self.type_of(tile.a, names), self.type_of(tile.b, names)
        ranks = len(a.shape) == len(b.shape) and len(a.shape) in (2, 3)
        if not ranks or not all(map(self.same, (a.shape[-1], *a.shape[:-2]), (b.shape[-2], *b.shape[:-2]))):
            raise SketchError(
                f"gemm needs tiles [m, k] and [k, n] (or [b, m, k] and [b, k, n]), not {show_shape(a.shape)} and {show_shape(b.shape)}",
                hint="use permute for a transpose, At positions or squeeze to drop batch axes",
            )
        if a.dtype is not b.dtype:
            raise SketchError(f"gemm of {a.dtype.value} and {b.dtype.value}", hint="cast one operand")
        if a.dtype is DType.bool:
            raise SketchError("gemm of bool tiles", hint="cast them first")
        shape = (*a.shape[:-1], b.shape[-1])
        if tile.acc is None:
            wide = DType.f32 if a.dtype in FLOATS else DType.i32
            return TileType(shape, DType.f64 if a.dtype is DType.f64 else wide)
        acc = self.type_of(tile.acc, names)
        if len(acc.shape) != len(shape) or not all(map(self.same, acc.shape, shape)):
            raise SketchError(f"gemm's accumulator is {show_shape(acc.shape)}, but the product is {show_shape(shape)}")
        if (acc.dtype in FLOATS) != (a.dtype in FLOATS):
            raise SketchError(
                f"gemm of {a.dtype.value} operands with a {acc.dtype.value} accumulator", hint="cast the operands"
            )
        return TileType(shape, acc.dtype)

    def axis(self, axis: int, rank: int, what: str) -> int:
        """An axis number, counted from 0."""
        if not 0 <= axis < rank:
            raise SketchError(f"{what} names axis {axis} of a tile with {rank} axes", hint="axes are counted from 0")
        return axis

    def _along(
        self,
        tile: nodes.Reduce | nodes.ArgReduce | nodes.Scan | nodes.ArgSort | nodes.Take,
        names: Mapping[str, TileType | None],
    ) -> TileType:
        found = self.type_of(tile.x, names)
        rank = len(found.shape)
        match tile:
            case nodes.Reduce(op, _, axes):
                what = f"reduce_{op}"
                if op not in nodes.REDUCE:
                    raise SketchError(f"unknown reduction {what}")
                for axis in axes:
                    self.axis(axis, rank, what)
                if len(set(axes)) != len(axes):
                    raise SketchError(f"{what} names an axis twice")
                require_reducible(what, op, found.dtype)
                shape = tuple(Int(1) if axis in axes else extent for axis, extent in enumerate(found.shape))
                return TileType(shape, found.dtype)
            case nodes.ArgReduce(op, _, axis):
                self.axis(axis, rank, f"arg_{op}")
                require_ordered(f"arg_{op}", found.dtype)
                return TileType((*found.shape[:axis], Int(1), *found.shape[axis + 1 :]), DType.i64)
            case nodes.Scan(op, _, axis):
                self.axis(axis, rank, f"scan_{op}")
                if op not in nodes.SCAN:
                    raise SketchError(f"unknown scan scan_{op}")
                require_reducible(f"scan_{op}", op, found.dtype)
                return found
            case nodes.ArgSort(_, axis):
                self.axis(axis, rank, "arg_sort")
                require_ordered("arg_sort", found.dtype)
                return TileType(found.shape, DType.i64)
            case nodes.Take(_, indices, axis):
                at = self.type_of(indices, names)
                self.axis(axis, rank, "take")
                if at.dtype not in INTEGERS:
                    raise SketchError(f"take needs integer indices, not {at}", hint="cast them to i64")
                if len(at.shape) != rank:
                    raise SketchError(f"take of a tile with {rank} axes by indices with {len(at.shape)}", hint="use unsqueeze")
                left = [*found.shape[:axis], Int(1), *found.shape[axis + 1 :]]
                right = [*at.shape[:axis], Int(1), *at.shape[axis + 1 :]]
                both = self.broadcast(left, right, "take")
                return TileType((*both[:axis], at.shape[axis], *both[axis + 1 :]), found.dtype)

    def _moved(self, tile: Tile, names: Mapping[str, TileType | None]) -> TileType:
        match tile:
            case nodes.Permute(x, order):
                found = self.type_of(x, names)
                if sorted(order) != list(range(len(found.shape))):
                    raise SketchError(f"permute {list(order)} does not name every axis of {show_shape(found.shape)} once")
                return TileType(tuple(found.shape[axis] for axis in order), found.dtype)
            case nodes.Reshape(x, shape):
                found, wanted = self.type_of(x, names), tuple(self.extent(e) for e in shape)
                if not self.same(_volume(found.shape), _volume(wanted)):
                    raise SketchError(f"reshape of {show_shape(found.shape)} to {show_shape(wanted)} changes the element count")
                return TileType(wanted, found.dtype)
            case nodes.Expand(x, shape):
                found, wanted = self.type_of(x, names), tuple(self.extent(e) for e in shape)
                whole = self.broadcast(found.shape, wanted, "expand")
                if len(whole) != len(wanted) or not all(map(self.same, whole, wanted)):
                    raise SketchError(f"expand of {show_shape(found.shape)} to {show_shape(wanted)}")
                return TileType(wanted, found.dtype)
            case nodes.Squeeze(x, axis):
                found = self.type_of(x, names)
                self.axis(axis, len(found.shape), "squeeze")
                if not self.is_one(found.shape[axis]):
                    raise SketchError(f"squeeze of axis {axis} of {show_shape(found.shape)}, whose extent is not 1")
                return TileType((*found.shape[:axis], *found.shape[axis + 1 :]), found.dtype)
            case nodes.Unsqueeze(x, axis):
                found = self.type_of(x, names)
                self.axis(axis, len(found.shape) + 1, "unsqueeze")
                return TileType((*found.shape[:axis], Int(1), *found.shape[axis:]), found.dtype)
            case nodes.Stack(tiles, axis):
                found, *others = (self.type_of(part, names) for part in tiles)
                self.axis(axis, len(found.shape) + 1, "stack")
                for other in others:
                    if other.dtype is not found.dtype or len(other.shape) != len(found.shape):
                        raise SketchError(f"stack of {found} and {other}", hint="its tiles have one shape and one dtype")
                    if not all(map(self.same, found.shape, other.shape)):
                        raise SketchError(f"stack of {found} and {other}", hint="its tiles have one shape and one dtype")
                return TileType((*found.shape[:axis], Int(len(tiles)), *found.shape[axis:]), found.dtype)
            case nodes.Part(x, region):
                found = self.type_of(x, names)
                if len(region) != len(found.shape):
                    raise SketchError(f"a part of a tile {show_shape(found.shape)} names {len(region)} axes")
                return TileType(self.region_shape(region, names), found.dtype)
        raise SketchError(f"unknown tile expression {type(tile).__name__}")


def _volume(shape: Sequence[Index]) -> Index:
    total: Index = Int(1)
    for extent in shape:
        total = mul(total, extent)
    return total
