"""Expressions of a Sketch's source: from Python's syntax tree to tiles, regions and integers.

In: `ast` nodes and the names in scope. Out: `nodes` expressions, or a SketchError with the line and what to write instead.
Nothing is ever executed. `parse.py` owns statements and declarations.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from kernelwright.core.errors import SketchError
from kernelwright.core.operations import BINARY, UNARY
from kernelwright.sketch import nodes
from kernelwright.sketch.index import ceil_div, simplify
from kernelwright.sketch.literals import (
    arguments,
    dtype_name,
    fault,
    folded,
    literal_flag,
    literal_int,
    literal_number,
    literal_string,
    similar,
)
from kernelwright.sketch.nodes import Index, IndexOp, Int, Sym, Tile
from kernelwright.sketch.print import COMPARISONS, OPERATORS
from kernelwright.sketch.types import TileType, Typer, Unknown

_INDEX_OPERATORS: dict[type[ast.operator], Literal["+", "-", "*", "//", "%"]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%",
}  # fmt: skip
_SYMBOL = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.BitAnd: "&", ast.BitOr: "|",
    ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=",
    ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_BINARY = {symbol: op for op, (symbol, _) in OPERATORS.items()} | {symbol: op for op, symbol in COMPARISONS.items()}

SIGNATURES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "load": (("region",), ("pad", "level")),
    "full": (("shape", "value", "dtype"), ("level",)),
    "iota": (("extent",), ()),
    "index": (("value",), ()),
    "where": (("condition", "a", "b"), ()),
    "cast": (("x", "dtype"), ()),
    "bitcast": (("x", "dtype"), ()),
    "gemm": (("a", "b"), ("acc",)),
    "arg_max": (("x", "axis"), ()),
    "arg_min": (("x", "axis"), ()),
    "arg_sort": (("x", "axis"), ("descending",)),
    "take": (("x", "indices", "axis"), ()),
    "permute": (("x", "order"), ()),
    "reshape": (("x", "shape"), ()),
    "expand": (("x", "shape"), ()),
    "squeeze": (("x", "axis"), ()),
    "unsqueeze": (("x", "axis"), ()),
    "stack": (("tiles", "axis"), ()),
    **{f"reduce_{op}": (("x",), ("axis",)) for op in nodes.REDUCE},
    **{f"scan_{op}": (("x", "axis"), ("reverse", "exclusive")) for op in nodes.SCAN},
}
"""Every function on tiles but the scalar operations (core/operations.py): its required and its optional arguments, in order."""

INSTEAD = {
    "min": "minimum(a, b) for tiles, reduce_min(x, axis=…) along an axis",
    "max": "maximum(a, b) for tiles, reduce_max(x, axis=…) along an axis",
    "sum": "reduce_sum(x, axis=…)",
    "mean": "reduce_sum(x, axis=…) times 1 / n",
    "dot": "gemm(a, b, acc)",
    "matmul": "gemm(a, b, acc)",
    "zeros": "full([…], 0.0, f32)",
    "ones": "full([…], 1.0, f32)",
    "arange": "iota(extent)",
    "softmax": "reduce_max, exp, reduce_sum",
    "relu": "maximum(x, 0.0)",
    "transpose": "permute(x, [1, 0])",
    "float": "cast(x, f32)",
    "int": "cast(x, i64)",
    "argmax": "arg_max(x, axis=…)",
    "argmin": "arg_min(x, axis=…)",
    "cumsum": "scan_sum(x, axis=…)",
    "clamp": "minimum(maximum(x, low), high)",
    "store": "a statement of its own: store(y[…], tile)",
}


@dataclass
class Scope:
    """The names an expression may use."""

    typer: Typer
    integers: set[str]
    tiles: dict[str, TileType | None] = field(default_factory=dict)
    path: str = "sketch"

    def inner(self) -> Scope:
        """A copy for a loop's body."""
        return Scope(self.typer, set(self.integers), dict(self.tiles), self.path)


# ---------------------------------------------------------------- the reader


