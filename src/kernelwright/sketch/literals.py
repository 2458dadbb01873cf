"""Literals and calls of a Sketch's source: numbers, strings, flags, dtypes, and a call's arguments by name.

In: `ast` nodes. Out: Python values, or a SketchError with the line and what to write instead.
"""

from __future__ import annotations

import ast
import difflib
import math
from collections.abc import Iterable, Sequence

from kernelwright.core.dtypes import from_torch
from kernelwright.core.errors import SketchError
from kernelwright.sketch.nodes import DType

Number = float | int | bool


def fault(reason: str, node: ast.AST, hint: str = "", path: str = "sketch") -> SketchError:
    """A SketchError at a syntax node's line."""
    return SketchError(reason, line=getattr(node, "lineno", 0), hint=hint, path=path)


def similar(name: str, known: Iterable[str]) -> str:
    """A hint that names the closest known name, if one is close."""
    match = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean {match[0]}?" if match else ""


def arguments(call: ast.Call, required: Sequence[str], optional: Sequence[str], path: str = "sketch") -> dict[str, ast.expr]:
    """A call's arguments by name; wrong counts and unknown keywords are errors that show the signature."""
    name = call.func.id if isinstance(call.func, ast.Name) else "this call"
    order = [*required, *optional]
    shown = f"{name}({', '.join([*required, *(f'{o}=…' for o in optional)])})"
    if len(call.args) > len(order):
        raise fault(f"{name} takes at most {len(order)} arguments, not {len(call.args)}", call, f"write {shown}", path)
    given = dict(zip(order, call.args, strict=False))
    for argument in call.keywords:
        if argument.arg not in order:
            raise fault(
                f"{name} has no argument {argument.arg!r}", call, similar(argument.arg or "", order) or f"write {shown}", path
            )
        if argument.arg in given:
            raise fault(f"{name} got {argument.arg} twice", call, f"write {shown}", path)
        given[argument.arg] = argument.value
    missing = [argument for argument in required if argument not in given]
    if missing:
        raise fault(f"{name} needs {', '.join(missing)}", call, f"write {shown}", path)
    return given


# ---------------------------------------------------------------- literals


def literal_number(node: ast.expr, path: str = "sketch") -> Number:
    """A number, also inf and nan, with signs and plain arithmetic of numbers."""
    value = folded(node)
    if value is None:
        raise fault(f"{ast.unparse(node)} is not a number literal", node, path=path)
    return value


def folded(node: ast.expr) -> Number | None:
    """The number that an expression of literals is, or None."""
    match node:
        case ast.Constant(value=bool() | int() | float() as value):
            return value
        case ast.Name(id="inf"):
            return math.inf
        case ast.Name(id="nan"):
            return math.nan
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = folded(operand)
            return None if inner is None or isinstance(inner, bool) else -inner
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return folded(operand)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() as op, right=right):
            a, b = folded(left), folded(right)
            if a is None or b is None or (isinstance(op, ast.Div) and b == 0):
                return None
            match op:
                case ast.Add():
                    return a + b
                case ast.Sub():
                    return a - b
                case ast.Mult():
                    return a * b
            return a / b
    return None


def literal_string(node: ast.expr, what: str, path: str = "sketch") -> str:
    """A string literal."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise fault(f"{what} must be a string literal", node, path=path)


def literal_flag(node: ast.expr, what: str, path: str = "sketch") -> bool:
    """True or False."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return node.value
    raise fault(f"{what} must be True or False", node, path=path)


def literal_int(node: ast.expr, what: str, path: str = "sketch") -> int:
    """An integer literal, maybe negative."""
    value = folded(node)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise fault(f"{what} must be an integer literal", node, path=path)


def dtype_name(node: ast.expr, path: str = "sketch") -> DType:
    """One of the element types."""
    if isinstance(node, ast.Name) and node.id in DType.__members__:
        return DType(node.id)
    known = list(DType.__members__)
    text = ast.unparse(node)
    short = from_torch(text.rsplit(".", 1)[-1])
    raise fault(f"{text} is not a dtype", node, f"write {short}" if short else f"dtypes are {', '.join(known)}", path)
