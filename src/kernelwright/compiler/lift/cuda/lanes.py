"""Arithmetic of lanes: C's operators on values that are known or unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.compiler.lift.formulas.functions import function
from kernelwright.compiler.lift.formulas.tape import FLOATS, Tape, Value, promoted, rounded

COMPARE = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
ARITHMETIC = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "%": "mod",
    "&": "and",
    "|": "or",
    "^": "xor",
    "<<": "shl",
    ">>": "shr",
}
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


def binary(tape: Tape, symbol: str, a: Value, b: Value) -> Value:
    """`a symbol b` with C's conversions."""
    if symbol in COMPARE:
        type = promoted(a.type, b.type)
        op = COMPARE[symbol]
        if a.codes is None and b.codes is None:
            return Value("bool", _COMPARE[op](a.known, b.known))
        return Value("bool", codes=tape.emit(op, "bool", _as(tape, a, type), _as(tape, b, type)))
    if symbol in ("&&", "||"):
        return logical(tape, symbol, a, b)
    op = ARITHMETIC[symbol]
    type = promoted(a.type, a.type) if op in ("shl", "shr") else promoted(a.type, b.type)
    if a.codes is None and b.codes is None:
        return Value(type, rounded(type, _known(op, type, a.known, b.known)))
    type = _kept(tape, type, a, b)
    if op == "div" and type not in FLOATS:
        op = "floordiv"
    return Value(type, codes=tape.emit(op, type, _as(tape, a, type), _as(tape, b, type)))


def _kept(tape: Tape, type: str, *values: Value) -> str:
    """Unknown values are computed in their own precision: a double literal beside a float is no wish for double."""
    if type == "f64" and not any(v.codes is not None and v.type == "f64" for v in values):
        return "f32"
    return type


def _known(op: str, type: str, a: Any, b: Any) -> Any:
    with np.errstate(all="ignore"):
        match op:
            case "add":
                return a + b
            case "sub":
                return a - b
            case "mul":
                return a * b
            case "div":
                if type in FLOATS:
                    return np.true_divide(a, b) if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) or b == 0 else a / b
                return _truncated(a, b)[0]
            case "mod":
                return _truncated(a, b)[1]
            case "and":
                return a & b
            case "or":
                return a | b
            case "xor":
                return a ^ b
            case "shl":
                return a << b
    return a >> b


def _truncated(a: Any, b: Any) -> tuple[Any, Any]:
    """C's quotient and remainder of integers; lanes that divide by zero do not count."""
    if not isinstance(a, np.ndarray) and not isinstance(b, np.ndarray):
        if b == 0:
            return 0, 0
        q = abs(int(a)) // abs(int(b))
        q = -q if (a < 0) != (b < 0) else q
        return q, a - q * b
    a, b = np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64)
    safe = np.where(b == 0, 1, b)
    q = np.abs(a) // np.abs(safe)
    q = np.where((a < 0) != (safe < 0), -q, q)
    return q, a - q * safe


def _as(tape: Tape, value: Value, type: str) -> Any:
    return tape.codes(converted(tape, value, type))


def converted(tape: Tape, value: Value, type: str) -> Value:
    """A value as another C type."""
    if value.type == type:
        return value
    if value.codes is None:
        return Value(type, rounded(type, value.known))
    if type == "bool":
        return Value("bool", codes=tape.emit("ne", "bool", value.codes, tape.codes(Value(value.type, 0))))
    floats = (value.type in FLOATS, type in FLOATS)
    if floats == (False, False):
        if value.type == "bool":
            return Value(type, codes=tape.emit("cast", "i64", value.codes))
        return Value(type, codes=value.codes)  # indices: their range is the author's care
    if type == "f64" and floats == (True, True):
        return value if value.type == "f32" else Value("f32", codes=tape.emit("cast", "f32", value.codes))
    return Value(type, codes=tape.emit("cast", type, value.codes))


def logical(tape: Tape, symbol: str, a: Value, b: Value) -> Value:
    """`&&` and `||` of values that may both be computed."""
    a, b = converted(tape, a, "bool"), converted(tape, b, "bool")
    if a.codes is None and b.codes is None:
        if not isinstance(a.known, np.ndarray) and not isinstance(b.known, np.ndarray):
            return Value("bool", (a.known and b.known) if symbol == "&&" else (a.known or b.known))
        return Value("bool", np.logical_and(a.known, b.known) if symbol == "&&" else np.logical_or(a.known, b.known))
    for one, other in ((a, b), (b, a)):
        if one.codes is None and not isinstance(one.known, np.ndarray):
            if symbol == "&&":
                return other if one.known else Value("bool", False)
            return Value("bool", True) if one.known else other
    op = "logical_and" if symbol == "&&" else "logical_or"
    for one, other in ((a, b), (b, a)):
        if one.codes is None:
            if symbol == "&&":
                return chosen(tape, one, other, Value("bool", False))
            return chosen(tape, one, Value("bool", True), other)
    return Value("bool", codes=tape.emit(op, "bool", a.codes, b.codes))


def negated(tape: Tape, a: Value) -> Value:
    """`!a`."""
    a = converted(tape, a, "bool")
    if a.codes is None:
        return Value("bool", np.logical_not(a.known) if isinstance(a.known, np.ndarray) else not a.known)
    return Value("bool", codes=tape.emit("logical_not", "bool", a.codes))


def chosen(tape: Tape, condition: Value, a: Value, b: Value) -> Value:
    """`condition ? a : b`; a known condition chooses lanes and leaves no trace."""
    type = a.type if a.type == b.type else promoted(a.type, b.type)
    if a.codes is not None or b.codes is not None:
        type = _kept(tape, type, a, b)
    a, b = converted(tape, a, type), converted(tape, b, type)
    if condition.codes is None:
        if not isinstance(condition.known, np.ndarray):
            return a if condition.known else b
        if a.codes is None and b.codes is None:
            return Value(type, np.where(condition.known, a.known, b.known))
        return Value(type, codes=np.where(condition.known, tape.codes(a), tape.codes(b)))
    return Value(type, codes=tape.emit("where", type, condition.codes, tape.codes(a), tape.codes(b)))


def unary(tape: Tape, op: str, type: str, a: Value) -> Value:
    """A function of one value, by the sketch's name of it."""
    if a.codes is None:
        if op == "neg":
            return Value(promoted(a.type, a.type), rounded(promoted(a.type, a.type), -a.known))
        return Value(
            type,
            rounded(
                type,
                function(op)(np.asarray(a.known, dtype=np.float64))
                if isinstance(a.known, np.ndarray)
                else float(function(op)(float(a.known))),
            ),
        )
    if op == "neg":
        type = promoted(a.type, a.type)
    if type == "f64" and a.type != "f64":
        type = "f32"
    result = "bool" if op in ("isnan", "isinf") else type
    return Value(result, codes=tape.emit(op, result, _as(tape, a, type)))


def two(tape: Tape, op: str, type: str, a: Value, b: Value) -> Value:
    """A function of two values: maximum, minimum, pow, fmod, atan2, copysign."""
    if a.codes is None and b.codes is None:
        table: dict[str, Any] = {
            "maximum": np.maximum, "minimum": np.minimum, "pow": np.power, "fmod": np.fmod, "atan2": np.arctan2, "copysign": np.copysign,
        }  # fmt: skip
        made = table[op](a.known, b.known)
        return Value(type, rounded(type, made if isinstance(made, np.ndarray) and made.ndim else made.item()))
    type = _kept(tape, type, a, b)
    return Value(type, codes=tape.emit(op, type, _as(tape, a, type), _as(tape, b, type)))
