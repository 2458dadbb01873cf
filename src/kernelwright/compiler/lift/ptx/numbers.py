"""Instructions that compute: integers, bits, floats, comparisons, conversions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.compiler.lift.formulas.refusal import Refused
from kernelwright.compiler.lift.ptx import arithmetic as on
from kernelwright.compiler.lift.ptx.table import (
    each_half,
    known,
    opcode,
    operands,
    type_of,
)
from kernelwright.compiler.lift.ptx.words import Held, Word, full, packed, split, word
from kernelwright.gpu.ptx import Instruction, type_bytes


@opcode("add", "sub", "min", "max", "div", "rem", "and", "or", "xor", "shl", "shr")
def _two(m: Any, item: Instruction) -> None:
    type = type_of(item)
    if type == "pred":
        a, b = operands(m, item, 0)
        assert isinstance(a, Word)
        assert isinstance(b, Word)
        m.put(item.operands[0], on.predicate_logic(m.tape, item.opcode, a, b))
        return
    if type in on.FLOAT_TYPES or type in on.PAIRS:
        args = operands(m, item, type_bytes(type))
        made = each_half(type, lambda t, a: on.two(m.tape, item.opcode, t, a[0], a[1]), args)
        m.put(item.operands[0], on._saturated(m.tape, made, type) if item.has("sat") and type in on.FLOAT_TYPES else made)
        return
    width = type_bytes(type)
    right = 4 if item.opcode in ("shl", "shr") else width
    m.put(
        item.operands[0],
        on.integer(m.tape, item.opcode, type, m.value(item.operands[1], width), m.value(item.operands[2], right)),
    )


@opcode("mul", "mad", "fma", "mul24", "mad24")
def _multiply(m: Any, item: Instruction) -> None:
    type = type_of(item)
    tape = m.tape
    if type in on.FLOAT_TYPES or type in on.PAIRS:

        def do(t: str, a: list[Held]) -> Held:
            product = on.two(tape, "mul", t, a[0], a[1])
            made: Held = product if len(a) == 2 else on.two(tape, "add", t, product, a[2])
            return on.two(tape, "max", t, made, word(tape.lanes, type_bytes(t), 0)) if item.has("relu") else made

        made = each_half(type, do, operands(m, item, type_bytes(type)))
        m.put(item.operands[0], on._saturated(tape, made, type) if item.has("sat") and type in on.FLOAT_TYPES else made)
        return
    width = type_bytes(type)
    a, b = (m.value(o, width) for o in item.operands[1:3])
    if item.has("wide"):
        wide = f"{type[0]}{16 * width}"
        made = on.integer(tape, "mul", wide, *(on.converted(tape, x, type, wide, ()) for x in (a, b)))
        width *= 2
        type = wide
    elif item.has("hi"):
        if on.unknown(a, b) is not None:
            raise Refused(0, "the upper half of a product of data")
        x, y = (on.whole(v, type).astype(object) for v in (a, b))
        made = Word(width, ((x * y) >> (8 * width)).astype(object) & ((1 << (8 * width)) - 1))
        made.bits = made.bits.astype(np.uint64)
    else:
        made = on.integer(tape, "mul", type, a, b)
    if item.opcode in ("mad", "mad24"):
        made = on.integer(tape, "add", type, made, m.value(item.operands[3], width))
    m.put(item.operands[0], made)


FUNCTIONS = {
    "neg": "neg", "abs": "abs", "ex2": "exp2", "lg2": "log2", "sqrt": "sqrt", "rsqrt": "rsqrt", "rcp": "reciprocal", "sin": "sin",
    "cos": "cos", "tanh": "tanh",
}  # fmt: skip


@opcode(*FUNCTIONS)
def _one(m: Any, item: Instruction) -> None:
    type = type_of(item)
    if type in on.FLOAT_TYPES or type in on.PAIRS:
        name = FUNCTIONS[item.opcode]

        def do(t: str, a: list[Held]) -> Held:
            return exponential(m.tape, t, a[0]) if name == "exp2" else on.function(m.tape, name, t, a[0])

        m.put(item.operands[0], each_half(type, do, operands(m, item, type_bytes(type))))
        return
    width = type_bytes(type)
    zero, a = word(m.tape.lanes, width, 0), m.value(item.operands[1], width)
    negative = on.integer(m.tape, "sub", type, zero, a)
    m.put(item.operands[0], negative if item.opcode == "neg" else on.integer(m.tape, "max", type, a, negative))


def exponential(tape: Any, type: str, a: Held) -> Word:
    """`2 ** (x * log2(e))` is `exp(x)`: how every compiler writes it."""
    if isinstance(a, Word) and a.codes is not None and type == "f32":
        lanes = a.codes >= 0
        entries = np.unique(a.codes[lanes] // tape.lanes)
        inner = np.full(tape.lanes, -1, dtype=np.int64)
        for e in entries:
            chosen = lanes & (a.codes // tape.lanes == e)
            if tape.ops[e] != "mul":
                break
            at = (a.codes - e * tape.lanes)[chosen]
            sides = [side[at] for side in tape.args[e]]
            for one, other in (sides, sides[::-1]):
                entry = np.unique(other // tape.lanes)
                if len(entry) == 1 and tape.ops[entry[0]] == "const":
                    numbers = tape.info[entry[0]][other - entry[0] * tape.lanes]
                    if np.allclose(numbers, on.LOG2E, rtol=1e-6):
                        inner[chosen] = one
                        break
        if (inner[lanes] >= 0).all():
            known = on.function(tape, "exp2", type, Word(a.width, a.bits)).bits
            codes = tape.emit("exp", "f32", np.where(lanes, inner, inner[lanes][0]))
            return Word(4, known, np.where(lanes, codes, -1))
    return on.function(tape, "exp2", type, a)


@opcode("not", "cnot")
def _not(m: Any, item: Instruction) -> None:
    if item.has("pred"):
        m.put(item.operands[0], on.inverted(m.tape, m.value(item.operands[1], 0)))
        return
    width = type_bytes(type_of(item))
    ones = word(m.tape.lanes, width, (1 << (8 * width)) - 1)
    m.put(item.operands[0], on.integer(m.tape, "xor", f"u{8 * width}", m.value(item.operands[1], width), ones))


@opcode("lop3")
def _lop3(m: Any, item: Instruction) -> None:
    a, b, c = (m.value(o, 4) for o in item.operands[1:4])
    table = int(item.operands[4].value)  # type: ignore[union-attr]
    if on.unknown(a, b, c) is not None:
        two = {0xC0: ("and", a, b), 0xFC: ("or", a, b), 0x3C: ("xor", a, b), 0xA0: ("and", a, c), 0x88: ("and", b, c)}
        if table not in two:
            raise Refused(0, "bits of data are combined in a way that is not read")
        op, left, right = two[table]
        m.put(item.operands[0], on.integer(m.tape, op, "u32", left, right))
        return
    x, y, z = (on.whole(v, "u32") for v in (a, b, c))
    total = np.zeros_like(x)
    for k in range(8):
        if table >> k & 1:
            term = (x if k & 4 else ~x) & (y if k & 2 else ~y) & (z if k & 1 else ~z)
            total |= term
    m.put(item.operands[0], Word(4, total & full(4)))


@opcode("bfe")
def _bfe(m: Any, item: Instruction) -> None:
    type = type_of(item)
    width = type_bytes(type)
    a = known(m, item.operands[1], type)
    at, count = (known(m, o, "u32") & np.uint64(255) for o in item.operands[2:4])
    bits = a.view(np.uint64) if type[0] == "s" else a
    field = (bits & full(width)) >> np.minimum(at, np.uint64(63))
    mask = np.where(count >= np.uint64(64), full(8), (np.uint64(1) << np.minimum(count, np.uint64(63))) - np.uint64(1))
    made = np.where(count == 0, np.uint64(0), field & mask)
    if type[0] == "s":
        top = np.where(count > 0, (made >> np.maximum(count, np.uint64(1)) - np.uint64(1)) & np.uint64(1), np.uint64(0))
        made = np.where(top != 0, made | ~mask, made)
    m.put(item.operands[0], Word(width, made & full(width)))


@opcode("bfi")
def _bfi(m: Any, item: Instruction) -> None:
    type = type_of(item)
    width = type_bytes(type)
    a, b = (known(m, o, type) for o in item.operands[1:3])
    at, count = (known(m, o, "u32") & np.uint64(255) for o in item.operands[3:5])
    mask = ((np.uint64(1) << np.minimum(count, np.uint64(63))) - np.uint64(1)) << np.minimum(at, np.uint64(63))
    m.put(item.operands[0], Word(width, ((b & ~mask) | ((a << np.minimum(at, np.uint64(63))) & mask)) & full(width)))


@opcode("popc", "clz", "brev", "bfind")
def _count(m: Any, item: Instruction) -> None:
    type = type_of(item)
    width = type_bytes(type)
    values = (known(m, item.operands[1], type).view(np.uint64) & full(width)).tolist()
    table: dict[str, Callable[[int], int]] = {
        "popc": lambda v: v.bit_count(),
        "clz": lambda v: 8 * width - v.bit_length(),
        "brev": lambda v: int(f"{v:0{8 * width}b}"[::-1], 2),
        "bfind": lambda v: (v.bit_length() - 1) & 0xFFFFFFFF,
    }
    made = np.array([table[item.opcode](int(v)) for v in values], dtype=np.uint64)
    m.put(item.operands[0], Word(width if item.opcode == "brev" else 4, made))


@opcode("shf")
def _shf(m: Any, item: Instruction) -> None:
    low, high, by = (known(m, o, "u32") for o in item.operands[1:4])
    by = np.minimum(by, np.uint64(32)) if item.has("clamp") else by & np.uint64(31)
    both = low | (high << np.uint64(32))
    made = (both << by) >> np.uint64(32) if item.has("l") else both >> by
    m.put(item.operands[0], Word(4, made & full(4)))


@opcode("dp4a")
def _dp4a(m: Any, item: Instruction) -> None:
    types = item.types
    total = m.value(item.operands[3], 4)
    for a, b in zip(*(_bytes(m.value(o, 4)) for o in item.operands[1:3]), strict=True):
        x, y = (on.converted(m.tape, v, f"{t[0]}8", "s32", ()) for v, t in ((a, types[0]), (b, types[1])))
        total = on.integer(m.tape, "add", "s32", total, on.integer(m.tape, "mul", "s32", x, y))
    m.put(item.operands[0], total)


def _bytes(held: Held) -> tuple[Word, ...]:
    words = split(held, (1,) * held.width)
    if words is None:
        raise Refused(0, "a value is cut into bytes")
    return words


@opcode("copysign")
def _copysign(m: Any, item: Instruction) -> None:
    type = type_of(item)
    sign, size = operands(m, item, type_bytes(type))
    m.put(item.operands[0], on.two(m.tape, "copysign", type, size, sign))


@opcode("testp")
def _testp(m: Any, item: Instruction) -> None:
    type = type_of(item)
    a = m.value(item.operands[1], type_bytes(type))
    kind = item.modifiers[0]
    values = on.floats(a, type)
    known = {"notanumber": np.isnan, "infinite": np.isinf, "finite": np.isfinite, "number": lambda v: ~np.isnan(v)}
    if kind not in known:
        raise Refused(0, "this test of a number is not read")
    name = {"notanumber": "isnan", "number": "isnan", "infinite": "isinf", "finite": "isinf"}[kind]
    lanes = on.unknown(a)
    made = Word(0, known[kind](values).astype(np.uint64))
    if lanes is not None:
        if kind == "finite":
            raise Refused(0, "a test for finite numbers is not read")
        positive = Word(0, (known["notanumber" if name == "isnan" else "infinite"](values)).astype(np.uint64))
        codes = m.tape.emit(name, "bool", on.number_codes(m.tape, a, on.tape_type(type)))
        made = Word(0, positive.bits, np.where(lanes, codes, -1))
        made = on.inverted(m.tape, made) if kind == "number" else made
    m.put(item.operands[0], made)


@opcode("setp", "set")
def _setp(m: Any, item: Instruction) -> None:
    name = item.modifiers[0]
    type = item.types[-1]
    first = 2 if item.pair else 1
    width = type_bytes(type)
    a, b = (m.value(o, width) for o in item.operands[first : first + 2])
    if type in on.PAIRS:
        raise Refused(0, "comparing packed numbers is not read")
    p = on.compared(m.tape, name, type, a, b)
    extra = item.operands[first + 2 :]
    combine = next((x for x in item.modifiers if x in ("and", "or", "xor")), None)
    both = [p, on.inverted(m.tape, p)] if item.pair else [p]
    if combine is not None and extra:
        c = m.value(extra[0], 0)
        both = [on.predicate_logic(m.tape, combine, x, c) for x in both]
    if item.opcode == "setp":
        for operand, value in zip(item.operands, both, strict=False):
            m.put(operand, value)
        return
    target = item.types[0]
    one = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}.get(target, 0xFFFFFFFF)
    width = type_bytes(target)
    m.put(item.operands[0], on.chosen(m.tape, both[0], word(m.tape.lanes, width, one), word(m.tape.lanes, width, 0)))


@opcode("selp")
def _selp(m: Any, item: Instruction) -> None:
    width = type_bytes(type_of(item))
    a, b = (m.value(o, width) for o in item.operands[1:3])
    m.put(item.operands[0], on.chosen(m.tape, m.value(item.operands[3], 0), a, b))


@opcode("slct")
def _slct(m: Any, item: Instruction) -> None:
    width = type_bytes(item.types[0])
    a, b = (m.value(o, width) for o in item.operands[1:3])
    c = m.value(item.operands[3], 4)
    p = on.compared(m.tape, "ge", item.types[1], c, word(m.tape.lanes, 4, 0))
    m.put(item.operands[0], on.chosen(m.tape, p, a, b))


@opcode("cvt")
def _cvt(m: Any, item: Instruction) -> None:
    target, source = item.types[0], item.types[1]
    if target in on.PAIRS:
        half = on.PAIRS[target]
        high, low = (on.converted(m.tape, m.value(o, 4), source, half, item.modifiers) for o in item.operands[1:3])
        if item.has("relu"):
            zero = word(m.tape.lanes, 2, 0)
            high, low = (on.two(m.tape, "max", half, x, zero) for x in (high, low))
        m.put(item.operands[0], packed(tuple(w for w in (low, high) if isinstance(w, Word))))
        return
    for type in (target, source):
        if type not in on.FLOAT_TYPES and type[0] not in "subf":
            raise Refused(0, f"numbers of type {type} are not read")
    m.put(item.operands[0], on.converted(m.tape, m.value(item.operands[1], type_bytes(source)), source, target, item.modifiers))
