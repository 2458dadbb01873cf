"""Integer, float and comparing instructions on words that are known, unknown, or packed.

Known lanes are computed as the device computes them; a lane that depends on data gets an entry of the tape. Bit tricks that mean an
operation on numbers (a sign flipped by `xor`, a bf16 widened by a shift) are written down as that operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.compiler.lift.formulas import functions
from kernelwright.compiler.lift.formulas.refusal import Refused
from kernelwright.compiler.lift.formulas.tape import Tape
from kernelwright.compiler.lift.ptx.words import (
    Held,
    Parts,
    Word,
    as_float,
    codes_of,
    from_float,
    full,
    joined,
    packed,
    signed,
    split,
    word,
)
from kernelwright.gpu.ptx import type_bytes

LOG2E, LN2 = 1.4426950408889634, 0.6931471805599453
PAIRS = {"f16x2": "f16", "bf16x2": "bf16"}
FLOAT_TYPES = ("f16", "bf16", "f32", "f64", "tf32")


def tape_type(ptx: str) -> str:
    """A type of PTX in the tape's words."""
    if ptx == "tf32":
        return "f32"
    if ptx[0] in "fb" and ptx in FLOAT_TYPES:
        return ptx
    return f"{'i' if ptx[0] == 's' else 'u'}{8 * type_bytes(ptx)}"


def made_as(tape: Tape, *helds: Held) -> str | None:
    """The type of an unknown lane among these; None where all are known."""
    for held in helds:
        for one in held.words if isinstance(held, Parts) else (held,):
            if one.codes is not None:
                unknown = one.codes[one.codes >= 0]
                if unknown.size:
                    return tape.types[int(unknown[0]) // tape.lanes]
    return None


def unknown(*helds: Held) -> Any:
    """The lanes in which any of these is unknown; None for no lane."""
    found: Any = None
    for held in helds:
        for one in held.words if isinstance(held, Parts) else (held,):
            if one.codes is not None:
                lanes = one.codes >= 0
                found = lanes if found is None else found | lanes
    return found if found is not None and found.any() else None


def emitted(tape: Tape, op: str, type: str, width: int, known: Any, args: tuple[Held, ...], types: tuple[str, ...]) -> Word:
    """The known bits where all is known, an entry elsewhere."""
    lanes = unknown(*args)
    if lanes is None:
        return Word(width, known)
    codes = tape.emit(op, type, *(number_codes(tape, a, t) for a, t in zip(args, types, strict=True)))
    return Word(width, known, np.where(lanes, codes, -1))


def number_codes(tape: Tape, held: Held, type: str) -> Any:
    """Codes of a number. A bf16 in the upper half of a register is the same number in f32."""
    if type == "f32" and isinstance(held, Parts):
        halves = split(held, (2, 2))
        if halves is not None and halves[0].codes is None and not halves[0].bits.any() and made_as(tape, halves[1]) == "bf16":
            return tape.emit("cast", "f32", codes_of(tape, halves[1], "bf16"))
    made = made_as(tape, held)
    if made is not None and type != "bool" and (made in FLOAT_TYPES) != (type in FLOAT_TYPES):
        raise Refused(0, f"the bits of a number of type {made} are used as {type}")
    return codes_of(tape, held, type)


# ---------------------------------------------------------------- integers


def _quotient(a: Any, b: Any) -> Any:
    safe = np.where(b == 0, 1, b)
    if a.dtype == np.uint64:
        return a // safe
    q = np.abs(a) // np.abs(safe)
    return np.where((a < 0) != (safe < 0), -q, q)


def _remainder(a: Any, b: Any) -> Any:
    return a - _quotient(a, b) * b


def _shifted_left(a: Any, b: Any) -> Any:
    by = b.astype(np.uint64)
    return np.where(by < np.uint64(64), a << np.minimum(by, np.uint64(63)).astype(a.dtype), 0).astype(a.dtype)


def _shifted_right(a: Any, b: Any) -> Any:
    by = np.minimum(b.astype(np.uint64), np.uint64(63))
    return a >> by.astype(a.dtype)


INTEGER: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "add": ("add", lambda a, b: a + b),
    "sub": ("sub", lambda a, b: a - b),
    "mul": ("mul", lambda a, b: a * b),
    "div": ("floordiv", _quotient),
    "rem": ("mod", _remainder),
    "and": ("and", lambda a, b: a & b),
    "or": ("or", lambda a, b: a | b),
    "xor": ("xor", lambda a, b: a ^ b),
    "shl": ("shl", _shifted_left),
    "shr": ("shr", _shifted_right),
    "min": ("minimum", np.minimum),
    "max": ("maximum", np.maximum),
}


