"""Pointwise operators: arithmetic, comparisons, activations, bit operations, conversions."""

from __future__ import annotations

import math
from typing import Any

from kernelwright.compiler.frontend.operators.table import Result, rule
from kernelwright.compiler.graph import build as b
from kernelwright.compiler.graph.values import Map, Value
from kernelwright.core.dtypes import FLOATS
from kernelwright.sketch.nodes import DType


def _unary(op: str) -> Any:
    def build(out: Result, x: Value, **_: Any) -> Value:
        whole = op in ("floor", "ceil", "round", "trunc") and x.dtype not in FLOATS
        return x if whole else b.apply(op, x, dtype=out.dtype)

    return build


for _name, _op in {
    "sgn": "sign",
    "_neg_view": "neg",
    "floor": "floor",
    "ceil": "ceil",
    "round": "round",
    "trunc": "trunc",
}.items():
    rule(_name)(_unary(_op))


def _binary(op: str) -> Any:
    def build(out: Result, a: Any, c: Any, **_: Any) -> Value:
        return b.apply(op, a, c, dtype=out.dtype)

    return build


def _logic(op: str) -> Any:
    def build(out: Result, a: Any, c: Any) -> Value:
        if out.dtype == DType.bool:
            return b.apply({"and": "logical_and", "or": "logical_or", "xor": "ne"}[op], a, c, dtype=DType.bool)
        return b.apply(op, a, c, dtype=out.dtype)

    return build


for _op in ["and", "or", "xor"]:
    rule(f"bitwise_{_op}")(_logic(_op))
    rule(f"__{_op}__")(_logic(_op))


rule("logical_and")(lambda out, a, c: b.apply("logical_and", b.cast(a, DType.bool), b.cast(c, DType.bool), dtype=DType.bool))
rule("logical_or")(lambda out, a, c: b.apply("logical_or", b.cast(a, DType.bool), b.cast(c, DType.bool), dtype=DType.bool))
rule("logical_xor")(
    lambda out, a, c: b.apply("ne", b.cast(a, DType.bool), b.cast(c, DType.bool), dtype=DType.bool, compute=DType.bool)
)
rule("logical_not")(lambda out, x: b.apply("logical_not", b.cast(x, DType.bool), dtype=DType.bool))
rule("bitwise_not")(
    lambda out, x: (
        b.apply("logical_not", x, dtype=DType.bool) if x.dtype == DType.bool else b.apply("invert", x, dtype=out.dtype)
    )
)
rule("__lshift__")(_binary("shl"))
rule("__rshift__")(_binary("shr"))


rule("isnan")(
    lambda out, x: (
        b.apply("isnan", x, dtype=DType.bool, compute=x.dtype) if x.dtype in FLOATS else b.const(False, DType.bool, x.shape)
    )
)
rule("isinf")(
    lambda out, x: (
        b.apply("isinf", x, dtype=DType.bool, compute=x.dtype) if x.dtype in FLOATS else b.const(False, DType.bool, x.shape)
    )
)


@rule("add")
def add(out: Result, a: Any, c: Any, alpha: float | int = 1) -> Value:
    if out.dtype == DType.bool:
        return b.apply("logical_or", a, c, dtype=DType.bool)
    return b.apply("add", a, _scaled(c, alpha, out.dtype), dtype=out.dtype)


@rule("sub")
def sub(out: Result, a: Any, c: Any, alpha: float | int = 1) -> Value:
    return b.apply("sub", a, _scaled(c, alpha, out.dtype), dtype=out.dtype)


@rule("rsub")
def rsub(out: Result, a: Any, c: Any, alpha: float | int = 1) -> Value:
    return b.apply("sub", c, _scaled(a, alpha, out.dtype), dtype=out.dtype)


def _scaled(x: Any, alpha: float | int, dtype: DType) -> Any:
    if alpha == 1:
        return x
    return b.apply("mul", x, alpha, dtype=dtype) if isinstance(x, Value) else x * alpha


