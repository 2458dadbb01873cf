"""What a block of threads computes, written down while it runs with real indices and unknown data.

Threads run in step, as lanes of NumPy arrays. Integers, masks and addresses are known numbers. What comes from tensors is not
known: such a value is an array of *codes*, one a lane, each naming an entry of the tape and a lane of it. Whatever only moves
values (shared memory, shuffles, registers, masks) moves codes and leaves no trace: the tape holds nothing but arithmetic.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelwright.core.dtypes import DType

Codes = Any  # np.ndarray of int64
INTS = ("bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")
FLOATS = ("f16", "bf16", "f32", "f64")
SIZES = {d.value: d.size for d in DType} | {"u16": 2, "u32": 4, "u64": 8}
"""Bytes of C's types: those of a sketch, and the wide unsigned ones."""
RANK = {name: k for k, name in enumerate([*INTS, *FLOATS])}


class Value:
    """A scalar of every lane: its C type and either `known` (a number, or an array of one for each lane) or `codes`."""

    __slots__ = ("codes", "known", "type")

    def __init__(self, type: str, known: Any = None, codes: Codes = None) -> None:
        self.type, self.known, self.codes = type, known, codes


class Tape:
    """Entries in order. `ops`, `args`, `types` and `info` are parallel lists; an argument is an array of codes."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.lane: Any = np.arange(lanes, dtype=np.int64)
        self.ops: list[str] = []
        self.args: list[tuple[Codes, ...]] = []
        self.types: list[str] = []
        self.info: list[Any] = []
        self._constants: dict[tuple[str, Any], Codes] = {}

    def emit(self, op: str, type: str, *args: Codes, info: Any = None) -> Codes:
        """A new entry; the codes of its lanes."""
        self.ops.append(op)
        self.types.append(type)
        self.args.append(args)
        self.info.append(info)
        return self.lane + (len(self.ops) - 1) * self.lanes

    def codes(self, value: Value) -> Codes:
        """Any value as codes."""
        if value.codes is not None:
            return value.codes
        if not isinstance(value.known, np.ndarray):
            key = (value.type, repr(value.known))
            if key not in self._constants:
                filled = np.full(self.lanes, value.known)
                self._constants[key] = self.emit("const", value.type, info=filled)
            return self._constants[key]
        return self.emit("const", value.type, info=value.known)

    def constant(self, codes: Codes, mask: Any) -> Any:
        """The numbers behind codes if all that count are constants, else None."""
        entries = codes // self.lanes
        used = np.unique(entries[mask])
        if len(used) == 0 or any(k < 0 or self.ops[k] != "const" for k in used):
            return None
        if len(used) == 1:
            values = self.info[used[0]]
            return values[np.where(mask, codes - used[0] * self.lanes, 0)]
        result = np.zeros(self.lanes, dtype=np.result_type(*(self.info[k].dtype for k in used)))
        for k in used:
            chosen = mask & (entries == k)
            result[chosen] = self.info[k][(codes - k * self.lanes)[chosen]]
        return result


def promoted(a: str, b: str) -> str:
    """C's usual arithmetic conversion."""
    low = RANK["i32"]
    rank = max(RANK[a], RANK[b], low)
    if "f16" in (a, b) and "bf16" in (a, b):
        return "f32"
    return [*INTS, *FLOATS][rank]


def rounded(type: str, value: Any) -> Any:
    """A known number as its type holds it."""
    if type == "f64":
        return np.asarray(value, dtype=np.float64) if isinstance(value, np.ndarray) else float(value)
    if type in FLOATS:
        with np.errstate(all="ignore"):
            small = np.asarray(value, dtype=np.float64).astype(np.float16 if type == "f16" else np.float32).astype(np.float64)
        return small if isinstance(value, np.ndarray) else float(small)
    if type == "bool":
        return value != 0 if isinstance(value, np.ndarray) else bool(value)
    bits = SIZES[type] * 8
    if isinstance(value, np.ndarray):
        with np.errstate(all="ignore"):
            whole = (
                value
                if value.dtype == np.int64
                else np.trunc(value).astype(np.int64)
                if value.dtype.kind == "f"
                else value.astype(np.int64)
            )
        if bits == 64:
            return whole
        if type[0] == "u":
            return whole & ((1 << bits) - 1)
        half = 1 << (bits - 1)
        if whole.size and (whole.max() >= half or whole.min() < -half):
            return ((whole + half) & ((1 << bits) - 1)) - half
        return whole
    if isinstance(value, float) and value != value:
        return 0
    number = int(value)
    if bits == 64:
        return number
    number &= (1 << bits) - 1
    return number - (1 << bits) if type[0] == "i" and number >> (bits - 1) else number
