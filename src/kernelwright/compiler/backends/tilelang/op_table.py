"""The table from sketch operations to TileLang expressions of one element.

In: an operation, its dtype, texts of the operands. Out: a text. f16 and bf16 are computed in fp32 and rounded once per operation, as the
sketch says. Functions that TileLang's language lacks are CUDA's own, called by name.
"""

from __future__ import annotations

import math

from kernelwright.compiler.lower.tile_programs.elements import products
from kernelwright.core.dtypes import FLOATS, HALVES
from kernelwright.core.errors import SketchError
from kernelwright.core.operations import gives_bool
from kernelwright.sketch.nodes import DType

LANGUAGE = "TileLang"
UNARY = {
    "exp": "T.exp", "exp2": "T.exp2", "log": "T.log", "log2": "T.log2", "log10": "T.log10", "sin": "T.sin", "cos": "T.cos",
    "tan": "T.tan", "sinh": "T.sinh", "cosh": "T.cosh", "tanh": "T.tanh", "atan": "T.atan", "erf": "T.erf", "floor": "T.floor",
    "ceil": "T.ceil", "trunc": "T.trunc", "round": "T.nearbyint", "abs": "T.abs", "sqrt": "T.sqrt", "rsqrt": "T.rsqrt",
}  # fmt: skip
"""Functions by name: what is called, or (with {0}) what is written."""
_CUDA = frozenset(
    {"expm1", "log1p", "asin", "acos", "asinh", "acosh", "atanh", "erfc", "erfinv", "lgamma", "atan2", "copysign"}
)
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>",
          "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}  # fmt: skip


def number(value: float | int | bool, dtype: DType) -> str:
    """A literal with its dtype."""
    name = dtype.torch_name
    if dtype is DType.bool:
        return f"T.bool({bool(value)})"
    if dtype not in FLOATS:
        return f"T.{name}({int(value)})"
    if math.isnan(value):
        return f'(T.infinity("{name}") - T.infinity("{name}"))'
    if math.isinf(value):
        return f'{"" if value > 0 else "-"}T.infinity("{name}")'
    return f"T.{name}({float(value)!r})"


def cast(x: str, source: DType, goal: DType) -> str:
    """torch's `.to`: anything to bool is `!= 0`."""
    if source is goal:
        return x
    if goal is DType.bool:
        return f"({x} != {number(0, source)})"
    return f'T.cast({x}, "{goal.torch_name}")'


def unary(op: str, x: str, dtype: DType) -> str:
    """One operand; `dtype` is the operand's."""
    if dtype in HALVES and not gives_bool(op) and op != "neg":
        return cast(_unary(op, cast(x, dtype, DType.f32), DType.f32), DType.f32, dtype)
    return _unary(op, x, dtype)


def _unary(op: str, x: str, dtype: DType) -> str:
    one, zero = number(1, dtype), number(0, dtype)
    match op:
        case "neg":
            return f"(-{x})"
        case "isnan":
            return f"({x} != {x})"
        case "isinf":
            return f"(T.abs({x}) == {number(math.inf, dtype)})"
        case "logical_not":
            return f"({x} == {zero})"
        case "invert":
            return f"({x} == {zero})" if dtype is DType.bool else f"(~{x})"
        case "reciprocal":
            return f"({one} / {x})"
        case "sigmoid":
            return f"({one} / ({one} + T.exp(-{x})))"
        case "sign":
            return f"T.if_then_else({x} > {zero}, {one}, T.if_then_else({x} < {zero}, -{one}, {x}))"
    if dtype not in FLOATS and op in ("floor", "ceil", "trunc", "round"):
        return x
    if op in UNARY:
        return UNARY[op].format(x) if "{" in UNARY[op] else f"{UNARY[op]}({x})"
    return _cuda(op, dtype, x)


def _cuda(op: str, dtype: DType, *args: str) -> str:
    if op not in _CUDA or dtype not in (DType.f32, DType.f64):
        raise SketchError(f"TileLang has no function for {op} of {dtype.torch_name}")
    symbol = f"{op}f" if dtype is DType.f32 else op
    return f'T.call_extern("{dtype.torch_name}", "{symbol}", {", ".join(args)})'


def binary(op: str, a: str, b: str, dtype: DType) -> str:
    """Two operands of one dtype."""
    if dtype in HALVES and not gives_bool(op) and op not in ("maximum", "minimum"):
        wide = _binary(op, cast(a, dtype, DType.f32), cast(b, dtype, DType.f32), DType.f32)
        return cast(wide, DType.f32, dtype)
    return _binary(op, a, b, dtype)


def _binary(op: str, a: str, b: str, dtype: DType) -> str:
    floats, zero = dtype in FLOATS, number(0, dtype)
    if op in ("maximum", "minimum"):
        return f"T.{op[:3]}({a}, {b})"
    if op in ("logical_and", "logical_or"):
        sign = "&" if op == "logical_and" else "|"
        return f"({a} {sign} {b})" if dtype is DType.bool else f"(({a} != {zero}) {sign} ({b} != {zero}))"
    if op == "floordiv":
        return f"T.floor({a} / {b})" if floats else f"T.floordiv({a}, {b})"
    if op == "mod":
        return f"({a} - T.floor({a} / {b}) * {b})" if floats else f"T.floormod({a}, {b})"
    if op == "fmod":
        return f"T.fmod({a}, {b})" if floats else f"T.truncmod({a}, {b})"
    if op == "pow" and floats:
        return f"T.pow({a}, {b})"
    if op in _CUDA:
        return _cuda(op, dtype, a, b)
    if dtype is DType.bool:
        op = {"add": "or", "mul": "and", "eq": "eq", "ne": "xor"}.get(op, op)
    if op not in _SIGNS:
        raise SketchError(f"TileLang has no {op} of {dtype.torch_name}")
    return f"({a} {_SIGNS[op]} {b})"


def small_power(x: str, power: float, dtype: DType) -> str | None:
    """Powers that are products and roots."""
    return None if dtype in HALVES else products(x, power, dtype in FLOATS, number(1, dtype), "T.sqrt")


def where(test: str, a: str, b: str) -> str:
    """A choice."""
    return f"T.if_then_else({test}, {a}, {b})"


def bitcast(x: str, goal: DType) -> str:
    """The same bits, read as another dtype."""
    return f'T.reinterpret({x}, "{goal.torch_name}")'
