"""CUDA's functions and names: mathematics, warp exchanges, votes, atomics, constants.

In: the name as it is called and its arguments as values. Out: the value. Exchanges permute codes; an atomic update combines the
lanes that meet in one place one after another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.compiler.lift.cuda.allocations import Element, Pointer, Store, Vector, VectorType
from kernelwright.compiler.lift.cuda.lanes import binary, chosen, converted, negated, two, unary
from kernelwright.compiler.lift.formulas.refusal import Refused
from kernelwright.compiler.lift.formulas.tape import FLOATS, INTS, Value, promoted

_ONE = (
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos "
    "atan sinh cosh tanh asinh acosh atanh erf erfc floor ceil trunc"
)
UNARY: dict[str, str] = {name: name for name in _ONE.split()}
UNARY |= {"fabs": "abs", "rint": "round", "nearbyint": "round", "lgamma": "lgamma", "erfinv": "erfinv", "tgamma": "tgamma"}
UNARY |= {f"{name}f": op for name, op in list(UNARY.items())}
UNARY |= {f"__{name}f": name for name in ("exp", "log", "log2", "log10", "sin", "cos", "tan", "tanh")}
UNARY |= {
    "__frsqrt_rn": "rsqrt",
    "__fsqrt_rn": "sqrt",
    "__frcp_rn": "reciprocal",
    "isnan": "isnan",
    "isinf": "isinf",
    "hexp": "exp",
}
UNARY |= {
    "hsqrt": "sqrt",
    "hrsqrt": "rsqrt",
    "hlog": "log",
    "htanh": "tanh",
    "__habs": "abs",
    "round": "roundaway",
    "roundf": "roundaway",
}
BINARY = {"fmax": "maximum", "fmin": "minimum", "pow": "pow", "fmod": "fmod", "atan2": "atan2", "copysign": "copysign"}
BINARY |= {f"{name}f": op for name, op in list(BINARY.items())} | {"__powf": "pow", "__hmax": "maximum", "__hmin": "minimum"}
SYMBOLS = {
    "__fadd_rn": "+",
    "__fsub_rn": "-",
    "__fmul_rn": "*",
    "__fdiv_rn": "/",
    "__fdividef": "/",
    "fdividef": "/",
    "__hadd": "+",
}
SYMBOLS |= {"__hsub": "-", "__hmul": "*", "__hdiv": "/", "__hgt": ">", "__hlt": "<", "__mul24": "*"}
FMA = ("fma", "fmaf", "__fmaf_rn", "__hfma")
CASTS = {
    "__half2float": "f32", "__float2half": "f16", "__float2half_rn": "f16", "__bfloat162float": "f32", "__float2bfloat16": "bf16",
    "__float2bfloat16_rn": "bf16", "__int2float_rn": "f32", "__float2int_rz": "i32", "__uint2float_rn": "f32",
}  # fmt: skip
NAMES: dict[str, Value] = {
    "INFINITY": Value("f32", math.inf),
    "CUDART_INF_F": Value("f32", math.inf),
    "CUDART_INF": Value("f64", math.inf),
    "FLT_MAX": Value("f32", 3.4028234663852886e38),
    "FLT_MIN": Value("f32", 1.1754943508222875e-38),
    "NAN": Value("f32", math.nan),
    "DBL_MAX": Value("f64", 1.7976931348623157e308),
    "FLT_EPSILON": Value("f32", 1.1920928955078125e-07),
    "INT_MAX": Value("i32", 2**31 - 1),
    "INT_MIN": Value("i32", -(2**31)),
    "M_PI": Value("f64", math.pi),
    "M_SQRT1_2": Value("f64", math.sqrt(0.5)),
    "M_SQRT2": Value("f64", math.sqrt(2)),
    "M_2_SQRTPI": Value("f64", 2 / math.sqrt(math.pi)),
    "M_2_PI": Value("f64", 2 / math.pi),
    "M_LOG2E": Value("f64", math.log2(math.e)),
    "M_1_PI": Value("f64", 1 / math.pi),
    "M_PI_2": Value("f64", math.pi / 2),
    "M_LN2": Value("f64", math.log(2)),
    "M_E": Value("f64", math.e),
    "true": Value("bool", True),
    "false": Value("bool", False),
    "warpSize": Value("i32", 32),
    "UINT_MAX": Value("u32", 2**32 - 1),
}
NOTHING = (
    "__syncthreads",
    "__syncwarp",
    "__threadfence",
    "__threadfence_block",
    "assert",
    "printf",
    "static_assert",
    "__threadfence_system",
)
SHUFFLES = (
    "__shfl_sync",
    "__shfl_down_sync",
    "__shfl_up_sync",
    "__shfl_xor_sync",
    "__shfl",
    "__shfl_down",
    "__shfl_up",
    "__shfl_xor",
)
ATOMICS = {"atomicAdd": "+", "atomicSub": "-", "atomicMax": "max", "atomicMin": "min", "atomicAdd_block": "+"}


def known(name: str) -> bool:
    """Whether a function is one of CUDA's that are read."""
    return (
        name in UNARY or name in BINARY or name in SYMBOLS or name in FMA or name in CASTS or name in NOTHING or name in SHUFFLES
        or name in ATOMICS or name in ("min", "max", "abs", "__ldg", "__ldcs", "__ldca", "__ldcg", "__saturatef", "sincosf", "umin", "umax")
        or name in ("__any_sync", "__all_sync", "__ballot_sync", "__activemask", "__syncthreads_or", "__syncthreads_and", "exchange")
        or name in ("__expf", "normcdff", "__stcs", "signbit", "__float2half2_rn", "__low2float", "__high2float", "isfinite", "cbrtf")
        or (name.startswith("make_") and name[5:-1] in ("float", "int", "double", "half", "uint"))
    )  # fmt: skip