@rule("mul")
def mul(out: Result, a: Any, c: Any) -> Value:
    return b.apply("logical_and" if out.dtype == DType.bool else "mul", a, c, dtype=out.dtype)


@rule("div", "divide", "true_divide")
def div(out: Result, a: Any, c: Any, rounding_mode: str | None = None) -> Value:
    if rounding_mode == "floor":
        return b.apply("floordiv", a, c, dtype=out.dtype)
    if rounding_mode == "trunc":
        if out.dtype in FLOATS:
            return b.apply("trunc", b.apply("div", a, c, dtype=out.dtype))
        quotient = b.apply("div", *(b.cast(x, DType.f64) if isinstance(x, Value) else x for x in (a, c)), dtype=DType.f64)
        return b.cast(b.apply("trunc", quotient), out.dtype)
    if not isinstance(c, Value) and not isinstance(a, int) and math.isfinite(c) and c != 0 and math.frexp(c)[0] == 0.5:
        return b.apply("mul", a, 1.0 / c, dtype=out.dtype)  # a power of two: exact
    return b.apply("div", a, c, dtype=out.dtype)


@rule("pow")
def power(out: Result, a: Any, c: Any) -> Value:
    dtype = out.dtype
    if isinstance(a, Value) and not isinstance(c, Value):
        x = b.cast(a, dtype)
        if c in (1, 2, 3, 4):
            square = b.mul(x, x)
            return {1: x, 2: square, 3: b.mul(square, x), 4: b.mul(square, square)}[int(c)]
        if dtype in FLOATS:
            if c == 0.5:
                return b.apply("sqrt", x)
            if c == -0.5:
                return b.apply("rsqrt", x)
            if c == -1:
                return b.apply("reciprocal", x)
            if c == -2:
                return b.apply("reciprocal", b.mul(x, x))
    return b.apply("pow", a, c, dtype=dtype)


@rule("square")
def square(out: Result, x: Value) -> Value:
    return b.mul(x, x)


@rule("clamp", "clip", "hardtanh")
def clamp(out: Result, x: Value, low: Any = None, high: Any = None, **kw: Any) -> Value:
    low, high = kw.get("min", kw.get("min_val", low)), kw.get("max", kw.get("max_val", high))
    x = b.cast(x, out.dtype)
    if low is not None:
        x = b.apply("maximum", x, low, dtype=out.dtype)
    return b.apply("minimum", x, high, dtype=out.dtype) if high is not None else x


rule("hardtanh")(lambda out, x, low=-1, high=1: clamp(out, x, low, high))
rule("clamp_min")(lambda out, x, low: clamp(out, x, low))
rule("clamp_max")(lambda out, x, high: clamp(out, x, None, high))
rule("relu")(lambda out, x: b.apply("maximum", x, 0))
rule("relu6")(lambda out, x: clamp(out, x, 0, 6))


@rule("where")
def where(out: Result, condition: Value, a: Any, c: Any) -> Value:
    return b.where(condition, a, c, out.dtype)


@rule("masked_fill")
def masked_fill(out: Result, x: Value, mask: Value, value: Any) -> Value:
    return b.where(mask, value, x, out.dtype)


@rule("_to_copy", "to")
def to_copy(out: Result, x: Value, *_: Any, **__: Any) -> Value:
    return float8(x, out.rounded) if out.rounded else b.cast(x, out.dtype)


