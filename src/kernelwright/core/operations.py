"""The one table of scalar operations.

A reduction's row says by which operation of two numbers it goes on, and what it starts from (a number, or the least or greatest
value of the dtype).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from kernelwright.core.dtypes import DType, Number


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