def whole(held: Held, type: str) -> Any:
    """The known bits as integers of a type."""
    one = held if isinstance(held, Word) else joined(held)
    bits = one.bits if one is not None else np.zeros_like(held.words[0].bits)  # type: ignore[union-attr]
    width = type_bytes(type)
    bits = bits & full(width)
    return signed(bits, width) if type[0] == "s" else bits


def integer(tape: Tape, op: str, type: str, a: Held, b: Held) -> Held:
    """One integer operation."""
    width = type_bytes(type)
    name, function = INTEGER[op]
    if op in ("shl", "shr"):
        trick = _shift_of_halves(tape, op, a, b, width)
        if trick is not None:
            return trick
    if op in ("and", "or", "xor"):
        trick = _bit_trick(tape, op, a, b, width)
        if trick is not None:
            return trick
    with np.errstate(all="ignore"):
        right = (
            b.bits.astype(np.int64 if type[0] == "s" else np.uint64)
            if op in ("shl", "shr") and isinstance(b, Word)
            else whole(b, type)
        )
        known = function(whole(a, type), right).astype(np.int64 if type[0] == "s" else np.uint64)
    bits = known.view(np.uint64) & full(width)
    made = made_as(tape, a, b)
    if made is None:
        return Word(width, bits)
    kind = made if made[0] in "iu" and int(made[1:]) == 8 * width else tape_type(type)
    if kind[0] == "u":
        kind = "i" + kind[1:]  # positions: a sketch has no unsigned types, and their range is the author's care
    return emitted(tape, name, kind, width, bits, (a, b), (kind, kind))


def _shift_of_halves(tape: Tape, op: str, a: Held, b: Held, width: int) -> Held | None:
    if not isinstance(b, Word) or b.codes is not None or unknown(a) is None:
        return None
    amounts = np.unique(b.bits)
    if len(amounts) != 1 or int(amounts[0]) % 8 or not 0 < int(amounts[0]) < 8 * width:
        return None
    by = int(amounts[0]) // 8
    made = made_as(tape, a)
    if isinstance(a, Word) and (made is None or made[0] in "iu"):
        return None
    zero = Word(by, np.zeros(tape.lanes, dtype=np.uint64)) if by in (1, 2, 4) else None
    cut = split(a, (width - by, by) if op == "shl" else (by, width - by))
    if zero is None or cut is None:
        return None
    return packed((zero, cut[0])) if op == "shl" else packed((cut[1], zero))


def _bit_trick(tape: Tape, op: str, a: Held, b: Held, width: int) -> Held | None:
    """Absolute values, signs and halves by masks."""
    if unknown(a) is None:
        a, b = b, a
    if unknown(a) is None or unknown(b) is not None:
        return None
    constant = whole(b, f"u{8 * width}") if not isinstance(b, Parts) or joined(b) is not None else None
    if constant is None or len(np.unique(constant)) != 1:
        return None
    value = int(constant[0])
    if isinstance(a, Parts):
        parts, shift = [], 0
        for part in a.words:
            piece = word(tape.lanes, part.width, value >> shift)
            made = _bit_trick(tape, op, part, piece, part.width) if part.codes is not None else None
            if made is None:
                if part.codes is not None and made_as(tape, part) in FLOAT_TYPES:
                    return None
                made = integer(tape, op, f"u{8 * part.width}", part, piece)
            assert isinstance(made, Word)
            parts.append(made)
            shift += 8 * part.width
        return packed(tuple(parts))
    every = (1 << (8 * width)) - 1
    if (op == "and" and value == every) or (op in ("or", "xor") and value == 0):
        return a
    if op == "and" and value == 0:
        return word(tape.lanes, width, 0)
    made_type = made_as(tape, a)
    if made_type in FLOAT_TYPES:
        sign = 1 << (8 * width - 1)
        if op == "and" and value == every ^ sign:
            return function(tape, "abs", str(made_type), a)
        if op == "xor" and value == sign:
            return function(tape, "neg", str(made_type), a)
        if op == "or" and value == sign:
            return function(tape, "neg", str(made_type), function(tape, "abs", str(made_type), a))
    return None


