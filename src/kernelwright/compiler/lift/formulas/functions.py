"""Functions of known numbers, by the sketch's names for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.compiler.lift.formulas.refusal import Refused

_ONE: dict[str, Callable[[Any], Any]] = {
    "neg": np.negative, "abs": np.abs, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2,
    "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh,
    "sinh": np.sinh, "cosh": np.cosh, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "floor": np.floor, "ceil": np.ceil,
    "trunc": np.trunc, "round": np.round, "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x,
    "erf": np.vectorize(math.erf), "erfc": np.vectorize(math.erfc), "isnan": np.isnan, "isinf": np.isinf,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}  # fmt: skip


def function(op: str) -> Callable[[Any], Any]:
    """The function of numbers behind a name."""
    if op not in _ONE:
        raise Refused(0, f"{op} of a constant is not read")

    def quiet(x: Any) -> Any:
        with np.errstate(all="ignore"):
            return _ONE[op](x)

    return quiet
