"""How each dtype is stored and computed in C.

Half floats are stored as 16-bit integers and computed as float: a value of such a tile is always a float that fits in 16 bits.
"""

from __future__ import annotations

import math
import struct

from kernelwright.core.dtypes import FLOATS
from kernelwright.sketch.nodes import DType

STORED = {dtype: dtype.c_name for dtype in DType}
"""The type of an element in memory (tensors and buffers)."""

COMPUTED = STORED | {DType.f16: "float", DType.bf16: "float"}
"""The type of a value in an expression."""


def literal(value: float | int | bool, dtype: DType) -> str:
    """A number as C text of the computed type."""
    if dtype is DType.bool:
        return "true" if value else "false"
    if dtype not in FLOATS:
        whole = int(value)
        if whole == -(2**63):
            return "INT64_MIN"
        return f"{whole}L" if dtype is DType.i64 and not -(2**31) < whole < 2**31 else str(whole)
    number = float(value)
    if math.isnan(number):
        return "NAN"
    if math.isinf(number):
        return "INFINITY" if number > 0 else "-INFINITY"
    if dtype is DType.f64:
        return repr(number)
    if dtype is DType.f16:
        try:
            number = struct.unpack("e", struct.pack("e", number))[0]
        except OverflowError:
            return "INFINITY" if number > 0 else "-INFINITY"
    return _float_text(number, dtype is DType.bf16)


def _float_text(number: float, bfloat: bool) -> str:
    try:
        bits: int = struct.unpack("I", struct.pack("f", number))[0]
    except OverflowError:
        return "INFINITY" if number > 0 else "-INFINITY"
    if bfloat:
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    single: float = struct.unpack("f", struct.pack("I", bits))[0]
    for digits in range(1, 10):  # the shortest text that reads back as the same float
        text = f"{single:.{digits}g}"
        if struct.pack("f", float(text)) == struct.pack("f", single):
            break
    return f"{text}f" if any(c in text for c in ".en") else f"{text}.0f"
