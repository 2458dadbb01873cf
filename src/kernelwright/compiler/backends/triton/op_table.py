"""The table from sketch operations to Triton expressions.

In: an operation, its dtype, texts of the operands. Out: a text. Operands arrive as names, literals or parenthesised text. f16 and bf16
are computed in fp32 and rounded once per operation, as the sketch says. Functions that Triton's language lacks are libdevice's.
"""

from __future__ import annotations

import math

from kernelwright.compiler.lower.tile_programs.elements import products
from kernelwright.core.dtypes import FLOATS, HALVES
from kernelwright.core.errors import SketchError
from kernelwright.core.operations import gives_bool
from kernelwright.sketch.nodes import DType

LANGUAGE = "Triton"

TYPE = {dtype: f"tl.{dtype.torch_name}" for dtype in DType} | {DType.bool: "tl.int1"}

UNARY = {
    "exp": "tl.exp", "exp2": "tl.exp2", "log": "tl.log", "log2": "tl.log2", "sin": "tl.sin", "cos": "tl.cos", "erf": "tl.erf",
    "floor": "tl.floor", "ceil": "tl.ceil", "abs": "tl.abs", "sqrt": "tl.sqrt_rn", "rsqrt": "tl.rsqrt", "sigmoid": "tl.sigmoid",
} | {
    name: f"libdevice.{name}"
    for name in ("expm1", "log10", "log1p", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
                 "erfc", "erfinv", "lgamma", "trunc")
} | {"round": "libdevice.rint"}  # fmt: skip
"""Functions by name: what is called, or (with {0}) what is written."""
BINARY = {op: f"libdevice.{op}" for op in ("pow", "atan2", "copysign")}
"""Functions of two floats."""
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>",
          "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}  # fmt: skip
_DIVISIONS = {
    "floordiv": ("_floor_div({0}, {1})", "tl.floor({0} / {1})"),
    "mod": ("_floor_mod({0}, {1})", "_remainder({0}, {1})"),
    "fmod": ("({0} % {1})", "libdevice.fmod({0}, {1})"),
}
"""Of integers, and of floats."""


def number(value: float | int | bool, dtype: DType) -> str:
    """A literal."""
    if dtype is DType.bool:
        return "True" if value else "False"
    if dtype not in FLOATS:
        return str(int(value))
    if math.isnan(value):
        return 'float("nan")'
    if math.isinf(value):
        return 'float("inf")' if value > 0 else '-float("inf")'
    return repr(float(value))


def cast(x: str, source: DType, goal: DType) -> str:
    """torch's `.to`: anything to bool is `!= 0`."""
    if source is goal:
        return x
    if goal is DType.bool:
        return f"({x} != 0)"
    if goal in (DType.i8, DType.u8, DType.i16) and source in FLOATS:
        return f"{x}.to(tl.int32).to({TYPE[goal]})"
    return f"{x}.to({TYPE[goal]})"


def where(test: str, a: str, b: str) -> str:
    """A choice."""
    return f"tl.where({test}, {a}, {b})"


def bitcast(x: str, goal: DType) -> str:
    """The same bits, read as another dtype."""
    return f"{x}.to({TYPE[goal]}, bitcast=True)"


def unary(op: str, x: str, dtype: DType) -> str:
    """One operand; `dtype` is the operand's."""
    if dtype in HALVES and not gives_bool(op) and op not in ("neg", "abs"):
        return f"{_unary(op, f'{x}.to(tl.float32)', DType.f32)}.to({TYPE[dtype]})"
    return _unary(op, x, dtype)