def predicate_logic(tape: Tape, op: str, a: Word, b: Word) -> Word:
    """and, or, xor of predicates."""
    known = {"and": a.bits & b.bits, "or": a.bits | b.bits, "xor": a.bits ^ b.bits}[op]
    lanes = unknown(a, b)
    if lanes is None:
        return Word(0, known)
    if op in ("and", "or"):
        # a lane that one side decides alone is known
        decides = np.uint64(0 if op == "and" else 1)
        passes = np.uint64(1 if op == "and" else 0)
        a_known = a.codes < 0 if a.codes is not None else np.ones(tape.lanes, dtype=bool)
        b_known = b.codes < 0 if b.codes is not None else np.ones(tape.lanes, dtype=bool)
        settled = (a_known & (a.bits == decides)) | (b_known & (b.bits == decides))
        only_b = a_known & (a.bits == passes) & ~b_known
        only_a = b_known & (b.bits == passes) & ~a_known
        both = ~a_known & ~b_known
        codes: Any = np.full(tape.lanes, -1, dtype=np.int64)
        if only_a.any():
            codes = np.where(only_a, a.codes, codes)
        if only_b.any():
            codes = np.where(only_b, b.codes, codes)
        if both.any():
            made = _or_equal(tape, a, b, both) if op == "or" else None
            if made is None:
                made = tape.emit(f"logical_{op}", "bool", codes_of(tape, a, "bool"), codes_of(tape, b, "bool"))
            codes = np.where(both, made, codes)
        return Word(0, np.where(settled, decides, known & np.uint64(1)), codes if (codes >= 0).any() else None)
    codes = tape.emit("ne", "bool", codes_of(tape, a, "bool"), codes_of(tape, b, "bool"))
    return Word(0, known, np.where(lanes, codes, -1))


