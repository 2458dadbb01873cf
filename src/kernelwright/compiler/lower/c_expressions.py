"""The table from sketch operations to C expressions on scalars.

In: an operation, its dtype, C texts of the operands. Out: a C text; functions it names are sections of the language's prelude.
Operands arrive as names, literals or parenthesised text, so that no operator here needs to think about precedence.
"""

from __future__ import annotations

from kernelwright.compiler.lower.c_types import COMPUTED, literal
from kernelwright.core.dtypes import FLOATS, HALVES
from kernelwright.core.errors import SketchError
from kernelwright.sketch.nodes import DType

_FUNCTIONS = """
exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sigmoid erf
erfc erfinv lgamma
"""
MATH_FUNCTIONS = frozenset(_FUNCTIONS.split())
"""Operations that are a prelude function of the same name with suffix `_of`, overloaded for float and double."""

UNARY = {
    "neg": "-{0}",
    "abs": "std::fabs({0})",
    "sign": "sign_of({0})",
    "sqrt": "std::sqrt({0})",
    "rsqrt": "{1} / std::sqrt({0})",
    "reciprocal": "{1} / {0}",
    "floor": "std::floor({0})",
    "ceil": "std::ceil({0})",
    "trunc": "std::trunc({0})",
    "round": "std::rint({0})",
    "isnan": "{0} != {0}",
    "isinf": "std::fabs({0}) == INFINITY",
    "logical_not": "{0} == 0",
}
"""How an operation of one float is written that is no function of the prelude; {1} is the number one."""

_UNARY_INTEGER = {
    "neg": "-{0}",
    "abs": "({0} < 0 ? -{0} : {0})",
    "sign": "({0} > 0) - ({0} < 0)",
    "floor": "{0}",
    "ceil": "{0}",
    "trunc": "{0}",
    "round": "{0}",
    "isnan": "false",
    "isinf": "false",
    "logical_not": "{0} == 0",
    "invert": "~{0}",
}

_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^", "shl": "<<", "shr": ">>"}
CALLS = {
    "floordiv": "floordiv_of",
    "mod": "mod_of",
    "fmod": "fmod_of",
    "pow": "pow_of",
    "atan2": "std::atan2",
    "copysign": "std::copysign",
}
"""Operations of two numbers that are calls."""


def rounded(text: str, dtype: DType) -> str:
    """A result brought back into its dtype where C computes wider."""
    if dtype in HALVES:
        return f"round_{dtype}({text})"
    if dtype in (DType.i8, DType.u8, DType.i16):
        return f"{COMPUTED[dtype]}({text})"
    return text


def unary(op: str, x: str, dtype: DType) -> str:
    """One operand; `dtype` is the operand's. Comparisons with NaN and the like give bool."""
    if dtype is DType.bool:
        return f"!{x}" if op in ("logical_not", "invert") else _UNARY_INTEGER[op].format(x)
    if dtype in FLOATS:
        if op in MATH_FUNCTIONS:
            return rounded(f"{op}_of({x})", dtype)
        if op not in UNARY:
            raise SketchError(f"C has no function for {op}: it lacks a line in lower/c_expressions.py")
        text = UNARY[op].format(x, literal(1, dtype))
    elif op in MATH_FUNCTIONS or op not in _UNARY_INTEGER:
        raise SketchError(f"C has no function for {op} of {dtype.value}")
    else:
        text = _UNARY_INTEGER[op].format(x)
    return text if op in ("isnan", "isinf", "logical_not", "neg", "abs") and dtype in FLOATS else rounded(text, dtype)


def binary(op: str, a: str, b: str, dtype: DType) -> str:
    """Two operands of one dtype."""
    if op in _COMPARISONS:
        return f"{a} {_COMPARISONS[op]} {b}"
    if op == "logical_and":
        return f"({a} != 0) & ({b} != 0)" if dtype is not DType.bool else f"{a} & {b}"
    if op == "logical_or":
        return f"({a} != 0) | ({b} != 0)" if dtype is not DType.bool else f"{a} | {b}"
    if op in ("maximum", "minimum"):
        name = "max" if op == "maximum" else "min"
        return f"nan_{name}({a}, {b})" if dtype in FLOATS else f"{name}_of<{COMPUTED[dtype]}>({a}, {b})"
    if dtype is DType.bool:
        op = {"add": "or", "mul": "and"}.get(op, op)
    if op in CALLS:
        kind = "" if dtype in FLOATS else f"<{COMPUTED[dtype]}>"
        return rounded(f"{CALLS[op]}{kind}({a}, {b})", dtype)
    return rounded(f"{a} {_ARITHMETIC[op]} {b}", dtype)


def reduction(op: str, a: str, b: str, dtype: DType) -> str:
    """One step of a reduction or scan: accumulator `a`, element `b`."""
    step = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum", "any": "logical_or", "all": "logical_and"}
    if op == "logsumexp":
        return rounded(f"logaddexp_of({a}, {b})", dtype)
    return binary(step[op], a, b, dtype)


def cast(x: str, source: DType, target: DType) -> str:
    """torch's `.to(dtype)`."""
    if source is target:
        return x
    if target is DType.bool:
        return f"{x} != 0"
    if target in HALVES:
        wide = x if source in (DType.f32, *HALVES) else f"float({x})"
        return rounded(wide, target)
    if COMPUTED[source] == COMPUTED[target]:
        return x
    return f"{COMPUTED[target]}({x})"


def load(x: str, dtype: DType) -> str:
    """A stored element as a value."""
    return f"from_{dtype}({x})" if dtype in HALVES else x


def store(x: str, dtype: DType) -> str:
    """A value as a stored element; a rounding just made is not made twice."""
    if dtype not in HALVES:
        return x
    prefix = f"round_{dtype}("
    inner = x[len(prefix) : -1] if x.startswith(prefix) and x.endswith(")") else x
    return f"to_{dtype}({inner if _balanced(inner) else x})"


def _balanced(text: str) -> bool:
    depth = 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if depth < 0:
            return False
    return depth == 0
