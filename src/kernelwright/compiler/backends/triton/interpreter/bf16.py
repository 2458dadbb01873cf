"""bf16 in the interpreter: its arrays hold the bits (uint16), and its arithmetic would work on those as integers.

In: the interpreter's builder class. Out: the same class, whose arithmetic on bf16 is done in fp32 and rounded to nearest even once
per operation, which is what the device does (products of `tl.dot` are exact in fp32 and are summed there).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

UNARY = ("create_cos", "create_exp", "create_exp2", "create_floor", "create_ceil", "create_log", "create_log2", "create_precise_sqrt",
         "create_sqrt", "create_sin", "create_erf", "create_rsqrt", "create_fneg", "create_fabs", "create_iabs")  # fmt: skip
TERNARY = ("create_clampf", "create_fma")


def widen(bits: Any) -> Any:
    """bf16 bits as fp32 values."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def narrow(values: Any) -> Any:
    """fp32 values as bf16 bits, rounded to nearest even; NaN stays NaN."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded.astype(np.uint16)).astype(np.uint16)


def teach(interpreter: Any, tl: Any) -> None:
    """Make the interpreter's arithmetic right for bf16."""
    builder, handle = interpreter.InterpreterBuilder, interpreter.TensorHandle
    brain = tl.bfloat16

    def is_brain(value: Any) -> bool:
        return isinstance(value, handle) and value.data.dtype == np.uint16 and value.dtype.scalar == brain

    def wide(value: Any) -> Any:
        return handle(widen(value.data), tl.float32) if is_brain(value) else value

    def through(method: Callable[..., Any]) -> Callable[..., Any]:
        """A method that makes a value of the operands' type."""

        def wrapped(self: Any, *args: Any) -> Any:
            result = method(self, *map(wide, args))
            if result.data.dtype == np.bool_:
                # A comparison's handle has the type of its operands, and a scalar one would be spread over a block as such.
                return handle(result.data, tl.int1)
            return handle(narrow(result.data), brain) if any(map(is_brain, args)) else result

        return wrapped

    for name in ("binary_op", *UNARY, *TERNARY):
        if hasattr(builder, name):
            setattr(builder, name, through(getattr(builder, name)))

    plain_dot, plain_cast, plain_float = builder.create_dot, builder.cast_impl, builder.create_fp_to_fp

    def dot(self: Any, a: Any, b: Any, d: Any, *rest: Any) -> Any:
        result = plain_dot(self, wide(a), wide(b), wide(d), *rest)
        return handle(narrow(result.data), brain) if is_brain(d) else result

    def cast(self: Any, source: Any, kind: Any) -> Any:
        goal = kind.scalar
        if is_brain(source):
            values = widen(source.data)
            return source if goal == brain else plain_cast(self, handle(values, tl.float32), kind)
        if goal == brain:
            return handle(narrow(source.data.astype(np.float32)), brain)
        return plain_cast(self, source, kind)

    def convert(self: Any, source: Any, kind: Any, rounding: Any) -> Any:
        names = {source.dtype.scalar.name, kind.scalar.name}
        if names <= {"bf16", "fp16", "fp32", "fp64"}:
            return cast(self, source, kind)
        return plain_float(self, source, kind, rounding)

    builder.create_dot, builder.cast_impl, builder.create_fp_to_fp = dot, cast, convert
