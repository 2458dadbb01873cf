"""Instructions that move: registers, bytes of registers, memory of all kinds, atomic updates."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelwright.compiler.lift.formulas.refusal import Refused
from kernelwright.compiler.lift.ptx import arithmetic as on
from kernelwright.compiler.lift.ptx import warp
from kernelwright.compiler.lift.ptx.memory import LOCAL, SHARED
from kernelwright.compiler.lift.ptx.table import (
    each_half,
    elements,
    known,
    narrowed,
    opcode,
    type_of,
)
from kernelwright.compiler.lift.ptx.words import Held, Parts, Word, packed, split, word
from kernelwright.gpu.ptx import Address, Instruction, Register, Symbol, Vector, type_bytes


@opcode("cvta")
def _cvta(m: Any, item: Instruction) -> None:
    held = m.value(item.operands[1], 8)
    flag = next((f for name, f in (("shared", SHARED), ("local", LOCAL)) if any(x.startswith(name) for x in item.modifiers)), 0)
    assert isinstance(held, Word)
    if flag and held.codes is None:
        moved = held.bits - np.uint64(flag) if item.has("to") else held.bits + np.uint64(flag)
        held = Word(8, moved)
    m.put(item.operands[0], held)


@opcode("mov")
def _mov(m: Any, item: Instruction) -> None:
    target, source = item.operands[0], item.operands[1]
    type = type_of(item)
    width = 0 if type == "pred" else type_bytes(type)
    if isinstance(source, Vector):
        size = width // len(source.elements)
        held: Held = packed(tuple(w for e in source.elements for w in _words(m.value(e, size), size)))
    else:
        held = m.value(source, width)
    if isinstance(target, Vector):
        size = width // len(target.elements)
        for operand, part in zip(target.elements, _cut(held, size), strict=True):
            m.put(operand, part)
        return
    m.put(target, held)


def _words(held: Held, width: int) -> tuple[Word, ...]:
    """A held value of a vector's element as words."""
    if isinstance(held, Parts):
        return held.words
    return (held,) if held.width == width else split(held, (width, held.width - width))[:1]  # type: ignore[index]


