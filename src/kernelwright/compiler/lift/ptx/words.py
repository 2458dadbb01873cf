"""What a register holds, for all lanes at once.

A `Word` has for each lane either known bits or a code of the tape (-1: the bits are known). `Parts` are narrower words side by side, low
bits first: two halves in a 32-bit register, four floats of a vector load. Types belong to instructions; only codes carry theirs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelwright.compiler.lift.formulas.refusal import Refused
from kernelwright.compiler.lift.formulas.tape import Tape

FLOATS: dict[str, Any] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
_FULL = {width: np.uint64((1 << (8 * width)) - 1) for width in (1, 2, 4, 8)}


class Word:
    """`width` bytes (0: a predicate). `codes` is None where every lane is known."""

    __slots__ = ("bits", "codes", "width")

    def __init__(self, width: int, bits: Any, codes: Any = None) -> None:
        self.width, self.bits, self.codes = width, bits, codes

    def known(self, mask: Any) -> bool:
        """Whether all lanes that count are known."""
        return self.codes is None or not bool((self.codes[mask] >= 0).any())


class Parts:
    """Words side by side."""

    __slots__ = ("words",)

    def __init__(self, words: tuple[Word, ...]) -> None:
        self.words = words

    @property
    def width(self) -> int:
        """Bytes altogether."""
        return sum(w.width for w in self.words)


Held = Word | Parts


def full(width: int) -> Any:
    """The mask of so many bytes."""
    return _FULL[width]


def word(lanes: int, width: int, value: int) -> Word:
    """The same number in every lane."""
    return Word(width, np.full(lanes, value & ((1 << (8 * width)) - 1 if width else 1), dtype=np.uint64))


def signed(bits: Any, width: int) -> Any:
    """Bits as signed integers."""
    shift = np.uint64(64 - 8 * width)
    return (bits << shift).view(np.int64) >> np.int64(64 - 8 * width)


def as_float(bits: Any, type: str) -> Any:
    """Bits as numbers (float64 for f64, float32 otherwise: f16 and bf16 fit in it)."""
    if type == "f64":
        return bits.view(np.float64)
    if type == "f32":
        return bits.astype(np.uint32).view(np.float32)
    if type == "f16":
        return bits.astype(np.uint16).view(np.float16).astype(np.float32)
    if type == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    raise Refused(0, f"numbers of type {type} are not read")


def from_float(values: Any, type: str) -> Any:
    """Numbers as bits, rounded to the nearest."""
    with np.errstate(all="ignore"):
        if type == "f64":
            return np.asarray(values, dtype=np.float64).view(np.uint64)
        if type == "f32":
            return np.asarray(values, dtype=np.float32).view(np.uint32).astype(np.uint64)
        if type == "f16":
            return np.asarray(values).astype(np.float16).view(np.uint16).astype(np.uint64)
        if type == "bf16":
            whole = np.asarray(values, dtype=np.float32).view(np.uint32).astype(np.uint64)
            odd = (whole >> np.uint64(16)) & np.uint64(1)
            rounded = (whole + np.uint64(0x7FFF) + odd) >> np.uint64(16)
            return np.where(np.isnan(values), np.uint64(0x7FC0), rounded) & np.uint64(0xFFFF)
    raise Refused(0, f"numbers of type {type} are not read")


def number(bits: Any, type: str) -> Any:
    """Bits as what the tape holds of a constant of this type."""
    if type == "bool":
        return bits != 0
    if type[0] in "iu":
        width = int(type[1:]) // 8
        return signed(bits, width) if type[0] == "i" else bits.astype(np.int64)
    return as_float(bits, type).astype(np.float64)


def codes_of(tape: Tape, held: Held, type: str) -> Any:
    """Codes for every lane; known lanes become constants of the type."""
    one = joined(held) if isinstance(held, Parts) else held
    if one is None:
        raise Refused(0, "packed values are used as one number")
    if one.codes is not None and (one.codes >= 0).all():
        return one.codes
    constants = tape.emit("const", type, info=number(one.bits, type))
    return constants if one.codes is None else np.where(one.codes >= 0, one.codes, constants)


def joined(parts: Parts) -> Word | None:
    """Parts as one word where all of them are known."""
    bits, shift = None, 0
    for part in parts.words:
        if part.codes is not None and (part.codes >= 0).any():
            return None
        moved = part.bits << np.uint64(shift)
        bits = moved if bits is None else bits | moved
        shift += 8 * part.width
    return Word(parts.width, bits) if parts.width <= 8 else None


def split(held: Held, widths: tuple[int, ...]) -> tuple[Word, ...] | None:
    """The same bits as words of these widths, low first; None where an unknown value would be cut."""
    if isinstance(held, Word):
        if widths == (held.width,):
            return (held,)
        if held.codes is not None and (held.codes >= 0).any():
            return None
        made, shift = [], 0
        for width in widths:
            made.append(Word(width, (held.bits >> np.uint64(shift)) & full(width)))
            shift += 8 * width
        return tuple(made)
    made = []
    queue = list(held.words)
    for width in widths:
        taken: list[Word] = []
        while sum(w.width for w in taken) < width and queue:
            first = queue.pop(0)
            room = width - sum(w.width for w in taken)
            if first.width > room:
                cut = split(first, (room, first.width - room))
                if cut is None:
                    return None
                first, rest = cut
                queue.insert(0, rest)
            taken.append(first)
        if len(taken) == 1:
            made.append(taken[0])
        else:
            one = joined(Parts(tuple(taken)))
            if one is None:
                return None
            made.append(one)
    return tuple(made)


def packed(words: tuple[Word, ...]) -> Held:
    """Words side by side, as one where all are known and they fit."""
    if len(words) == 1:
        return words[0]
    made = Parts(words)
    return joined(made) or made


def merged(mask: Any, new: Held, old: Held | None) -> Held:
    """`new` in the lanes of the mask, `old` in the others."""
    if old is None or mask.all():
        return new
    if isinstance(new, Parts) or isinstance(old, Parts):
        widths = tuple(w.width for w in (new if isinstance(new, Parts) else old).words)  # type: ignore[union-attr]
        a, b = split(new, widths), split(old, widths)
        if a is None or b is None:
            a_widths = tuple(w.width for w in (old if isinstance(old, Parts) else new).words)  # type: ignore[union-attr]
            a, b = split(new, a_widths), split(old, a_widths)
        if a is None or b is None:
            return new  # what the other lanes held was another kind of value: they never look at it again, or are refused then
        return Parts(tuple(_merged(mask, x, y) for x, y in zip(a, b, strict=True)))
    return _merged(mask, new, old)


def _merged(mask: Any, new: Word, old: Word) -> Word:
    bits = np.where(mask, new.bits, old.bits)
    if new.codes is None and old.codes is None:
        return Word(new.width, bits)
    none = np.int64(-1)
    return Word(
        new.width,
        bits,
        np.where(mask, new.codes if new.codes is not None else none, old.codes if old.codes is not None else none),
    )
