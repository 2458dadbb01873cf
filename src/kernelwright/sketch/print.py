"""A Sketch as source text: the inverse of `parse`.

In: a `nodes.Sketch`. Out: Python-syntax text such that `parse(to_source(sketch)) == sketch`. The text is also what people and
models read, so it has only the parentheses it needs and leaves out what is a default.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from kernelwright.sketch import nodes
from kernelwright.sketch.nodes import Index, IndexOp, Int, Sym, Tile

OPERATORS = {
    "or": ("|", 1), "xor": ("^", 2), "and": ("&", 3), "shl": ("<<", 4), "shr": (">>", 4), "add": ("+", 5), "sub": ("-", 5),
    "mul": ("*", 6), "div": ("/", 6), "floordiv": ("//", 6), "mod": ("%", 6),
}  # fmt: skip
"""Binary operations with an infix form, and how tightly it binds (Python's order)."""

COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}

_COMPARE, _PREFIX, _CALL = 0, 7, 9
_INDEX_PRECEDENCE = {"+": 5, "-": 5, "*": 6, "//": 6, "%": 6}


# ---------------------------------------------------------------- integers and regions


def index_source(index: Index) -> str:
    """An integer expression as source."""
    return _index(index)[0]


def _index(index: Index) -> tuple[str, int]:
    match index:
        case Int(value):
            return str(value), _CALL if value >= 0 else _PREFIX
        case Sym(name):
            return name, _CALL
        case IndexOp("min" | "max" as op, left, right):
            return f"{op}({index_source(left)}, {index_source(right)})", _CALL
        case IndexOp(op, left, right):
            level = _INDEX_PRECEDENCE[op]
            return f"{_wrapped(_index(left), level)} {op} {_wrapped(_index(right), level + 1)}", level
    raise TypeError(f"not an index: {index!r}")


def _wrapped(piece: tuple[str, int], least: int) -> str:
    text, level = piece
    return text if level >= least else f"({text})"


def _span(span: nodes.Span) -> str:
    """`start:stop[:step]`, where the stop is written so that the parser reads the same extent back."""
    reach: Index = span.extent if span.step == Int(1) else IndexOp("*", span.extent, span.step)
    stop = reach if span.start == Int(0) else IndexOp("+", span.start, reach)
    start, end, step = index_source(span.start), index_source(stop), index_source(span.step)
    colon = ":" if max(len(start), len(end)) == 1 or (start.isalnum() and end.isalnum()) else " : "
    return colon.join([start, end] if span.step == Int(1) else [start, end, step])


def region_source(region: Sequence[nodes.Axis]) -> str:
    """What stands between the brackets of a region."""
    parts = []
    for axis in region:
        match axis:
            case nodes.Span():
                parts.append(_span(axis))
            case nodes.At(index):
                parts.append(index_source(index))
            case nodes.Pick(indices):
                parts.append(f"pick({tile_source(indices)})")
    return ", ".join(parts) if parts else "()"


def _shape(shape: Iterable[Index]) -> str:
    return "[" + ", ".join(index_source(extent) for extent in shape) + "]"


# ---------------------------------------------------------------- tiles


def _quoted(text: str) -> str:
    """A string literal that Python and JSON read alike."""
    return json.dumps(text, ensure_ascii=False)