def float8(x: Value, name: str) -> Value:
    """Rounded to an 8-bit float and kept in f32: half to even on the bits of normal numbers, by scaling for the subnormal ones.
    (bits of mantissa, smallest normal, largest finite value that rounds to a finite one)"""
    mantissa, smallest, largest = {"float8_e4m3fn": (3, 2.0**-6, 464.0), "float8_e5m2": (2, 2.0**-14, 61440.0)}[name]
    x = b.cast(x, DType.f32)
    drop = 23 - mantissa
    bits = Map(x.shape, DType.i32, "bitcast", (x,))
    odd = b.apply("and", b.apply("shr", bits, drop), 1)
    rounded = b.apply("and", b.add(b.add(bits, (1 << (drop - 1)) - 1), odd), -(1 << drop))
    normal: Value = Map(x.shape, DType.f32, "bitcast", (rounded,))
    unit = smallest * 2.0**-mantissa
    subnormal = b.mul(b.apply("round", b.mul(x, 1 / unit)), unit)
    size = b.apply("abs", x)
    y = b.where(b.apply("lt", size, smallest, dtype=DType.bool, compute=DType.f32), subnormal, normal, DType.f32)
    if name == "float8_e5m2":
        over = b.apply("copysign", b.const(math.inf, DType.f32, x.shape), x)
        y = b.where(b.apply("ge", size, largest, dtype=DType.bool, compute=DType.f32), over, y, DType.f32)
        return b.where(b.apply("isnan", x, dtype=DType.bool, compute=DType.f32), x, y, DType.f32)
    beyond = 448.0 if _saturates() else math.nan
    finite = b.apply("le", size, largest, dtype=DType.bool, compute=DType.f32)
    over = b.apply("copysign", b.const(beyond, DType.f32, x.shape), x)
    y = b.where(finite, y, over, DType.f32)
    return b.where(b.apply("isnan", x, dtype=DType.bool, compute=DType.f32), x, y, DType.f32)


def _saturates() -> bool:
    """Whether this torch clamps what float8_e4m3fn cannot hold; older ones made it NaN."""
    import torch

    return bool(torch.tensor(1e9).to(torch.float8_e4m3fn).float().isfinite())


@rule(
    "clone",
    "alias",
    "contiguous",
    "detach",
    "lift_fresh_copy",
    "dropout",
    "native_dropout",
    "_conj",
    "resolve_neg",
    "_assert_tensor_metadata",
    "positive",
)
def clone(out: Result, x: Value, *_: Any, **__: Any) -> Any:
    return (x, b.const(True, DType.bool, x.shape)) if isinstance(out, tuple) else x


@rule("copy")
def copy(out: Result, x: Value, source: Value, *_: Any) -> Value:
    """`x` overwritten: only its shape and dtype matter."""
    return b.expand(b.cast(source, out.dtype), out.shape)


@rule("view.dtype")
def view_dtype(out: Result, x: Value, *_: Any) -> Value:
    if out.shape != x.shape:
        raise NotImplementedError("a view under a dtype of another width")
    return Map(x.shape, out.dtype, "bitcast", (x,))


# ---------------------------------------------------------------- activations


@rule("gelu")
def gelu(out: Result, x: Value, approximate: str = "none") -> Value:
    half = b.mul(x, 0.5)
    if approximate == "tanh":
        inner = b.mul(b.add(x, b.mul(b.mul(b.mul(x, x), x), 0.044715)), math.sqrt(2 / math.pi))
        return b.mul(half, b.add(b.apply("tanh", inner), 1.0))
    return b.mul(half, b.add(b.apply("erf", b.mul(x, math.sqrt(0.5))), 1.0))


rule("silu", "swish")(lambda out, x: b.mul(x, b.apply("sigmoid", x)))
rule("hardsigmoid")(lambda out, x: clamp(out, b.add(b.mul(x, 1 / 6), 0.5), 0, 1))
rule("hardswish")(lambda out, x: b.mul(x, b.div(clamp(out, b.add(x, 3.0), 0, 6), 6.0)))


@rule("leaky_relu")
def leaky_relu(out: Result, x: Value, slope: float = 0.01) -> Value:
    return b.where(b.apply("gt", x, 0, dtype=DType.bool, compute=x.dtype), x, b.mul(x, slope), out.dtype)


