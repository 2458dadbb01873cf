"""CUDA's libdevice in numpy: the name of a function in, a function of arrays out; None for one that is not known.

The names are those of NVIDIA's libdevice (`__nv_tanhf`) and of AMD's ocml (`__ocml_tanh_f32`). Results are those of the CPU's
mathematics library: the device's differ in the last bits, as they do between two devices.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

Function = Callable[..., Any]


def _each(function: Callable[[float], float]) -> Function:
    """A function of numbers applied to each element; numpy has none of its own for it."""

    def guarded(x: float) -> float:
        try:
            return function(x)
        except (ValueError, OverflowError):
            return math.nan if math.isnan(x) else math.inf

    return np.vectorize(guarded, otypes=[np.float64])


_erf, _erfc, _lgamma, _gamma = (_each(f) for f in (math.erf, math.erfc, math.lgamma, math.gamma))


def _erfinv(y: Any) -> Any:
    """Winitzki's approximation, then Newton's steps in double precision."""
    y = np.asarray(y, dtype=np.float64)
    with np.errstate(all="ignore"):
        log = np.log1p(-y * y)
        first = 2 / (math.pi * 0.147) + log / 2
        x = np.copysign(np.sqrt(np.sqrt(first * first - log / 0.147) - first), y)
        for _ in range(3):
            x = x - (_erf(x) - y) * math.sqrt(math.pi) / 2 * np.exp(x * x)
        x = np.where(np.abs(y) == 1, np.copysign(np.inf, y), x)
    return np.where(np.abs(y) > 1, np.nan, x)


def _round(x: Any) -> Any:
    """Half away from zero, as C's round."""
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _rounded_to(kind: Any, how: Function) -> Function:
    return lambda x: how(x).astype(kind)


_HOW = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}

FUNCTIONS: dict[str, Function] = {
    "abs": np.abs, "llabs": np.abs, "fabs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atan2": np.arctan2, "atanh": np.arctanh, "cbrt": np.cbrt, "rcbrt": lambda x: 1 / np.cbrt(x), "ceil": np.ceil,
    "copysign": np.copysign, "cos": np.cos, "cosh": np.cosh, "cospi": lambda x: np.cos(np.pi * x), "erf": _erf, "erfc": _erfc,
    "erfinv": _erfinv, "erfcinv": lambda x: _erfinv(1 - np.asarray(x, np.float64)), "erfcx": lambda x: np.exp(np.square(x)) * _erfc(x),
    "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.power(10.0, x), "expm1": np.expm1, "floor": np.floor,
    "fdim": lambda x, y: np.maximum(x - y, 0),
    "fma": lambda x, y, z: x * y + z, "fmod": np.fmod, "remainder": lambda x, y: x - np.rint(x / y) * y, "hypot": np.hypot,
    "rhypot": lambda x, y: 1 / np.hypot(x, y), "lgamma": _lgamma, "tgamma": _gamma, "log": np.log, "log10": np.log10, "log1p": np.log1p,
    "log2": np.log2, "nearbyint": np.rint, "rint": np.rint, "llrint": lambda x: np.rint(x).astype(np.int64), "round": _round,
    "llround": lambda x: _round(x).astype(np.int64), "nextafter": np.nextafter, "pow": np.power,
    "powi": np.power, "rsqrt": lambda x: 1 / np.sqrt(x),
    "saturate": lambda x: np.clip(np.nan_to_num(x, nan=0.0), 0.0, 1.0), "sin": np.sin, "sinh": np.sinh,
    "sinpi": lambda x: np.sin(np.pi * x),
    "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh, "trunc": np.trunc, "ldexp": np.ldexp, "scalbn": np.ldexp,
    "isnan": lambda x: np.isnan(x).astype(np.int32), "isinf": lambda x: np.isinf(x).astype(np.int32),
    "finite": lambda x: np.isfinite(x).astype(np.int32),
    "isfinite": lambda x: np.isfinite(x).astype(np.int32), "signbit": lambda x: np.signbit(x).astype(np.int32),
    "normcdf": lambda x: 0.5 * _erfc(-np.asarray(x, np.float64) / math.sqrt(2)), "fdivide": np.divide,
    "float_as_int": lambda x: x.view(np.int32), "int_as_float": lambda x: x.view(np.float32),
    "float_as_uint": lambda x: x.view(np.uint32), "uint_as_float": lambda x: x.view(np.float32),
    "double_as_longlong": lambda x: x.view(np.int64), "longlong_as_double": lambda x: x.view(np.float64),
    "norm3d": lambda a, b, c: np.sqrt(a * a + b * b + c * c), "popc": lambda x: np.bitwise_count(x).astype(np.int32), "mul24": np.multiply,
}  # fmt: skip

_ROUNDED = re.compile(r"^(?:f|d)?(add|sub|mul|div|sqrt|rcp|rsqrt|fma)f?_r[nzdu]$")
_CONVERTED = re.compile(r"^(?:float|double)2(int|uint|ll|ull)_r([nzdu])$")
_TO_FLOAT = re.compile(r"^(?:int|uint|ll|ull)2(float|double)_r[nzdu]$")
_PLAIN: dict[str, Function] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt, "rcp": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / np.sqrt(x), "fma": lambda x, y, z: x * y + z,
}  # fmt: skip
_INTEGERS = {"int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64}


def function(symbol: str) -> Function | None:
    """The function behind a library's symbol. Directed rounding is done to nearest: the difference is one rounding."""
    name = re.sub(r"^__(nv|ocml)_", "", symbol)
    name = re.sub(r"_(f16|f32|f64)$", "", name).removeprefix("fast_")
    if converted := _CONVERTED.match(name):
        return _rounded_to(_INTEGERS[converted[1]], _HOW[f"r{converted[2]}"])
    if to_float := _TO_FLOAT.match(name):
        kind = np.float32 if to_float[1] == "float" else np.float64
        return lambda x: x.astype(kind)
    if rounded := _ROUNDED.match(name):
        return _PLAIN[rounded[1]]
    return FUNCTIONS.get(name) or FUNCTIONS.get(name.removesuffix("f")) or FUNCTIONS.get(name.removesuffix("d"))