def call(store: Store, name: str, args: list[Any], line: int) -> Any:
    """One call."""
    tape = store.tape
    if name in NOTHING:
        return Value("i32", 0)
    if name in UNARY:
        a = _scalar(args[0], line)
        type = a.type if a.type in FLOATS else "f32" if name.endswith("f") else "f64"
        type = "f32" if name.endswith("f") and type == "f64" and a.codes is not None else type
        if UNARY[name] == "roundaway":  # half away from zero
            half = binary(tape, "+", unary(tape, "abs", type, a), Value(type, 0.5))
            return two(tape, "copysign", type, unary(tape, "floor", type, half), a)
        return unary(tape, UNARY[name], type, a)
    if name in BINARY:
        a, b = (_scalar(x, line) for x in args)
        type = promoted(a.type, b.type)
        return two(tape, BINARY[name], type if type in FLOATS else "f32", a, b)
    if name in ("min", "max", "umin", "umax"):
        a, b = (_scalar(x, line) for x in args)
        return two(tape, "maximum" if name.endswith("max") else "minimum", promoted(a.type, b.type), a, b)
    if name in SYMBOLS:
        return binary(tape, SYMBOLS[name], _scalar(args[0], line), _scalar(args[1], line))
    if name in FMA:
        return binary(tape, "+", binary(tape, "*", args[0], args[1]), args[2])
    if name in CASTS:
        return converted(tape, _scalar(args[0], line), CASTS[name])
    if name in SHUFFLES:
        return _shuffle(store, name.removesuffix("_sync"), args if not name.endswith("_sync") else args[1:], line)
    if name in ATOMICS:
        return _atomic(store, ATOMICS[name], args, line)
    if name.startswith("make_"):
        base = {"float": "f32", "int": "i32", "double": "f64", "uint": "u32"}[name[5:-1]]
        return Vector(VectorType(base, len(args)), [converted(tape, x, base) for x in args])
    return _other(store, name, args, line)