def _unary(op: str, x: str, dtype: DType) -> str:
    if op == "neg":
        return f"(-{x})"
    if op == "isnan":
        return f"({x} != {x})"
    if op == "isinf":
        return f'(tl.abs({x}) == float("inf"))'
    if op == "logical_not":
        return f"({x} == 0)"
    if op == "invert":
        return f"({x} == 0)" if dtype is DType.bool else f"(~{x})"
    if op == "reciprocal":
        return f"(1.0 / {x})"
    if op == "sign":
        return (
            f"tl.where({x} > 0, {x} * 0 + 1, tl.where({x} < 0, {x} * 0 - 1, {x}))"
            if dtype not in FLOATS
            else (f"tl.where({x} > 0, 1.0, tl.where({x} < 0, -1.0, {x}))")
        )
    if dtype not in FLOATS and op in ("floor", "ceil", "trunc", "round"):
        return x
    name = UNARY.get(op)
    if name is None:
        raise SketchError(f"Triton has no function for {op}")
    return name.format(x) if "{" in name else f"{name}({x})"


def binary(op: str, a: str, b: str, dtype: DType) -> str:
    """Two operands of one dtype."""
    if dtype in HALVES and not gives_bool(op) and op not in ("maximum", "minimum"):
        wide = _binary(op, f"{a}.to(tl.float32)" if _is_name(a) else a, f"{b}.to(tl.float32)" if _is_name(b) else b, DType.f32)
        return f"{wide}.to({TYPE[dtype]})"
    return _binary(op, a, b, dtype)


def _is_name(text: str) -> bool:
    """A literal has no dtype of its own."""
    return not (text[:1].isdigit() or text.startswith(("-", "float(")))


def _binary(op: str, a: str, b: str, dtype: DType) -> str:
    floats = dtype in FLOATS
    if op in ("maximum", "minimum"):
        nan = ", propagate_nan=tl.PropagateNan.ALL" if floats else ""
        return f"tl.{op}({a}, {b}{nan})"
    if op == "logical_and":
        return f"({a} & {b})" if dtype is DType.bool else f"(({a} != 0) & ({b} != 0))"
    if op == "logical_or":
        return f"({a} | {b})" if dtype is DType.bool else f"(({a} != 0) | ({b} != 0))"
    if op in _DIVISIONS:
        return _DIVISIONS[op][floats].format(a, b)
    if op in BINARY:
        if not floats:
            raise SketchError(f"Triton has no {op} of integers")
        return f"{BINARY[op]}({a}, {b})"
    if dtype is DType.bool:
        op = {"add": "or", "mul": "and"}.get(op, op)
    return f"({a} {_SIGNS[op]} {b})"


def small_power(x: str, power: float, dtype: DType) -> str | None:
    """Powers that are products and roots."""
    return None if dtype in HALVES else products(x, power, dtype in FLOATS, "1.0", "tl.sqrt_rn")


HELPERS = {
    "_maximum": '''@triton.jit
def _maximum(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
''',
    "_minimum": '''@triton.jit
def _minimum(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
''',
    "_product": '''@triton.jit
def _product(a, b):
    return a * b
''',
    "_log_sum_exp": '''@triton.jit
def _log_sum_exp(a, b):
    top = tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
    low = tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
    return tl.where((top == low) & (tl.abs(top) == float("inf")), top, top + libdevice.log1p(tl.exp(low - top)))
''',
    "_floor_div": '''@triton.jit
def _floor_div(a, b):
    quotient = a // b
    rest = a % b
    return tl.where((rest != 0) & ((rest < 0) != (b < 0)), quotient - 1, quotient)
''',
    "_floor_mod": '''@triton.jit
def _floor_mod(a, b):
    rest = a % b
    return tl.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)
''',
    "_remainder": '''@triton.jit
def _remainder(a, b):
    rest = libdevice.fmod(a, b)
    return tl.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)
''',
    "_order": '''@triton.jit
def _order(x):
    """The bits of a float as an integer that sorts as the floats do; NaN is the largest."""
    bits = (x + 0.0).to(tl.int32, bitcast=True)
    key = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    return tl.where(x != x, 0x7FFFFFFF, key)
''',
}  # fmt: skip
"""Device functions that a file may need, by name."""
