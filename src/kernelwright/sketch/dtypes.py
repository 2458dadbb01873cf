"""Which element types each operation takes and gives.

In: an operation's name and the dtype of its operands. Out: the dtype of its result, or a SketchError with the cure.
"""

from __future__ import annotations

from kernelwright.core.dtypes import FLOATS, HALVES, DType
from kernelwright.core.errors import SketchError
from kernelwright.sketch import nodes

_ANY_NUMBER = frozenset({"neg", "abs", "sign"})
_TO_BOOL = frozenset({"isnan", "isinf", "logical_not"})
COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
LOGICAL = frozenset({"logical_and", "logical_or"})
_BITS = frozenset({"and", "or", "xor"})
_SHIFTS = frozenset({"shl", "shr"})
_FLOAT_ONLY = frozenset({"div", "atan2", "copysign"})


def wider(a: DType, b: DType) -> DType:
    """The dtype a person most likely means when two meet."""
    if (a in FLOATS) != (b in FLOATS):
        return a if a in FLOATS else b
    return a if a.size >= b.size else b


def unary_dtype(op: str, dtype: DType) -> DType:
    """The dtype of a function of one tile."""
    if op not in nodes.UNARY:
        raise SketchError(f"unknown function {op}")
    if op == "invert":
        if dtype in FLOATS:
            raise SketchError(f"~ of a {dtype.value} tile", hint="it is for bool and integers")
        return dtype
    if op == "logical_not":
        return DType.bool
    if op in _ANY_NUMBER:
        if dtype is DType.bool:
            raise SketchError(f"{op} of a bool tile", hint="cast it first")
        return dtype
    if dtype not in FLOATS:
        raise SketchError(f"{op} of a {dtype.value} tile", hint="cast it to f32 first")
    return DType.bool if op in _TO_BOOL else dtype


def binary_dtype(op: str, dtype: DType) -> DType:
    """The dtype of an operation of two tiles of one dtype."""
    if op not in nodes.BINARY:
        raise SketchError(f"unknown function {op}")
    if op in COMPARISONS or op in LOGICAL:
        return DType.bool
    if op in _BITS:
        if dtype in FLOATS:
            raise SketchError(f"bitwise {op} of {dtype.value} tiles", hint="compare first: the bits of bool and integers only")
        return dtype
    if dtype is DType.bool:
        raise SketchError(f"{op} of bool tiles", hint="cast them first, or use &, |, ^")
    if op in _SHIFTS and dtype in FLOATS:
        raise SketchError(f"{op} of {dtype.value} tiles", hint="shifts are for integers")
    if op in _FLOAT_ONLY and dtype not in FLOATS:
        raise SketchError(f"{op} of {dtype.value} tiles", hint="use // for integers, or cast to f32 first")
    return dtype


def require_ordered(what: str, dtype: DType) -> None:
    """Positions of extremes and sorting need an order."""
    if dtype is DType.bool:
        raise SketchError(f"{what} of a bool tile", hint="cast it to i32 first")


def require_reducible(what: str, op: str, dtype: DType) -> None:
    """Which dtypes a reduction or scan takes."""
    if op in ("any", "all"):
        if dtype is not DType.bool:
            raise SketchError(f"{what} of a {dtype.value} tile", hint="compare first: x != 0")
        return
    if dtype is DType.bool:
        raise SketchError(f"{what} of a bool tile", hint="use reduce_any or reduce_all, or cast to i64 first")
    if op in ("sum", "prod", "logsumexp") and dtype in HALVES:
        raise SketchError(f"{what} of a {dtype.value} tile", hint="cast it to f32 first")
    if op == "logsumexp" and dtype not in FLOATS:
        raise SketchError(f"{what} of a {dtype.value} tile", hint="cast it to f32 first")