def _cut(held: Held, size: int) -> tuple[Held, ...]:
    """A value in pieces of one size; the pieces may have parts of their own."""
    if isinstance(held, Word):
        cut = split(held, (size,) * (held.width // size))
        if cut is None:
            raise Refused(0, "a value that depends on data is taken apart")
        return cut
    pieces: list[Held] = []
    taken: list[Word] = []
    for part in held.words:
        if part.width > size:
            cut = split(part, (size,) * (part.width // size))
            if cut is None:
                raise Refused(0, "a value that depends on data is taken apart")
            pieces += cut
            continue
        taken.append(part)
        if sum(w.width for w in taken) == size:
            pieces.append(packed(tuple(taken)))
            taken = []
    return tuple(pieces)


@opcode("prmt")
def _prmt(m: Any, item: Instruction) -> None:
    a, b = (m.value(o, 4) for o in item.operands[1:3])
    control = np.unique(known(m, item.operands[3], "u32")[m.mask])
    if len(control) != 1 or len(item.modifiers) > 1:
        raise Refused(0, "bytes are moved in a way that is not read")
    order = [int(control[0]) >> (4 * k) & 15 for k in range(4)]
    if on.unknown(a, b) is None:
        sources = (on.whole(a, "u32") | (on.whole(b, "u32") << np.uint64(32))).astype(np.uint64)
        total = np.zeros(m.tape.lanes, dtype=np.uint64)
        for k, which in enumerate(order):
            byte = (sources >> np.uint64(8 * (which & 7))) & np.uint64(255)
            if which & 8:
                byte = np.where(byte & np.uint64(128), np.uint64(255), np.uint64(0))
            total |= byte << np.uint64(8 * k)
        m.put(item.operands[0], Word(4, total))
        return
    if order == [0, 1, 2, 3]:
        m.put(item.operands[0], a)
        return
    if order == [4, 5, 6, 7]:
        m.put(item.operands[0], b)
        return
    size = 2 if all(order[k + 1] == order[k] + 1 and order[k] % 2 == 0 for k in (0, 2)) else 1
    units = [split(x, (size,) * (4 // size)) for x in (a, b)]
    if any(u is None for u in units) or any(which & 8 for which in order):
        raise Refused(0, "bytes of a value that depends on data are moved")
    every = [w for u in units if u is not None for w in u]
    m.put(item.operands[0], packed(tuple(every[order[k] // size] for k in range(0, 4, size))))


@opcode("ld", "ldu")
def _load(m: Any, item: Instruction) -> None:
    type = type_of(item)
    width = type_bytes(type)
    targets = elements(item.operands[0])
    address = item.operands[1]
    assert isinstance(address, Address)
    if isinstance(address.base, Symbol) and item.has("param"):
        _parameter(m, address, targets, type)
        return
    base, offset = _base(m, address)
    space = m.space(item.modifiers, base)
    if space == "global":
        found: tuple[Held, ...] = m.memory.read(base, offset, (width,) * len(targets), m.mask)
    else:
        memory, flag = m.bytes_of(space)
        at = _offsets(m, base, flag) + offset
        found = tuple(memory.read(at + k * width, width, m.mask) for k in range(len(targets)))
    for target, held in zip(targets, found, strict=True):
        if isinstance(target, Register) and type[0] in "su" and held.width < type_bytes(target.type):
            held = on.converted(m.tape, held, type, f"{type[0]}{8 * type_bytes(target.type)}", ())
        m.put(target, held)


def _parameter(m: Any, address: Address, targets: tuple[Any, ...], type: str) -> None:
    assert isinstance(address.base, Symbol)
    width = type_bytes(type)
    name = address.base.name
    frame = m.frame
    offset = address.offset + address.base.offset
    if name in frame.params:
        for k, target in enumerate(targets):
            held = frame.params[name].get(offset + k * width)
            if held is None:
                raise Refused(0, "an argument of a call is read otherwise than it was written")
            m.put(target, held)
        return
    at = m.parameters()[name] + offset
    for k, target in enumerate(targets):
        raw = m.arguments[at + k * width : at + (k + 1) * width]
        number = int.from_bytes(raw.ljust(width, b"\0"), "little", signed=type[0] == "s")
        own = type_bytes(target.type) if isinstance(target, Register) else width
        m.put(target, word(m.tape.lanes, max(width, own) if type[0] in "su" else width, number))


def _base(m: Any, address: Address) -> tuple[Held, int]:
    if address.base is None:
        return word(m.tape.lanes, 8, address.offset), 0
    return m.value(address.base, 8), address.offset


def _offsets(m: Any, base: Held, flag: int) -> Any:
    if not isinstance(base, Word) or not base.known(m.mask):
        raise Refused(0, "a place in shared or local memory depends on data")
    at = base.bits.astype(np.int64)
    return np.where(at >= flag, at - flag, at)


@opcode("st")
def _store(m: Any, item: Instruction) -> None:
    type = type_of(item)
    width = type_bytes(type)
    address = item.operands[0]
    assert isinstance(address, Address)
    values = [narrowed(m.value(o, width), width) for o in elements(item.operands[1])]
    if isinstance(address.base, Symbol) and item.has("param"):
        held_by = m.frame.params.setdefault(address.base.name, {})
        for k, held in enumerate(values):
            held_by[address.offset + address.base.offset + k * width] = held
        return
    base, offset = _base(m, address)
    store(m, item.modifiers, base, offset, values)


def store(m: Any, modifiers: tuple[str, ...], base: Held, offset: int, values: list[Held]) -> None:
    """Writes values one after another, in the space that the modifiers or the address name."""
    space = m.space(modifiers, base)
    for held in values:
        if space == "global":
            if m.predicate is not None:
                old = m.memory.read(base, offset, (held.width,), m.mask)[0]
                held = on.chosen(m.tape, m.predicate, held, old)
            m.memory.write(base, offset, held, m.mask)
        else:
            memory, flag = m.bytes_of(space)
            at = _offsets(m, base, flag) + offset
            if m.predicate is not None:
                held = on.chosen(m.tape, m.predicate, held, memory.read(at, held.width, m.mask))
            memory.write(at, held, m.mask)
        offset += held.width


@opcode("cp")
def _copy(m: Any, item: Instruction) -> None:
    if not item.has("async"):
        raise Refused(0, "this copy is not read")
    if item.has("bulk"):
        raise Refused(0, "copies by tensor maps are not read")
    if not item.operands or not isinstance(item.operands[0], Address):
        return  # commit and wait
    into, out = item.operands[0], item.operands[1]
    assert isinstance(out, Address)
    count = int(item.operands[2].value)  # type: ignore[union-attr]
    base, offset = _base(m, out)
    target, shift = _base(m, into)
    mask = m.mask
    filled = np.zeros_like(mask)
    if len(item.operands) > 3 and item.operands[3] is not None:
        size = m.value(item.operands[3], 4)
        if not isinstance(size, Word) or not size.known(mask) or not set(np.unique(size.bits[mask]).tolist()) <= {0, count}:
            raise Refused(0, "a copy of a part is not read")
        filled = mask & (size.bits == 0)
    memory, flag = m.bytes_of("shared")
    at = _offsets(m, target, flag) + shift
    if (mask & ~filled).any():
        memory.write(at, m.memory.read(base, offset, (count,), mask & ~filled)[0], mask & ~filled)
    if filled.any():
        memory.write(at, Parts(tuple(word(m.tape.lanes, 4, 0) for _ in range(count // 4))), filled)


@opcode("atom", "red")
def _atomic(m: Any, item: Instruction) -> None:
    type = item.types[-1]
    targets = item.operands[0] if item.opcode == "atom" else None
    address, *rest = item.operands[1:] if item.opcode == "atom" else item.operands
    assert isinstance(address, Address)
    width = type_bytes(type)
    op = next((x for x in item.modifiers if x in ("add", "min", "max", "and", "or", "xor", "exch", "inc", "dec", "cas")), "")
    if op not in ("add", "min", "max", "exch", "and", "or", "xor"):
        raise Refused(0, "this atomic operation is not read")
    base, offset = _base(m, address)
    if not isinstance(base, Word) or not base.known(m.mask):
        raise Refused(0, "it updates a place that depends on data")
    space = m.space(item.modifiers, base)
    values = [narrowed(m.value(o, width), width) for o in elements(rest[0])]
    mask, lanes = m.mask, m.lane[m.mask]
    places = base.bits[mask]
    _, inverse = np.unique(places, return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    rank: Any = np.zeros(len(lanes), dtype=np.int64)
    ordered = inverse[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    rank[order] = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    for k in range(int(rank.max(initial=-1)) + 1):
        m.mask = np.zeros_like(mask)
        m.mask[lanes[rank == k]] = True
        at = offset
        for held in values:
            if space == "global":
                old = m.memory.read(base, at, (width,), m.mask)[0]
            else:
                memory, flag = m.bytes_of(space)
                old = memory.read(_offsets(m, base, flag) + at, width, m.mask)
            if op == "exch":
                new: Held = held
            elif type in on.FLOAT_TYPES or type in on.PAIRS:
                new = each_half(type, lambda t, a: on.two(m.tape, op, t, a[0], a[1]), [old, held])
            else:
                new = on.integer(m.tape, op, type, old, held)
            store(m, item.modifiers, base, at, [new])
            if targets is not None and not isinstance(targets, Vector):
                m.put(targets, old)
            at += width
    m.mask = mask


@opcode("isspacep")
def _isspacep(m: Any, item: Instruction) -> None:
    space = m.space((), m.value(item.operands[1], 8))
    m.put(item.operands[0], word(m.tape.lanes, 0, int(item.modifiers[0].startswith(space))))


@opcode("ldmatrix")
def _ldmatrix(m: Any, item: Instruction) -> None:
    targets = elements(item.operands[0])
    address = item.operands[1]
    assert isinstance(address, Address)
    base, offset = _base(m, address)
    memory, flag = m.bytes_of("shared")
    addresses = _offsets(m, base, flag) + offset
    for number, target in enumerate(targets):
        first, second = warp.matrix_rows(m.lane, m.warp_start, addresses, number, item.has("trans"))
        pair = [memory.read(at, 2, m.mask) for at in (first, second)] if item.has("trans") else []
        if not item.has("trans"):
            m.put(target, memory.read(first, 4, m.mask))
            continue
        m.put(target, packed(tuple(w for held in pair for w in (held.words if isinstance(held, Parts) else (held,)))))
