"""The one table of element types.

A row is a member of `DType`: its name in a sketch, the bytes an element takes, its kind, how PyTorch (and NumPy, where it has
the type) calls it, and its type in C memory. Everything that is asked of a dtype is a property of its row; a language adds only
what it spells otherwise. A new dtype is one row here, and a spelling in each language that has it.
"""

from __future__ import annotations

import builtins
import math
from enum import StrEnum
from typing import Literal

Kind = Literal["float", "signed", "unsigned", "bool"]
Number = float | int | bool


class DType(StrEnum):
    """Element types; the names are those a Sketch uses."""

    size: int
    kind: Kind
    torch_name: str
    c_name: str
    mantissa: int

    def __new__(
        cls, name: str, size: int = 0, kind: Kind = "bool", torch_name: str = "", c_name: str = "", mantissa: int = 0
    ) -> DType:
        row = str.__new__(cls, name)
        row._value_ = name
        row.size, row.kind, row.torch_name, row.c_name, row.mantissa = size, kind, torch_name, c_name, mantissa
        return row

    # name, bytes, kind, PyTorch's name, C type in memory (f16 and bf16 are stored as their bits), bits of a float's mantissa
    f64 = "f64", 8, "float", "float64", "double", 52
    f32 = "f32", 4, "float", "float32", "float", 23
    f16 = "f16", 2, "float", "float16", "uint16_t", 10
    bf16 = "bf16", 2, "float", "bfloat16", "uint16_t", 7
    i64 = "i64", 8, "signed", "int64", "int64_t"
    i32 = "i32", 4, "signed", "int32", "int32_t"
    i16 = "i16", 2, "signed", "int16", "int16_t"
    i8 = "i8", 1, "signed", "int8", "int8_t"
    u8 = "u8", 1, "unsigned", "uint8", "uint8_t"
    bool = "bool", 1, "bool", "bool", "bool"

    @property
    def is_float(self) -> builtins.bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> builtins.bool:
        """Whether it counts (bool does not)."""
        return self.kind in ("signed", "unsigned")

    @property
    def is_half(self) -> builtins.bool:
        """Whether it is a float of two bytes, which is computed in f32."""
        return self.is_float and self.size == 2

    @property
    def bits(self) -> int:
        """Bits of a value: one for bool."""
        return 1 if self.kind == "bool" else 8 * self.size

    @property
    def epsilon(self) -> float:
        """The distance from 1 to the next float."""
        return math.ldexp(1.0, -self.mantissa)

    @property
    def lowest(self) -> Number:
        """The least value, from which a maximum starts."""
        match self.kind:
            case "float":
                return -math.inf
            case "signed":
                return -(1 << (self.bits - 1))
            case "unsigned":
                return 0
        return False

    @property
    def highest(self) -> Number:
        """The greatest value, from which a minimum starts."""
        match self.kind:
            case "float":
                return math.inf
            case "signed":
                return (1 << (self.bits - 1)) - 1
            case "unsigned":
                return (1 << self.bits) - 1
        return True

    @property
    def computed(self) -> DType:
        """The dtype in which values of this one are computed."""
        return DType.f32 if self.is_half else self


FLOATS = frozenset(d for d in DType if d.is_float)
INTEGERS = frozenset(d for d in DType if d.is_integer)
HALVES = frozenset(d for d in DType if d.is_half)

PROMOTION = (DType.bool, DType.u8, DType.i8, DType.i16, DType.i32, DType.i64, DType.f16, DType.bf16, DType.f32, DType.f64)
"""PyTorch's order of dtypes: of two, the later one is the dtype of a result that has room for both. f16 and bf16 meet in f32,
u8 and i8 in i16."""

_OF_TORCH = {d.torch_name: d for d in DType}


def from_torch(dtype: object) -> DType | None:
    """The row of a `torch.dtype`, or of its name with or without "torch."; None for one that no sketch has."""
    return _OF_TORCH.get(str(dtype).removeprefix("torch."))


def promoted(a: DType, b: DType) -> DType:
    """The dtype of PyTorch's result for tensors of two dtypes."""
    if a is not b and a.is_half and b.is_half:
        return DType.f32
    if {a, b} == {DType.u8, DType.i8}:
        return DType.i16
    return max(a, b, key=PROMOTION.index)