def _other(store: Store, name: str, args: list[Any], line: int) -> Any:
    tape = store.tape
    if name in ("__ldg", "__ldcs", "__ldca", "__ldcg"):
        return store.read(args[0])
    if name == "__stcs":
        store.write(args[0], args[1])
        return Value("i32", 0)
    if name == "abs":
        a = _scalar(args[0], line)
        if a.type in INTS and a.codes is None:
            return Value(a.type, np.abs(a.known) if isinstance(a.known, np.ndarray) else abs(a.known))
        return unary(tape, "abs", a.type, a)
    if name == "__saturatef":
        return two(tape, "minimum", "f32", two(tape, "maximum", "f32", args[0], Value("f32", 0.0)), Value("f32", 1.0))
    if name == "normcdff":
        x = binary(tape, "*", args[0], Value("f32", math.sqrt(0.5)))
        return binary(tape, "*", Value("f32", 0.5), binary(tape, "+", Value("f32", 1.0), unary(tape, "erf", "f32", x)))
    if name == "isfinite":
        bad = binary(tape, "||", unary(tape, "isnan", args[0].type, args[0]), unary(tape, "isinf", args[0].type, args[0]))
        return negated(tape, bad)
    if name == "__activemask":
        return Value("u32", 0xFFFFFFFF)
    raise Refused(line, f"{name} is not read")


def _scalar(x: Any, line: int) -> Value:
    if isinstance(x, Value):
        return x
    raise Refused(line, "a number was expected here")


def _shuffle(store: Store, name: str, args: list[Any], line: int) -> Value:
    tape = store.tape
    value, what = _scalar(args[0], line), args[1]
    width = args[2].known if len(args) > 2 else 32
    if what.codes is not None:
        raise Refused(line, "a shuffle from a lane that depends on data")
    lane: Any = tape.lane % 32
    segment = lane & ~(width - 1)
    by = np.asarray(what.known)
    match name:
        case "__shfl":
            source = segment | (by & (width - 1))
        case "__shfl_down":
            source = np.where(lane + by > (lane | (width - 1)), lane, lane + by)
        case "__shfl_up":
            source = np.where(lane - by < segment, lane, lane - by)
        case _:
            source = np.where((lane ^ by) > (lane | (width - 1)), lane, lane ^ by)
    source = np.minimum(tape.lane - lane + source, tape.lanes - 1)
    if value.codes is not None:
        return Value(value.type, codes=value.codes[source])
    return Value(value.type, value.known[source] if isinstance(value.known, np.ndarray) else value.known)


def _atomic(store: Store, symbol: str, args: list[Any], line: int) -> Value:
    pointer, value = args[0], _scalar(args[1], line)
    if not isinstance(pointer, Pointer):
        raise Refused(line, "an atomic update of something that is not memory")
    if not isinstance(pointer.offset, int | np.integer | np.ndarray):
        raise Refused(line, "an atomic update of a position that depends on data")
    outer = store.mask
    offsets = pointer.offset if isinstance(pointer.offset, np.ndarray) else np.full(store.tape.lanes, pointer.offset)
    left = outer.copy()
    before: Value | None = None
    if pointer.memory.kind == "global":
        pointer.memory.types[0] = symbol  # contributions of other blocks count too
    while left.any():
        active = np.flatnonzero(left)
        _, first = np.unique(offsets[active], return_index=True)
        now = np.zeros_like(left)
        now[active[first]] = True
        store.mask = now
        before = store.read(pointer)
        if symbol in ("max", "min"):
            made = two(store.tape, symbol + "imum", promoted(before.type, value.type), before, value)
        else:
            made = binary(store.tape, symbol, before, value)
        store.write(pointer, made)
        left &= ~now
    store.mask = outer
    return before if before is not None else value


__all__ = ["NAMES", "Callable", "Element", "call", "chosen", "known"]