def number_source(value: float | int | bool) -> str:
    """A literal; infinities and NaN by their names."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return repr(value)


def tile_source(tile: Tile) -> str:
    """A tile expression as source."""
    return _tile(tile)[0]


def _call(name: str, *arguments: str, **options: object) -> tuple[str, int]:
    """`name(arguments, option=value)`; options that are None or False are left out."""
    given = [*arguments, *(f"{key}={value!s}" for key, value in options.items() if value is not None and value is not False)]
    return f"{name}({', '.join(given)})", _CALL


def _level(level: str) -> str | None:
    return None if level == "register" else _quoted(level)


def _axes(axes: tuple[int, ...]) -> str:
    return str(axes[0]) if len(axes) == 1 else f"({', '.join(map(str, axes))})"


def _tile(tile: Tile) -> tuple[str, int]:
    match tile:
        case nodes.Var(name):
            return name, _CALL
        case nodes.Number(value):
            text = number_source(value)
            return text, _PREFIX if text.startswith("-") else _CALL
        case nodes.FromIndex(Sym(name)):
            return name, _CALL
        case nodes.FromIndex(index):
            return _call("index", index_source(index))
        case nodes.Iota(extent):
            return _call("iota", index_source(extent))
        case nodes.Full(shape, value, dtype, level):
            return _call("full", _shape(shape), number_source(value), dtype.value, level=_level(level))
        case nodes.Load(tensor, region, pad, level):
            shown = None if pad is None else number_source(pad)
            return _call("load", f"{tensor}[{region_source(region)}]", pad=shown, level=_level(level))
        case nodes.Unary() | nodes.Binary():
            return _maths(tile)
        case nodes.Where(condition, a, b):
            return _call("where", *map(tile_source, (condition, a, b)))
        case nodes.Cast(x, dtype):
            return _call("cast", tile_source(x), dtype.value)
        case nodes.Bitcast(x, dtype):
            return _call("bitcast", tile_source(x), dtype.value)
        case nodes.Gemm(a, b, acc):
            return _call("gemm", *(tile_source(part) for part in (a, b, acc) if part is not None))
    return _movement(tile)


def _maths(tile: nodes.Unary | nodes.Binary) -> tuple[str, int]:
    if isinstance(tile, nodes.Unary):
        sign = {"neg": "-", "invert": "~"}.get(tile.op)
        if sign is None or isinstance(tile.x, nodes.Number):  # "-1.0" is the number, not the operation
            return _call(tile.op, tile_source(tile.x))
        return sign + _wrapped(_tile(tile.x), _PREFIX), _PREFIX
    if tile.op in COMPARISONS:
        sides = (_wrapped(_tile(side), _COMPARE + 1) for side in (tile.a, tile.b))
        return f" {COMPARISONS[tile.op]} ".join(sides), _COMPARE
    if tile.op in OPERATORS:
        sign, level = OPERATORS[tile.op]
        return f"{_wrapped(_tile(tile.a), level)} {sign} {_wrapped(_tile(tile.b), level + 1)}", level
    return _call(tile.op, tile_source(tile.a), tile_source(tile.b))


def _movement(tile: Tile) -> tuple[str, int]:
    match tile:
        case nodes.Reduce(op, x, axes):
            return _call(f"reduce_{op}", tile_source(x), axis=_axes(axes))
        case nodes.ArgReduce(op, x, axis):
            return _call(f"arg_{op}", tile_source(x), axis=axis)
        case nodes.Scan(op, x, axis, reverse, exclusive):
            return _call(f"scan_{op}", tile_source(x), axis=axis, reverse=reverse, exclusive=exclusive)
        case nodes.ArgSort(x, axis, descending):
            return _call("arg_sort", tile_source(x), axis=axis, descending=descending)
        case nodes.Take(x, indices, axis):
            return _call("take", tile_source(x), tile_source(indices), axis=axis)
        case nodes.Permute(x, order):
            return _call("permute", tile_source(x), str(list(order)))
        case nodes.Reshape(x, shape):
            return _call("reshape", tile_source(x), _shape(shape))
        case nodes.Expand(x, shape):
            return _call("expand", tile_source(x), _shape(shape))
        case nodes.Squeeze(x, axis):
            return _call("squeeze", tile_source(x), axis=axis)
        case nodes.Unsqueeze(x, axis):
            return _call("unsqueeze", tile_source(x), axis=axis)
        case nodes.Stack(tiles, axis):
            return _call("stack", f"[{', '.join(map(tile_source, tiles))}]", axis=axis)
        case nodes.Part(x, region):
            return f"{_wrapped(_tile(x), _CALL)}[{region_source(region)}]", _CALL
    raise TypeError(f"not a tile: {tile!r}")


# ---------------------------------------------------------------- statements and the whole


def statement_lines(statement: nodes.Statement, indent: str = "") -> list[str]:
    """The lines of one statement, each behind `indent`."""
    match statement:
        case nodes.Assign(name, value):
            return [f"{indent}{name} = {tile_source(value)}"]
        case nodes.Store(tensor, region, value, mode):
            extra = "" if mode == "set" else f', mode="{mode}"'
            return [f"{indent}store({tensor}[{region_source(region)}], {tile_source(value)}{extra})"]
        case nodes.Comment(text):
            return [f"{indent}# {line}".rstrip() for line in text.split("\n")]
        case nodes.For(var, kind, start, stop, step, body, hints):
            shown = [index_source(start), index_source(stop)] + ([] if step == Int(1) else [index_source(step)])
            shown += [f"{name}={value}" for name, value in hints]
            return [f"{indent}for {var} in {kind}({', '.join(shown)}):", *_body(body, indent + "    ")]
    raise TypeError(f"not a statement: {statement!r}")


def _body(body: Sequence[nodes.Statement], indent: str) -> list[str]:
    lines = [line for statement in body for line in statement_lines(statement, indent)]
    empty = all(isinstance(statement, nodes.Comment) for statement in body)
    return [*lines, f"{indent}pass"] if empty else lines


def _docstring(text: str, indent: str = "") -> str:
    plain = not any(mark in text for mark in ('"""', "\\")) and text.replace("\n", " ").isprintable()
    if not plain or inspect.cleandoc(text) != text or text.endswith('"'):
        return f"{indent}{text!r}"
    lines = text.split("\n")
    rest = [f"{indent}{line}" if line else "" for line in lines[1:]]
    return "\n".join([f'{indent}"""{lines[0]}', *rest]) + (f'\n{indent}"""' if rest else '"""')


