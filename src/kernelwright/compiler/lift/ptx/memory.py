"""Memory while a kernel is read: tensors by element, shared memory and memory of a thread by byte.

Addresses are numbers. Each tensor has a range of its own (`Global.base`), shared memory and the memory of threads have theirs, so that
a generic address says which it means. A tensor's element that no thread has written is an entry `load` of the tape; what is written stays
known by its address. An address that depends on data leads to a `gather`, if what varies in it is a multiple of the element's size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelwright.compiler.lift.formulas.memory import Memory
from kernelwright.compiler.lift.formulas.refusal import Refused
from kernelwright.compiler.lift.formulas.tape import SIZES, Tape
from kernelwright.compiler.lift.launches import Buffer, View
from kernelwright.compiler.lift.ptx.words import Held, Parts, Word, codes_of, from_float, full, merged, split

RANGE = 40
"""Bits of an address inside one tensor."""
SHARED, LOCAL, CONSTANT = 1 << 60, 1 << 61, 1 << 62


class Bytes:
    """Shared memory of the blocks that run together, or memory of each thread: `rows` of `size` bytes, lane → row by `row`."""

    def __init__(self, rows: int, size: int, row: Any) -> None:
        self.size, self.row = size, row
        self.bytes: Any = np.zeros((rows, size), dtype=np.uint8)
        self.codes: Any = np.full((rows, size), -1, dtype=np.int64)
        self.widths: Any = np.zeros((rows, size), dtype=np.int8)
        self.written: Any = np.zeros((rows, size), dtype=bool)

    def read(self, at: Any, width: int, mask: Any) -> Held:
        """The word at a byte offset of each lane."""
        self._inside(at, width, mask)
        at = np.where(mask, at, 0)
        rows = self.row
        widths = np.unique(self.widths[rows, at][mask & (self.codes[rows, at] >= 0)])
        narrow = [int(w) for w in widths if w < width]
        if not narrow:
            inner = [k for k in range(1, width) if (self.codes[rows, at + k][mask] >= 0).any()]
            narrow = [inner[0]] if inner else []
        if narrow:
            step = narrow[0]
            words = [self.read(at + k, step, mask) for k in range(0, width, step)]
            return Parts(tuple(w for held in words for w in (held.words if isinstance(held, Parts) else (held,))))
        bits: Any = np.zeros(len(at), dtype=np.uint64)
        for k in range(width):
            bits |= self.bytes[rows, at + k].astype(np.uint64) << np.uint64(8 * k)
        codes = self.codes[rows, at]
        codes = np.where(self.widths[rows, at] == width, codes, -1)
        return Word(width, bits, codes if (codes[mask] >= 0).any() else None)

    def write(self, at: Any, held: Held, mask: Any) -> None:
        """Active lanes write; of several that meet in one place the last stays."""
        self._inside(at, held.width, mask)
        for part in held.words if isinstance(held, Parts) else (held,):
            rows, places = self.row[mask], at[mask]
            for k in range(part.width):
                self.bytes[rows, places + k] = ((part.bits[mask] >> np.uint64(8 * k)) & np.uint64(255)).astype(np.uint8)
                self.codes[rows, places + k] = -1
                self.widths[rows, places + k] = 0
                self.written[rows, places + k] = True
            if part.codes is not None:
                self.codes[rows, places] = part.codes[mask]
                self.widths[rows, places] = np.where(part.codes[mask] >= 0, part.width, 0)
            at = at + part.width

    def _inside(self, at: Any, width: int, mask: Any) -> None:
        used = at[mask]
        if used.size and (used.min() < 0 or used.max() + width > self.size):
            raise Refused(0, f"an access to shared or local memory lies outside of it (byte {int(used.max())} of {self.size})")


class Global:
    """All tensors of a forward."""

    def __init__(self, tape: Tape, buffers: Mapping[str, Buffer]) -> None:
        self.tape = tape
        self.memories = {name: Memory("global", name, b.dtype.value, b.elements, b) for name, b in buffers.items()}
        self.order = list(self.memories.values())
        self.values = {name: np.asarray(b.values) for name, b in buffers.items() if b.role == "constant" and b.values}

    def address(self, view: View) -> int:
        """Where a tensor's first element lies."""
        memory = self.memories[view.buffer]
        return ((self.order.index(memory) + 1) << RANGE) + (1 << (RANGE - 1)) + view.offset * SIZES[memory.type]

    def read(self, address: Held, offset: int, widths: tuple[int, ...], mask: Any) -> tuple[Held, ...]:
        """Words of these widths behind an address."""
        one = address if isinstance(address, Word) else None
        if one is None:
            raise Refused(0, "an address is put together of parts")
        if not one.known(mask):
            return self._gathered(one, offset, widths, mask)
        found: list[Held] = []
        for width in widths:
            found.append(self._word(one.bits.astype(np.int64) + offset, width, mask))
            offset += width
        return tuple(found)

    def _word(self, at: Any, width: int, mask: Any) -> Held:
        made: Held | None = None
        for memory, chosen, inside in self._split(at, mask):
            size = SIZES[memory.type]
            if size > width:
                raise Refused(0, f"a part of an element of {memory.name} ({memory.type}) is read")
            words = tuple(self._element(memory, inside + k, size, chosen) for k in range(0, width, size))
            part: Held = words[0] if len(words) == 1 else Parts(words)
            made = part if made is None else merged(chosen, part, made)
        return made if made is not None else Word(width, np.zeros(self.tape.lanes, dtype=np.uint64))

    def _split(self, at: Any, mask: Any) -> list[tuple[Memory, Any, Any]]:
        """The tensors that lanes point into, with the lanes and their byte offsets."""
        which = at >> RANGE
        found = []
        for k in np.unique(which[mask]):
            if not 0 < k <= len(self.order):
                raise Refused(0, "an address leads to no tensor")
            chosen = mask & (which == k)
            found.append((self.order[int(k) - 1], chosen, np.where(chosen, (at & ((1 << RANGE) - 1)) - (1 << (RANGE - 1)), 0)))
        return found

    def _place(self, memory: Memory, inside: Any, chosen: Any) -> Any:
        at = inside // SIZES[memory.type]
        used = at[chosen]
        if (inside[chosen] % SIZES[memory.type]).any():
            raise Refused(0, f"an address of {memory.name} lies between its elements")
        if used.size and (used.min() < 0 or used.max() >= memory.size):
            worst = int(used.max() if used.max() >= memory.size else used.min())
            raise Refused(0, f"an access to {memory.name} lies outside of it (element {worst} of {memory.size})")
        return np.where(chosen, at, 0)

    def _element(self, memory: Memory, inside: Any, size: int, chosen: Any) -> Word:
        at = self._place(memory, inside, chosen)
        codes = self.tape.emit("load", memory.type, info=(memory, at))
        if memory.written:
            found = np.asarray([memory.written.get(a, -1) for a in at.tolist()])
            codes = np.where(found >= 0, found, codes)
        bits: Any = np.zeros(self.tape.lanes, dtype=np.uint64)
        constant = self.tape.constant(codes, chosen) if memory.written else None
        if constant is not None:
            return Word(size, bits_of(constant, memory.type))
        return Word(size, bits, np.where(chosen, codes, -1))

    def _gathered(self, address: Word, offset: int, widths: tuple[int, ...], mask: Any) -> tuple[Held, ...]:
        """Elements at a place that depends on data."""
        base, index = linear(self.tape, address, mask)
        parts = self._split(base + offset, mask)
        if len(parts) != 1:
            raise Refused(0, "an address that depends on data leads into several tensors")
        memory, chosen, inside = parts[0]
        size = SIZES[memory.type]
        if any(w % size for w in widths) or memory.written:
            raise Refused(0, f"elements of {memory.name} are read by data in a way that is not known")
        found: list[Held] = []
        for width in widths:
            words = []
            for k in range(0, width, size):
                element = self._index(inside + k, index, size, mask)
                codes = self.tape.emit("gather", memory.type, element, info=memory)
                words.append(Word(size, np.zeros(self.tape.lanes, dtype=np.uint64), np.where(chosen, codes, -1)))
            found.append(words[0] if len(words) == 1 else Parts(tuple(words)))
            inside = inside + width
        return tuple(found)

    def _index(self, inside: Any, index: list[tuple[int, Any]], size: int, mask: Any) -> Any:
        tape = self.tape
        if (inside[mask] % size).any() or any(factor % size for factor, _ in index):
            raise Refused(0, "an address that depends on data is no multiple of the element's size")
        total: Any = None
        for factor, codes in index:
            one = codes
            if factor != size:
                one = tape.emit("mul", "i64", one, tape.emit("const", "i64", info=np.full(tape.lanes, factor // size)))
            total = one if total is None else tape.emit("add", "i64", total, one)
        first = np.where(mask, inside // size, 0)
        return total if not first.any() else tape.emit("add", "i64", total, tape.emit("const", "i64", info=first))

    def write(self, address: Held, offset: int, held: Held, mask: Any) -> None:
        """Active lanes write."""
        if not isinstance(address, Word) or not address.known(mask):
            raise Refused(0, "it writes to a place that depends on data")
        at = address.bits.astype(np.int64) + offset
        for memory, chosen, inside in self._split(at, mask):
            size = SIZES[memory.type]
            words = split(held, (size,) * (held.width // size)) if held.width % size == 0 else None
            if words is None:
                raise Refused(0, f"a part of a value is written to {memory.name} ({memory.type})")
            for k, part in enumerate(words):
                places = self._place(memory, inside + k * size, chosen)
                codes = codes_of(self.tape, part, memory.type)
                memory.written.update(zip(places[chosen].tolist(), codes[chosen].tolist(), strict=True))


def bits_of(numbers: Any, type: str) -> Any:
    """Constants of the tape as bits."""
    if type[0] in "fb" and type != "bool":
        return from_float(np.asarray(numbers, dtype=np.float64), type)
    width = SIZES[type]
    return np.asarray(numbers).astype(np.int64).view(np.uint64) & full(width)


def linear(tape: Tape, address: Word, mask: Any) -> tuple[Any, list[tuple[int, Any]]]:
    """An address as a known number and multiples of unknown integers. All lanes that count have to be made in one way."""
    lanes = tape.lanes
    total: Any = np.where(mask & (address.codes < 0), address.bits.astype(np.int64), 0)
    if (address.codes[mask] < 0).any():
        raise Refused(0, "addresses depend on data in some lanes only")
    found: dict[Any, tuple[int, Any]] = {}
    stack: list[tuple[int, Any]] = [(1, address.codes)]
    while stack:
        factor, codes = stack.pop()
        constant = tape.constant(codes, mask)
        if constant is not None:
            total = total + factor * np.where(mask, constant, 0).astype(np.int64)
            continue
        entries = np.unique(codes[mask] // lanes)
        ops = {tape.ops[e] for e in entries}
        if len(ops) == 1 and (op := ops.pop()) in ("add", "sub", "mul", "shl"):
            args: list[Any] = [np.zeros(lanes, dtype=np.int64), np.zeros(lanes, dtype=np.int64)]
            for e in entries:
                chosen = mask & (codes // lanes == e)
                for k in (0, 1):
                    args[k][chosen] = tape.args[e][k][(codes - e * lanes)[chosen]]
            second = tape.constant(args[1], mask)
            if op in ("add", "sub"):
                stack += [(factor, args[0]), (factor if op == "add" else -factor, args[1])]
                continue
            first = tape.constant(args[0], mask)
            scale = second if second is not None else first
            if scale is not None and len(np.unique(scale[mask])) == 1 and (op == "mul" or second is not None):
                by = int(scale[mask][0])
                stack.append((factor * (by if op == "mul" else 1 << by), args[0] if second is not None else args[1]))
                continue
        key = codes[mask].tobytes()
        found[key] = (found.get(key, (0, None))[0] + factor, codes)
    return total, [entry for entry in found.values() if entry[0]]
