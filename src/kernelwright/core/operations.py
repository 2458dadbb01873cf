"""The one table of scalar operations, and of the reductions made of them.

A row says what an operation of one or two numbers is called, which dtypes it takes and gives, which function of PyTorch it is, and what
it costs. Checker, interpreter, operator table of the frontend and cost models read the rows; a language adds only its spelling (one
line in its own table). So a new scalar primitive is one row here and one line for each language.

A reduction's row says by which operation of two numbers it goes on, and what it starts from (a number, or the least or greatest value
of the dtype).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from kernelwright.core.dtypes import DType, Number

Takes = Literal["any", "number", "float", "integer", "bits"]
"""Dtypes of the operands: all; all but bool; floats; integers; bool and integers."""


@dataclass(frozen=True)
class Operation:
    """`torch` is the function's name in PyTorch and in ATen, its own name where left out; `cost` is rough, in cycles of a vector on a
    CPU; `gives` is the operands' dtype or bool."""

    name: str
    arity: Literal[1, 2]
    takes: Takes = "float"
    gives: Literal["same", "bool"] = "same"
    torch: str = ""
    cost: float = 1.0

    @property
    def torch_name(self) -> str:
        return self.torch or self.name

    def accepts(self, dtype: DType) -> bool:
        """Whether operands may have this dtype."""
        match self.takes:
            case "number":
                return dtype is not DType.bool
            case "float":
                return dtype.is_float
            case "integer":
                return dtype.is_integer
            case "bits":
                return not dtype.is_float
        return True


UNARY: dict[str, Operation] = {}
BINARY: dict[str, Operation] = {}


def add(row: Operation) -> Operation:
    """Puts a row into the table."""
    (UNARY if row.arity == 1 else BINARY)[row.name] = row
    return row


def of_torch(name: str) -> Operation | None:
    """The row of a function by PyTorch's name."""
    return next((row for table in (UNARY, BINARY) for row in table.values() if row.torch_name == name), None)


FUNCTION, POWER, QUOTIENT = 12.0, 40.0, 4.0
"""Cycles of a vector: a function by polynomial, one of two arguments, a division."""

for _name in ("neg", "abs", "sign"):
    add(Operation(_name, 1, "number"))
for _name in ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p"):
    add(Operation(_name, 1, cost=FUNCTION))
add(Operation("sqrt", 1, cost=QUOTIENT))
add(Operation("rsqrt", 1, cost=1.5 * QUOTIENT))
add(Operation("reciprocal", 1, cost=QUOTIENT))
for _name in (
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sigmoid", "erf", "erfc", "erfinv",
    "lgamma",
):  # fmt: skip
    add(Operation(_name, 1, cost=FUNCTION))
for _name in ("floor", "ceil", "round", "trunc"):  # round: half to even
    add(Operation(_name, 1))
add(Operation("isnan", 1, gives="bool"))
add(Operation("isinf", 1, gives="bool"))
add(Operation("logical_not", 1, "any", gives="bool"))
add(Operation("invert", 1, "bits", torch="bitwise_not"))

add(Operation("add", 2, "number"))
add(Operation("sub", 2, "number"))
add(Operation("mul", 2, "number"))
add(Operation("div", 2, cost=QUOTIENT))  # true division of floats
add(Operation("floordiv", 2, "number", torch="floor_divide", cost=FUNCTION))  # this and mod follow Python, fmod follows C
add(Operation("mod", 2, "number", torch="remainder", cost=FUNCTION))
add(Operation("fmod", 2, "number", cost=FUNCTION))
add(Operation("pow", 2, "number", cost=POWER))
add(Operation("maximum", 2, "number"))  # this and minimum propagate NaN
add(Operation("minimum", 2, "number"))
add(Operation("atan2", 2, cost=POWER))
add(Operation("copysign", 2))
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or"):
    add(Operation(_name, 2, "any", gives="bool"))
for _name in ("and", "or", "xor"):
    add(Operation(_name, 2, "bits", torch=f"bitwise_{_name}"))
add(Operation("shl", 2, "integer", torch="bitwise_left_shift"))
add(Operation("shr", 2, "integer", torch="bitwise_right_shift"))


def cost(name: str) -> float:
    """What one element costs, by an operation's name."""
    row = UNARY.get(name) or BINARY.get(name)
    return row.cost if row else 1.0


def gives_bool(name: str) -> bool:
    """Whether an operation's result is bool whatever its operands are."""
    row = UNARY.get(name) or BINARY.get(name)
    return row is not None and row.gives == "bool"


# ---------------------------------------------------------------- reductions


@dataclass(frozen=True)
class Reduction:
    """How an operation runs along an axis: `step` joins what was found with the next element."""

    name: str
    step: str
    start: Number | Literal["lowest", "highest"]

    def neutral(self, dtype: DType) -> Number:
        """What it starts from, and what it gives for no elements."""
        if self.start == "lowest":
            return dtype.lowest
        if self.start == "highest":
            return dtype.highest
        assert not isinstance(self.start, str)
        return float(self.start) if dtype.is_float else bool(self.start) if dtype is DType.bool else self.start


REDUCTIONS = {
    row.name: row
    for row in (
        Reduction("sum", "add", 0),
        Reduction("prod", "mul", 1),
        Reduction("max", "maximum", "lowest"),
        Reduction("min", "minimum", "highest"),
        Reduction("any", "logical_or", False),
        Reduction("all", "logical_and", True),
        Reduction("logsumexp", "logaddexp", -math.inf),
    )
}
"""`logsumexp` is a scan only; its step is no operation of two tiles, but a function that each language brings."""


def neutral(op: str, dtype: DType) -> Number:
    """What a reduction or scan by this operation starts from."""
    return REDUCTIONS[op].neutral(dtype)
