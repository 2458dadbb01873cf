"""Numbers as CUDA-C writes them, and std::numeric_limits."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from kernelwright.compiler.lift.cuda.allocations import size_of
from kernelwright.compiler.lift.formulas.refusal import Refused
from kernelwright.compiler.lift.formulas.tape import FLOATS, Value


def literal(text: str, line: int) -> Value:
    """A number as it is written."""
    plain = text.replace("'", "").lower()
    if plain.startswith("0x"):
        digits = plain.rstrip("ul")
        number = int(digits, 16)
        return Value("u32" if "u" in plain[2:] or number > 0x7FFFFFFF else "i32", number)
    if re.fullmatch(r"[0-9]+[ul]*", plain):
        digits = plain.rstrip("ul")
        suffix = plain[len(digits) :]
        number = int(digits, 8 if len(digits) > 1 and digits[0] == "0" else 10)
        wide = "l" in suffix or number > 0x7FFFFFFF
        return Value(("u" if "u" in suffix else "i") + ("64" if wide else "32"), number)
    try:
        return (
            Value("f32", float(np.float32(plain.rstrip("f"))))
            if plain.endswith("f")
            else Value("f64", float(plain.rstrip("l")))
        )
    except ValueError:
        raise Refused(line, f"the number {text} is not read") from None


def numeric_limit(type: Any, what: str, line: int) -> Value:
    """What std::numeric_limits has for a type."""
    floats = {"f32": 3.4028234663852886e38, "f64": 1.7976931348623157e308, "f16": 65504.0, "bf16": 3.3895313892515355e38}
    if type in FLOATS:
        table = {
            "max": floats[type],
            "lowest": -floats[type],
            "infinity": math.inf,
            "min": 1.1754943508222875e-38,
            "epsilon": 1.1920929e-07,
        }
        if what in table:
            return Value(type, table[what])
    elif isinstance(type, str):
        bits = size_of(type) * 8
        high = 2**bits - 1 if type[0] == "u" else 2 ** (bits - 1) - 1
        return Value(type, high if what == "max" else -high - 1 if type[0] == "i" else 0)
    raise Refused(line, f"numeric_limits::{what} is not read")
