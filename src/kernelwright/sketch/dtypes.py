"""Which element types each operation takes and gives.

In: an operation's name and the dtype of its operands. Out: the dtype of its result, or a SketchError with the cure.
"""

from __future__ import annotations

from kernelwright.core.dtypes import FLOATS, HALVES, DType
from kernelwright.core.errors import SketchError
from kernelwright.core.operations import BINARY, UNARY

_CURE = {
    "number": "cast it first",
    "float": "cast it to f32 first",
    "integer": "shifts are for integers",
    "bits": "compare first: the bits of bool and integers only",
}


def wider(a: DType, b: DType) -> DType:
    """The dtype a person most likely means when two meet."""
    if (a in FLOATS) != (b in FLOATS):
        return a if a in FLOATS else b
    return a if a.size >= b.size else b


def unary_dtype(op: str, dtype: DType) -> DType:
    """The dtype of a function of one tile."""
    row = UNARY.get(op)
    if row is None:
        raise SketchError(f"unknown function {op}")
    if not row.accepts(dtype):
        if op == "invert":
            raise SketchError(f"~ of a {dtype.value} tile", hint="it is for bool and integers")
        raise SketchError(f"{op} of a {dtype.value} tile", hint=_CURE[row.takes])
    return DType.bool if row.gives == "bool" else dtype


def binary_dtype(op: str, dtype: DType) -> DType:
    """The dtype of an operation of two tiles of one dtype."""
    row = BINARY.get(op)
    if row is None:
        raise SketchError(f"unknown function {op}")
    if not row.accepts(dtype):
        if dtype is DType.bool:
            raise SketchError(f"{op} of bool tiles", hint="cast them first, or use &, |, ^")
        what = f"bitwise {op}" if row.takes == "bits" else op
        hint = "use // for integers, or cast to f32 first" if row.takes == "float" else _CURE[row.takes]
        raise SketchError(f"{what} of {dtype.value} tiles", hint=hint)
    return DType.bool if row.gives == "bool" else dtype


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