class Reader:
    """Reads expressions in one scope."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def fault(self, reason: str, node: ast.AST, hint: str = "") -> SketchError:
        return fault(reason, node, hint, self.scope.path)

    # ---- integers

    def index(self, node: ast.expr) -> Index:
        """An integer expression over sizes, tunables and loop variables."""
        match node:
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                return Int(value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)) if not isinstance(value, bool):
                return Int(-value)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return IndexOp("-", Int(0), self.index(operand))
            case ast.Name(id=name):
                return self._integer_name(name, node)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _INDEX_OPERATORS:
                return IndexOp(_INDEX_OPERATORS[type(op)], self.index(left), self.index(right))
            case ast.BinOp(op=ast.Div()):
                raise self.fault("`/` in an index", node, "integers divide with //")
            case ast.Call(func=ast.Name(id="min" | "max" as name)) if len(node.args) == 2 and not node.keywords:
                least: Literal["min", "max"] = "min" if name == "min" else "max"
                return IndexOp(least, self.index(node.args[0]), self.index(node.args[1]))
        raise self.fault(
            f"{ast.unparse(node)} is not an integer expression",
            node,
            "use sizes, tunables, loop variables, numbers, + - * // % and min(a, b), max(a, b)",
        )

    def _integer_name(self, name: str, node: ast.expr) -> Sym:
        if name in self.scope.integers:
            return Sym(name)
        if name in self.scope.tiles:
            raise self.fault(
                f"{name} is a tile, not an integer", node, f"positions computed at run time are written pick({name})"
            )
        hint = similar(name, self.scope.integers) or "sizes are declared with name = size(…)"
        raise self.fault(f"unknown size, tunable or loop variable {name}", node, hint)

    def shape(self, node: ast.expr) -> tuple[Index, ...]:
        """A list of extents."""
        if not isinstance(node, ast.List | ast.Tuple):
            raise self.fault(f"a shape is a list of extents, not {ast.unparse(node)}", node, "write [M, N]")
        return tuple(self.index(extent) for extent in node.elts)

    # ---- regions

    def region(self, node: ast.Subscript, shape: Sequence[Index] | None) -> tuple[nodes.Axis, ...]:
        """What stands in the brackets; `shape` fills in bounds that are left out."""
        inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if shape is not None and len(inside) != len(shape):
            text = ast.unparse(node)
            raise self.fault(
                f"{text} names {len(inside)} axes, but there are {len(shape)}", node, "name every axis, `:` for all of it"
            )
        sizes: Sequence[Index | None] = shape if shape is not None else [None] * len(inside)
        return tuple(self._axis(axis, size) for axis, size in zip(inside, sizes, strict=True))

    def _axis(self, node: ast.expr, size: Index | None) -> nodes.Axis:
        match node:
            case ast.Slice():
                return self._span(node, size)
            case ast.Call(func=ast.Name(id="pick")):
                return nodes.Pick(self.tile(arguments(node, ("indices",), (), self.scope.path)["indices"]))
        return nodes.At(self.index(node))

    def _span(self, node: ast.Slice, size: Index | None) -> nodes.Span:
        """`start:stop:step`. A stop written as start + extent (* step) keeps that extent as it is; otherwise it is computed."""
        step = Int(1) if node.step is None else self.index(node.step)
        start = Int(0) if node.lower is None else self.index(node.lower)
        stop = size if node.upper is None else self.index(node.upper)
        if stop is None:
            raise self.fault("a slice of this tile needs its stop written out", node, "write start:stop")
        if start == Int(0):
            reach: Index | None = stop
        elif isinstance(stop, IndexOp) and stop.op == "+" and stop.left == start:
            reach = stop.right
        else:
            reach = None
        if step == Int(1):
            return nodes.Span(start, simplify(IndexOp("-", stop, start)) if reach is None else reach)
        if isinstance(reach, IndexOp) and reach.op == "*" and reach.right == step:
            return nodes.Span(start, reach.left, step)
        return nodes.Span(start, ceil_div(IndexOp("-", stop, start), step), step)

    # ---- tiles

    def known_type(self, tile: Tile) -> TileType | None:
        """The tile's type, where it is already clear; faults are left to the checker."""
        try:
            return self.scope.typer.type_of(tile, self.scope.tiles)
        except (SketchError, Unknown):
            return None

    def tile(self, node: ast.expr) -> Tile:
        """A tile expression."""
        number = folded(node)
        if number is not None:
            return nodes.Number(number)
        match node:
            case ast.Name(id=name):
                return self._name(name, node)
            case ast.UnaryOp(op=op, operand=operand):
                if isinstance(op, ast.UAdd):
                    return self.tile(operand)
                name = "neg" if isinstance(op, ast.USub) else "invert" if isinstance(op, ast.Invert) else "logical_not"
                return nodes.Unary(name, self.tile(operand))
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return nodes.Binary("pow", self.tile(left), self.tile(right), line=node.lineno)
            case ast.BinOp(left=left, op=ast.MatMult(), right=right):
                return nodes.Gemm(self.tile(left), self.tile(right), line=node.lineno)
            case ast.BinOp(left=left, op=op, right=right):
                return nodes.Binary(_BINARY[_SYMBOL[type(op)]], self.tile(left), self.tile(right), line=node.lineno)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _SYMBOL:
                return nodes.Binary(_BINARY[_SYMBOL[type(op)]], self.tile(left), self.tile(right), line=node.lineno)
            case ast.Compare():
                raise self.fault("a chain of comparisons", node, "write (a < b) & (b < c)")
            case ast.BoolOp():
                raise self.fault("`and` and `or` do not work on tiles", node, "write (a) & (b), (a) | (b)")
            case ast.IfExp():
                raise self.fault("`a if c else b` does not work on tiles", node, "write where(c, a, b)")
            case ast.Subscript(value=value):
                return self._part(node, value)
            case ast.Call():
                return self._call(node)
        raise self.fault(f"{ast.unparse(node)} is not a tile expression", node)

    def _name(self, name: str, node: ast.expr) -> Tile:
        if name in self.scope.tiles:
            return nodes.Var(name)
        if name in self.scope.integers:
            return nodes.FromIndex(Sym(name))
        if name in self.scope.typer.tensors:
            raise self.fault(f"{name} is a tensor in memory, not a tile", node, f"read it with load({name}[…])")
        known = [*self.scope.tiles, *self.scope.integers, *self.scope.typer.tensors]
        raise self.fault(
            f"unknown name {name}", node, similar(name, known) or "bind it first; names of a loop's body end with it"
        )

    def _part(self, node: ast.Subscript, value: ast.expr) -> nodes.Part:
        if isinstance(value, ast.Name) and value.id in self.scope.typer.tensors and value.id not in self.scope.tiles:
            raise self.fault(f"{value.id} is a tensor in memory, not a tile", node, f"read it with load({ast.unparse(node)})")
        tile = self.tile(value)
        found = self.known_type(tile)
        region = self.region(node, found.shape if found else None)
        fixed = tuple(axis for axis in region if not isinstance(axis, nodes.Pick))
        if len(fixed) != len(region):
            raise self.fault("pick does not work on tiles", node, "use take(x, indices, axis=…)")
        return nodes.Part(tile, fixed)

    def _call(self, node: ast.Call) -> Tile:
        if not isinstance(node.func, ast.Name):
            raise self.fault(
                f"{ast.unparse(node.func)} is not a function of the sketch", node, "functions have plain names, as in exp(x)"
            )
        name = node.func.id
        if name in UNARY:
            given = arguments(node, ("x",), (), path=self.scope.path)
            return nodes.Unary(name, self.tile(given["x"]))
        if name in BINARY:
            given = arguments(node, ("a", "b"), (), path=self.scope.path)
            return nodes.Binary(name, self.tile(given["a"]), self.tile(given["b"]), line=node.lineno)
        if name not in SIGNATURES:
            hint = f"write {INSTEAD[name]}" if name in INSTEAD else similar(name, [*SIGNATURES, *UNARY, *BINARY])
            raise self.fault(f"unknown function {name}", node, hint)
        given = arguments(node, *SIGNATURES[name], path=self.scope.path)
        match name:
            case "load":
                return self._load(node, given)
            case "full":
                value = literal_number(given["value"], self.scope.path)
                return nodes.Full(
                    self.shape(given["shape"]), value, dtype_name(given["dtype"], self.scope.path), self._level(given)
                )
            case "stack":
                return self._stack(node, given)
            case "iota":
                return nodes.Iota(self.index(given["extent"]))
            case "index":
                return nodes.FromIndex(self.index(given["value"]))
            case "where":
                return nodes.Where(*(self.tile(given[part]) for part in ("condition", "a", "b")))
            case "cast":
                return nodes.Cast(self.tile(given["x"]), dtype_name(given["dtype"], self.scope.path))
            case "bitcast":
                return nodes.Bitcast(self.tile(given["x"]), dtype_name(given["dtype"], self.scope.path))
            case "gemm":
                acc = self.tile(given["acc"]) if "acc" in given else None
                return nodes.Gemm(self.tile(given["a"]), self.tile(given["b"]), acc, line=node.lineno)
        return self._along(name, node, given)

    def _level(self, given: Mapping[str, ast.expr]) -> str:
        return literal_string(given["level"], "level", self.scope.path) if "level" in given else "register"

    def _load(self, node: ast.Call, given: Mapping[str, ast.expr]) -> nodes.Load:
        tensor, region = self.place(given["region"], "load")
        pad = literal_number(given["pad"], self.scope.path) if "pad" in given else None
        return nodes.Load(tensor, region, pad, self._level(given), line=node.lineno)

    def place(self, node: ast.expr, what: str) -> tuple[str, tuple[nodes.Axis, ...]]:
        """`tensor[region]`, as load and store take it."""
        if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
            raise self.fault(
                f"{what} needs a region of a tensor, not {ast.unparse(node)}", node, f"write {what}(x[i:i + BM, 0:N]…)"
            )
        name = node.value.id
        tensor = self.scope.typer.tensors.get(name)
        if tensor is None:
            hint = similar(name, self.scope.typer.tensors)
            if name in self.scope.tiles:
                hint = f"{name} is a tile: use it as it is, or {name}[a:b] for a part"
            raise self.fault(f"unknown tensor {name}", node, hint)
        if not tensor.shape and isinstance(node.slice, ast.Tuple) and not node.slice.elts:
            return name, ()
        return name, self.region(node, tensor.shape)

    def _axis_number(self, given: Mapping[str, ast.expr], x: Tile, extra: int = 0) -> int:
        """An axis; one counted from the end is turned round when the tile's rank is known."""
        number = literal_int(given["axis"], "axis", self.scope.path)
        return self._from_start(number, x, extra)

    def _from_start(self, number: int, x: Tile, extra: int = 0) -> int:
        if number < 0 and (found := self.known_type(x)):
            return number + len(found.shape) + extra
        return number

    def _axes(self, given: Mapping[str, ast.expr], x: Tile) -> tuple[int, ...]:
        if "axis" not in given:
            found = self.known_type(x)
            if found is None:
                return (
                    0,
                )  # what has no type here has a fault, which the checker tells where it stands; no second one is made of it
            return tuple(range(len(found.shape)))
        if isinstance(given["axis"], ast.Tuple | ast.List):
            return tuple(self._from_start(literal_int(e, "axis", self.scope.path), x) for e in given["axis"].elts)
        return (self._axis_number(given, x),)

    def _stack(self, node: ast.Call, given: Mapping[str, ast.expr]) -> Tile:
        listed = given["tiles"]
        if not isinstance(listed, ast.List | ast.Tuple) or not listed.elts:
            raise self.fault("stack needs a list of tiles", node, "write stack([a, b], axis=0)")
        tiles = tuple(self.tile(e) for e in listed.elts)
        return nodes.Stack(tiles, self._axis_number(given, tiles[0], extra=1))

    def _along(self, name: str, node: ast.Call, given: Mapping[str, ast.expr]) -> Tile:
        x = self.tile(given["x"])
        path = self.scope.path
        kind, _, op = name.partition("_")
        if kind == "reduce":
            return nodes.Reduce(op, x, self._axes(given, x))
        if kind == "scan":
            flags = {f: literal_flag(given[f], f, path) for f in ("reverse", "exclusive") if f in given}
            return nodes.Scan(op, x, self._axis_number(given, x), **flags)
        match name:
            case "arg_max" | "arg_min":
                return nodes.ArgReduce("max" if op == "max" else "min", x, self._axis_number(given, x))
            case "arg_sort":
                down = literal_flag(given["descending"], "descending", path) if "descending" in given else False
                return nodes.ArgSort(x, self._axis_number(given, x), down)
            case "take":
                return nodes.Take(x, self.tile(given["indices"]), self._axis_number(given, x))
            case "permute":
                if not isinstance(given["order"], ast.List | ast.Tuple):
                    raise self.fault("permute needs a list of axes", node, "write permute(x, [1, 0])")
                return nodes.Permute(x, tuple(literal_int(e, "axis", path) for e in given["order"].elts))
            case "reshape":
                return nodes.Reshape(x, self.shape(given["shape"]))
            case "expand":
                return nodes.Expand(x, self.shape(given["shape"]))
            case "squeeze":
                return nodes.Squeeze(x, self._axis_number(given, x))
            case "unsqueeze":
                return nodes.Unsqueeze(x, self._axis_number(given, x, extra=1))
        raise AssertionError(f"no rule for {name}")
