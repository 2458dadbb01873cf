"""CUDA's library of mathematics by name: what `expf`, `__nv_umin` and `__float2int_rn` compute, as operations on words.

Names are those of NVIDIA's libdevice (`__nv_` and, for floats, an `f` at the end). Directed rounding is done to nearest.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.compiler.lift.formulas.refusal import Refused
from kernelwright.compiler.lift.ptx import arithmetic as on
from kernelwright.compiler.lift.ptx import transfers
from kernelwright.compiler.lift.ptx.words import Held, Word, from_float, full, word
from kernelwright.gpu.ptx import type_bytes

SAME = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
    "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "floor", "ceil", "trunc", "erfinv", "lgamma",
)  # fmt: skip
ONE = {name: name for name in SAME} | {"rint": "round", "nearbyint": "round", "fabs": "abs"}
TWO = {
    "pow": "pow", "fmod": "fmod", "atan2": "atan2", "copysign": "copysign", "fmax": "max", "fmin": "min", "fdivide": "div",
}  # fmt: skip
INTEGER = {
    f"{prefix}{op}": (op, type)
    for op in ("min", "max")
    for prefix, type in (("", "s32"), ("u", "u32"), ("ll", "s64"), ("ull", "u64"))
}
_ROUNDED = re.compile(r"(f|d)?(add|sub|mul|div|sqrt|rcp|rsqrt|fma|maf)f?_r[nzdu]")
_CONVERTED = re.compile(r"(float|double|int|uint|ll|ull|half)2(float|double|int|uint|ll|ull|half)(?:_r([nzdu]))?")
_TYPES = {
    "float": "f32", "double": "f64", "half": "f16", "int": "s32", "uint": "u32", "ll": "s64", "ull": "u64",
}  # fmt: skip
_TO_WHOLE = {"n": "rni", "z": "rzi", "d": "rmi", "u": "rpi", None: "rzi"}
_BITS: dict[str, Callable[[int], int]] = {
    "popc": lambda v: v.bit_count(),
    "clz": lambda v: 32 - v.bit_length(),
    "ffs": lambda v: (v & -v).bit_length(),
    "brev": lambda v: int(f"{v:032b}"[::-1], 2),
}


def called(m: Any, name: str, args: list[Held]) -> Held | None:
    """What a function of the library gives; None for a name that is none of its. `sincos` writes its two results."""
    if not name.startswith("__nv_"):
        return None
    short = name.removeprefix("__nv_").removeprefix("fast_")
    tape = m.tape
    if short in INTEGER:
        op, type = INTEGER[short]
        return on.integer(tape, op, type, args[0], args[1])
    if short in ("abs", "llabs"):
        type = "s32" if short == "abs" else "s64"
        zero = word(tape.lanes, type_bytes(type), 0)
        return on.integer(tape, "max", type, args[0], on.integer(tape, "sub", type, zero, args[0]))
    if short in _BITS and on.unknown(args[0]) is None:
        return Word(4, np.array([_BITS[short](int(v)) for v in on.whole(args[0], "u32")], dtype=np.uint64) & full(4))
    if short in ("mulhi", "umulhi") and on.unknown(*args) is None:
        x, y = (on.whole(a, "s32" if short == "mulhi" else "u32").astype(np.int64) for a in args)
        return Word(4, ((x * y) >> 32).view(np.uint64) & full(4))
    if short in ("mul24", "umul24"):
        return on.integer(tape, "mul", "s32", args[0], args[1])
    if re.fullmatch(r"(float|int|uint|double|longlong)_as_(int|uint|float|longlong|double)", short):
        return args[0]
    if converted := _CONVERTED.fullmatch(short):
        source, target = _TYPES[converted[1]], _TYPES[converted[2]]
        modifiers = (_TO_WHOLE[converted[3]],) if source[0] == "f" and target[0] in "su" else ("rn",)
        return on.converted(tape, args[0], source, target, modifiers)
    if rounded := _ROUNDED.fullmatch(short):
        return _rounded(tape, rounded[2], "f64" if rounded[1] == "d" or short.startswith("fma_") else "f32", args)
    base, type = (short[:-1], "f32") if short.endswith("f") and short not in ("erf", "normcdf") else (short, "f64")
    return _function(m, base, type, args)


def _rounded(tape: Any, op: str, type: str, args: list[Held]) -> Held:
    if op in ("fma", "maf"):
        return on.two(tape, "add", type, on.two(tape, "mul", type, args[0], args[1]), args[2])
    if op in ("sqrt", "rsqrt", "rcp"):
        return on.function(tape, "reciprocal" if op == "rcp" else op, type, args[0])
    return on.two(tape, op, type, args[0], args[1])


def _function(m: Any, base: str, type: str, args: list[Held]) -> Held | None:
    tape = m.tape

    def number(value: float) -> Word:
        return Word(type_bytes(type), from_float(np.full(tape.lanes, value), type))

    def two(op: str, a: Held, b: Held) -> Word:
        return on.two(tape, op, type, a, b)

    def one(op: str, a: Held) -> Word:
        return on.function(tape, op, type, a)

    if base in ONE:
        return one(ONE[base], args[0])
    if base in TWO:
        return two(TWO[base], args[0], args[1])
    match base:
        case "fma":
            return two("add", two("mul", args[0], args[1]), args[2])
        case "sincos":
            for op, address in (("sin", args[1]), ("cos", args[2])):
                transfers.store(m, (), address, 0, [one(op, args[0])])
            return word(tape.lanes, 4, 0)
        case "round":  # half away from zero
            return one("trunc", two("add", args[0], two("copysign", number(0.5), args[0])))
        case "saturate":
            return two("min", two("max", args[0], number(0.0)), number(1.0))
        case "exp10":
            return two("pow", number(10.0), args[0])
        case "cbrt" | "rcbrt":
            root = two("copysign", two("pow", one("abs", args[0]), number(1 / 3)), args[0])
            return root if base == "cbrt" else one("reciprocal", root)
        case "hypot":
            return one("sqrt", two("add", two("mul", args[0], args[0]), two("mul", args[1], args[1])))
        case "fdim":
            return two("max", two("sub", args[0], args[1]), number(0.0))
        case "normcdf":
            return two("mul", number(0.5), one("erfc", two("mul", args[0], number(-math.sqrt(0.5)))))
        case "sinpi" | "cospi":
            return one(base[:3], two("mul", args[0], number(math.pi)))
        case "powi":
            return two("pow", args[0], on.converted(tape, args[1], "s32", type, ("rn",)))
        case "isnan" | "isnand" | "isinf" | "isinfd":
            p = on.compared(tape, "nan", type, args[0], args[0])
            if base.startswith("isinf"):
                p = on.compared(tape, "eq", type, one("abs", args[0]), number(math.inf))
            return on.chosen(tape, p, word(tape.lanes, 4, 1), word(tape.lanes, 4, 0))
    raise Refused(0, f"it calls {base} of CUDA's library of mathematics, which is not read")