def _kernel(kernel: nodes.Kernel) -> list[str]:
    head = "@kernel(once=True)" if kernel.once else "@kernel"
    doc = [_docstring(kernel.doc, "    ")] if kernel.doc else []
    return [head, f"def {kernel.name}():", *doc, *_body(kernel.body, "    ")]


def _region(size: nodes.Size) -> list[str]:
    """What is said of a dynamic size, as far as it says anything."""
    said = {"low": size.low or None, "high": size.high, "multiple_of": size.multiple_of if size.multiple_of > 1 else None}
    return ["dynamic=True", *(f"{name}={value}" for name, value in said.items() if value is not None)] if size.dynamic else []


def _declarations(sketch: nodes.Sketch) -> list[list[str]]:
    sizes = [f"{s.name} = size({', '.join([str(s.value), *_region(s)])})" for s in sketch.sizes]
    tunables = [f"{t.name} = tunable({t.value}, {list(t.domain)})" for t in sketch.tunables]
    constants = [f"constant({_quoted(n)}, [{', '.join(map(number_source, v))}])" for n, v in sketch.constants]
    tensors = []
    for t in sketch.tensors:
        source = f", source={_quoted(t.source)}" if t.source else ""
        tensors.append(f'{t.name} = tensor({_shape(t.shape)}, {t.dtype.value}, role="{t.role}"{source})')
    return [sizes, tunables, constants, tensors]


def _tree(tree: Any) -> str:
    """The returned structure: JSON arrays are tuples, `{"$list": [...]}` is a list."""
    match tree:
        case {"$list": list(items)} if len(tree) == 1:
            return "[" + ", ".join(map(_tree, items)) + "]"
        case dict():
            return "{" + ", ".join(f"{_quoted(key)}: {_tree(value)}" for key, value in tree.items()) + "}"
        case list():
            return "(" + ", ".join(map(_tree, tree)) + ("," if len(tree) == 1 else "") + ")"
        case str():
            return _quoted(tree)
    return repr(tree)


def to_source(sketch: nodes.Sketch) -> str:
    """The sketch as a file that `parse` reads back to an equal sketch."""
    blocks: list[list[str]] = [[_docstring(sketch.doc)]] if sketch.doc else []
    blocks.append([f"name = {_quoted(sketch.name)}"])
    blocks += [lines for lines in _declarations(sketch) if lines]
    for step in sketch.steps:
        if isinstance(step, nodes.Kernel):
            blocks.append(_kernel(step))
        else:
            names = [f"{key}=[{', '.join(map(_quoted, value))}]" for key, value in
                     (("inputs", step.inputs), ("outputs", step.outputs))]  # fmt: skip
            blocks.append([f"library({_quoted(step.operator)}, {', '.join(names)}, attributes={step.attributes!r})"])
    blocks.append([f"returns({_tree(json.loads(sketch.returns))})"])
    return "\n\n".join("\n".join(lines) for lines in blocks) + "\n"