def _or_equal(tape: Tape, a: Word, b: Word, lanes: Any) -> Any:
    """`x > y or x == y` is `x >= y`: how ties are broken."""
    assert a.codes is not None
    assert b.codes is not None
    found: list[tuple[str, Any, Any]] = []
    for one in (a, b):
        entries = np.unique(one.codes[lanes] // tape.lanes)
        if len(entries) != 1 or tape.ops[entries[0]] not in ("gt", "lt", "eq"):
            return None
        at = np.where(lanes, one.codes - entries[0] * tape.lanes, 0)
        x, y = tape.args[entries[0]]
        found.append((tape.ops[entries[0]], x[at], y[at]))
    (op, x, y), (other, z, w) = found if found[0][0] != "eq" else found[::-1]
    same = ((x == z) & (y == w)) | ((x == w) & (y == z))
    if op == "eq" or other != "eq" or not same[lanes].all():
        return None
    return tape.emit("ge" if op == "gt" else "le", "bool", x, y)


def inverted(tape: Tape, p: Word) -> Word:
    """Not a predicate; twice is the predicate itself."""
    bits = p.bits ^ np.uint64(1)
    if unknown(p) is None:
        return Word(0, bits)
    assert p.codes is not None
    entries = np.unique(p.codes[p.codes >= 0] // tape.lanes)
    if all(tape.ops[e] == "logical_not" for e in entries):
        codes = p.codes.copy()
        for e in entries:
            chosen = p.codes // tape.lanes == e
            codes[chosen] = tape.args[e][0][(p.codes - e * tape.lanes)[chosen]]
        return Word(0, bits, codes)
    made = tape.emit("logical_not", "bool", codes_of(tape, p, "bool"))
    return Word(0, bits, np.where(p.codes >= 0, made, -1))


# ---------------------------------------------------------------- numbers


_TWO: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "add": ("add", lambda a, b: a + b),
    "sub": ("sub", lambda a, b: a - b),
    "mul": ("mul", lambda a, b: a * b),
    "div": ("div", lambda a, b: a / b),
    "min": ("minimum", np.fmin),
    "max": ("maximum", np.fmax),
    "pow": ("pow", np.power),
    "fmod": ("fmod", np.fmod),
    "atan2": ("atan2", np.arctan2),
    "copysign": ("copysign", np.copysign),
}


def floats(held: Held, type: str) -> Any:
    """The known bits as numbers."""
    one = held if isinstance(held, Word) else joined(held)
    bits = one.bits if one is not None else np.zeros_like(held.words[0].bits)  # type: ignore[union-attr]
    return as_float(bits & full(type_bytes(type)), "f32" if type == "tf32" else type)


def two(tape: Tape, op: str, type: str, a: Held, b: Held) -> Word:
    """A float operation of two."""
    name, function_ = _TWO[op]
    type = tape_type(type)
    with np.errstate(all="ignore"):
        known = from_float(function_(floats(a, type), floats(b, type)), type)
    return emitted(tape, name, type, type_bytes(type), known, (a, b), (type, type))


def function(tape: Tape, op: str, type: str, a: Held) -> Word:
    """A function of one number, by the sketch's name."""
    type = tape_type(type)
    width = type_bytes(type)
    lanes = unknown(a)
    known: Any = np.zeros(tape.lanes, dtype=np.uint64)
    if lanes is None or not lanes.all():
        known = from_float(functions.function(op)(floats(a, type)), type)
    if lanes is None:
        return Word(width, known)
    codes = tape.emit(op, type, number_codes(tape, a, type))
    return Word(width, known, np.where(lanes, codes, -1))


def converted(tape: Tape, a: Held, source: str, target: str, modifiers: tuple[str, ...]) -> Held:
    """`cvt`."""
    from_number, to_number = source in FLOAT_TYPES, target in FLOAT_TYPES
    width = type_bytes(target)
    if from_number and to_number:
        if source == target or (source, target) in (("f32", "tf32"), ("tf32", "f32")):
            rounding = {"rmi": "floor", "rpi": "ceil", "rzi": "trunc", "rni": "round"}
            name = next((rounding[m] for m in modifiers if m in rounding), None)
            made = a if name is None else function(tape, name, source, a)
        else:
            known = from_float(floats(a, source), target)
            made = emitted(tape, "cast", tape_type(target), width, known, (a,), (tape_type(source),))
        return _saturated(tape, made, target) if "sat" in modifiers else made
    if from_number:
        values = floats(a, source).astype(np.float64)
        whole_of: dict[str, Any] = {"rmi": np.floor, "rpi": np.ceil, "rni": np.round}
        names = {"rmi": "floor", "rpi": "ceil", "rni": "round"}
        mode = next((m for m in modifiers if m in whole_of), None)
        with np.errstate(all="ignore"):
            moved = np.nan_to_num(whole_of[mode](values) if mode else np.trunc(values), nan=0.0, posinf=9e18, neginf=-9e18)
            bits = moved.astype(np.int64).view(np.uint64) & full(width)
        if unknown(a) is not None and mode is not None:
            a = function(tape, names[mode], source, a)
        kind = tape_type(target).replace("u", "i")
        return emitted(tape, "cast", kind, width, bits, (a,), (tape_type(source),))
    if to_number:
        bits = from_float(whole(a, source).astype(np.float64), target)
        kind = made_as(tape, a) or tape_type(source)
        return emitted(tape, "cast", tape_type(target), width, bits, (a,), (kind,))
    own = type_bytes(source)
    if unknown(a) is None:
        return Word(width, whole(a, source).astype(np.int64).view(np.uint64) & full(width))
    made_type = str(made_as(tape, a))
    if made_type in FLOAT_TYPES or isinstance(a, Parts):
        if width > own:
            low = split(a, (own,)) if isinstance(a, Word) else a.words
            return packed((*(low or ()), Word(width - own, np.zeros(tape.lanes, dtype=np.uint64))))
        cut = split(a, (width, *((a.width - width,) if a.width > width else ())))
        if cut is None:
            raise Refused(0, f"a part of a number of type {made_type} is taken")
        return cut[0]
    assert isinstance(a, Word)
    if made_type == "bool" or (made_type[0] in "iu" and int(made_type[1:]) // 8 != width):
        codes = tape.emit("cast", f"i{8 * width}", codes_of(tape, a, made_type))
        return Word(width, whole(a, source).astype(np.int64).view(np.uint64) & full(width), np.where(a.codes >= 0, codes, -1))
    return Word(width, a.bits & full(width), a.codes)


def _saturated(tape: Tape, made: Held, type: str) -> Held:
    zero, one = (Word(type_bytes(type), from_float(np.full(tape.lanes, v), type)) for v in (0.0, 1.0))
    return two(tape, "min", type, two(tape, "max", type, made, zero), one)


# ---------------------------------------------------------------- comparing and choosing


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_UNORDERED = {"equ": "ne", "neu": "eq", "ltu": "ge", "leu": "gt", "gtu": "le", "geu": "lt"}


def compared(tape: Tape, name: str, type: str, a: Held, b: Held) -> Word:
    """`setp`: a comparison that is also true of NaN is written as the negation of its opposite."""
    if name in ("num", "nan"):
        values = np.isnan(floats(a, type)) | np.isnan(floats(b, type))
        lanes = unknown(a, b)
        p = Word(0, values.astype(np.uint64))
        if lanes is not None:
            first = tape.emit("isnan", "bool", number_codes(tape, a, tape_type(type)))
            if made_as(tape, b) is not None and b is not a:
                first = tape.emit(
                    "logical_or", "bool", first, tape.emit("isnan", "bool", number_codes(tape, b, tape_type(type)))
                )
            p = Word(0, p.bits, np.where(lanes, first, -1))
        return inverted(tape, p) if name == "num" else p
    if name in _UNORDERED and name not in ("equ", "neu"):
        return inverted(tape, compared(tape, _UNORDERED[name], type, a, b))
    if name == "neu":
        name = "ne"
    if name == "equ":
        name = "eq"
    name = _UNSIGNED.get(name, name)
    if type in FLOAT_TYPES:
        with np.errstate(all="ignore"):
            known = _COMPARE[name](floats(a, type), floats(b, type)).astype(np.uint64)
        kind = tape_type(type)
        return emitted(tape, name, "bool", 0, known, (a, b), (kind, kind))
    known = _COMPARE[name](whole(a, type), whole(b, type)).astype(np.uint64)
    made = made_as(tape, a, b)
    kind = made if made is not None else tape_type(type)
    if kind in FLOAT_TYPES and name in ("eq", "ne"):
        raise Refused(0, f"the bits of a number of type {kind} are compared")
    return emitted(tape, name, "bool", 0, known, (a, b), (kind, kind))


def chosen(tape: Tape, p: Word, a: Held, b: Held) -> Held:
    """`selp`: a known condition chooses and leaves no trace."""
    lanes = unknown(p)
    if isinstance(a, Parts) or isinstance(b, Parts):
        widths = tuple(w.width for w in (a if isinstance(a, Parts) else b).words)  # type: ignore[union-attr]
        left, right = split(a, widths), split(b, widths)
        if left is None or right is None:
            raise Refused(0, "a choice between values that are packed in different ways")
        words = tuple(chosen(tape, p, x, y) for x, y in zip(left, right, strict=True))
        return packed(tuple(w for w in words if isinstance(w, Word)))
    true = p.bits != 0
    none = np.int64(-1)
    bits = np.where(true, a.bits, b.bits)
    codes: Any = None
    if a.codes is not None or b.codes is not None:
        codes = np.where(true, a.codes if a.codes is not None else none, b.codes if b.codes is not None else none)
    if lanes is not None:
        kind = made_as(tape, a, b) or ("bool" if a.width == 0 else f"i{8 * a.width}")
        if made_as(tape, a, b) is None and a.width >= 2 and _looks_like_numbers(a, b):
            kind = {2: "f16", 4: "f32", 8: "f64"}[a.width]
        made = tape.emit("where", kind, codes_of(tape, p, "bool"), codes_of(tape, a, kind), codes_of(tape, b, kind))
        codes = np.where(lanes, made, codes if codes is not None else none)
    return Word(a.width, bits, codes if codes is not None and (codes >= 0).any() else None)


def _looks_like_numbers(*words: Word) -> bool:
    """Whether known bits of untyped registers are floats: no small integers, but what 1.0 and its like look like."""
    bits = np.concatenate([np.unique(w.bits) for w in words])
    bits = bits[bits != 0]
    top = {2: 6, 4: 22, 8: 51}[words[0].width]
    return bool(bits.size) and bool((bits >> np.uint64(top) != 0).all()) and words[0].width == 4