@rule("prelu", "_prelu_kernel")
def prelu(out: Result, x: Value, weight: Value) -> Value:
    if weight.size > 1 and len(weight.shape) == 1 and len(x.shape) > 1:
        weight = b.reshape(weight, (weight.size,) + (1,) * (len(x.shape) - 2))
    return b.where(b.apply("gt", x, 0, dtype=DType.bool, compute=x.dtype), x, b.mul(x, weight), out.dtype)


@rule("elu")
def elu(out: Result, x: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Value:
    low = b.mul(b.apply("expm1", _times(x, input_scale)), alpha * scale)
    return b.where(b.apply("gt", x, 0, dtype=DType.bool, compute=x.dtype), _times(x, scale), low, out.dtype)


def _times(x: Value, factor: float) -> Value:
    return x if factor == 1 else b.mul(x, factor)


rule("selu")(lambda out, x: elu(out, x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946))
rule("celu")(lambda out, x, alpha=1.0: elu(out, x, alpha, 1.0, 1.0 / alpha))


@rule("softplus")
def softplus(out: Result, x: Value, beta: float = 1, threshold: float = 20) -> Value:
    scaled = _times(x, float(beta))
    soft = b.apply("log1p", b.apply("exp", scaled))
    soft = soft if beta == 1 else b.div(soft, float(beta))
    value = b.where(b.apply("gt", scaled, threshold, dtype=DType.bool, compute=x.dtype), x, soft, out.dtype)
    if beta == 1 and threshold >= 20:
        value.softplus_of = x
    return value


@rule("tanh")
def tanh(out: Result, x: Value) -> Value:
    """tanh(log(1 + e^x)) is n / (n + 2) with n = e^x (e^x + 2): one exponential, nothing cancels."""
    if x.softplus_of is None:
        return b.apply("tanh", x, dtype=out.dtype)
    power = b.apply("exp", b.apply("minimum", x.softplus_of, 20.0))  # from there on the quotient is 1
    n = b.mul(power, b.add(power, 2.0))
    return b.div(n, b.add(n, 2.0))


rule("mish")(lambda out, x: b.mul(x, tanh(out, softplus(out, x))))


@rule("log_sigmoid_forward", "log_sigmoid")
def log_sigmoid(out: Any, x: Value) -> Any:
    value = b.sub(b.apply("minimum", x, 0), b.apply("log1p", b.apply("exp", b.apply("neg", b.apply("abs", x)))))
    return (value, b.const(0, x.dtype, (0,))) if isinstance(out, tuple) else value


@rule("threshold")
def threshold(out: Result, x: Value, limit: float, value: float) -> Value:
    return b.where(b.apply("gt", x, limit, dtype=DType.bool, compute=x.dtype), x, value, out.dtype)


@rule("hardshrink")
def hardshrink(out: Result, x: Value, lambd: float = 0.5) -> Value:
    outside = b.apply("gt", b.apply("abs", x), lambd, dtype=DType.bool, compute=x.dtype)
    return b.where(outside, x, 0, out.dtype)


@rule("addcmul")
def addcmul(out: Result, x: Value, t: Value, u: Value, value: float = 1) -> Value:
    return b.add(x, _scaled(b.mul(t, u), value, out.dtype))


@rule("addcdiv")
def addcdiv(out: Result, x: Value, t: Value, u: Value, value: float = 1) -> Value:
    return b.add(x, _scaled(b.div(t, u), value, out.dtype))


@rule("lerp")
def lerp(out: Result, x: Value, end: Value, weight: Any) -> Value:
    return b.add(x, b.mul(b.sub(end, x), weight))


@rule("isfinite")
def isfinite(out: Result, x: Value) -> Value:
    bad = b.apply(
        "logical_or",
        b.apply("isnan", x, dtype=DType.bool, compute=x.dtype),
        b.apply("isinf", x, dtype=DType.bool, compute=x.dtype),
    )
    return b.apply("logical_not", bad)
