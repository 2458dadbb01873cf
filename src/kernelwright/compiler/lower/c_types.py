"""How each dtype is stored and computed in C.

Half floats are stored as 16-bit integers and computed as float: a value of such a tile is always a float that fits in 16 bits.
"""

from __future__ import annotations

import math
import struct

from kernelwright.sketch.nodes import DType

STORED = {
    DType.f64: "double", DType.f32: "float", DType.f16: "uint16_t", DType.bf16: "uint16_t", DType.i64: "int64_t",
    DType.i32: "int32_t", DType.i16: "int16_t", DType.i8: "int8_t", DType.u8: "uint8_t", DType.bool: "bool",
}  # fmt: skip
"""The type of an element in memory (tensors and buffers)."""

COMPUTED = STORED | {DType.f16: "float", DType.bf16: "float"}
"""The type of a value in an expression."""

WIDTH = {
    DType.f64: 8, DType.f32: 4, DType.f16: 2, DType.bf16: 2, DType.i64: 8, DType.i32: 4, DType.i16: 2, DType.i8: 1, DType.u8: 1,
    DType.bool: 1,
}  # fmt: skip

FLOATS = frozenset({DType.f64, DType.f32, DType.f16, DType.bf16})
HALVES = frozenset({DType.f16, DType.bf16})


def lowest(dtype: DType) -> float | int | bool:
    """The neutral element of max."""
    if dtype in FLOATS:
        return -math.inf
    if dtype is DType.bool:
        return False
    return 0 if dtype is DType.u8 else -(2 ** (8 * WIDTH[dtype] - 1))


def highest(dtype: DType) -> float | int | bool:
    """The neutral element of min."""
    if dtype in FLOATS:
        return math.inf
    if dtype is DType.bool:
        return True
    return 255 if dtype is DType.u8 else 2 ** (8 * WIDTH[dtype] - 1) - 1


def neutral(op: str, dtype: DType) -> float | int | bool:
    """What a reduction starts from."""
    match op:
        case "sum":
            return False if dtype is DType.bool else 0
        case "prod":
            return 1
        case "max":
            return lowest(dtype)
        case "min":
            return highest(dtype)
        case "any":
            return False
        case "all":
            return True
        case _:
            return -math.inf  # logsumexp


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
