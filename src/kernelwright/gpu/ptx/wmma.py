"""`wmma` as the instructions that it stands for: loads and stores by lane, and `mma.sync` on the same fragments.

In: a function as parsed. Out: the function without `wmma`. How lanes share a fragment of wmma is nobody's business but the device's;
here it is as `mma.sync` has it, so that whoever executes, counts or lifts PTX needs to know one kind of product. Types below a byte stay as
they are, and are refused where they are executed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kernelwright.gpu.ptx.nodes import (
    Address,
    Function,
    Immediate,
    Instruction,
    Label,
    Operand,
    Register,
    Special,
    Symbol,
    Vector,
)

_BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "f32": 4, "s32": 4, "f64": 8, "s8": 1, "u8": 1}
_SHAPES = {
    "m16n16k16": (16, 16, 16),
    "m32n8k16": (32, 8, 16),
    "m8n32k16": (8, 32, 16),
    "m16n16k8": (16, 16, 8),
    "m8n8k4": (8, 8, 4),
}


@dataclass(frozen=True)
class _Place:
    """Where in its matrix a register's first element lies, and the next: lane 4r + q holds row·r + quarter·q + the constants."""

    first: tuple[int, int, int]
    second: tuple[int, int, int]
    along: int
    """The index (0 or 1) along which the register's further elements go."""


def without_wmma(function: Function) -> Function:
    """The function with each `wmma` written out."""
    if not any(item.opcode == "wmma" for item in function.instructions):
        return function
    writer = _Writer(dict(function.registers))
    body: list[Instruction | Label] = []
    for item in function.body:
        if isinstance(item, Instruction) and item.opcode == "wmma":
            body += writer.expanded(item)
        else:
            body.append(item)
    return replace(function, body=tuple(body), registers=writer.registers)


class _Writer:
    def __init__(self, registers: dict[str, str]) -> None:
        self.registers = registers
        self.out: list[Instruction] = []
        self.number = 0

    def expanded(self, i: Instruction) -> list[Instruction]:
        shape = next((_SHAPES[m] for m in i.modifiers if m in _SHAPES), None)
        kinds = [m for m in i.modifiers if m in _BYTES]
        if shape is None or not kinds or any(m in ("b1", "s4", "u4", "shared::cluster") for m in i.modifiers):
            return [i]
        self.out = []
        if i.modifiers[0] == "mma":
            self._product(i, shape, kinds)
        else:
            self._move(i, shape, kinds[-1])
        return self.out

    def _product(self, i: Instruction, shape: tuple[int, int, int], kinds: list[str]) -> None:
        m, n, k = shape
        kinds = [kinds[0], "f16", "f16", kinds[1]] if len(kinds) == 2 else kinds
        d, a, b, c = (list(o.elements) if isinstance(o, Vector) else [o] for o in i.operands[:4])
        if m == 8 and n == 32:
            a, b, kinds, m, n = b, a, [kinds[0], kinds[2], kinds[1], kinds[3]], 32, 8
        rows, (tall, wide) = (8, (1, 1)) if kinds[0] == "f64" else (16, (m // 16, n // 8))
        per_a, per_b = _registers(rows * k, kinds[1]), _registers(8 * k, kinds[2])
        per_c, per_d = _registers(rows * 8, kinds[3]), _registers(rows * 8, kinds[0])
        more = ("satfinite",) if i.has("satfinite") else ()
        for tile in range(tall * wide):
            x, y = divmod(tile, wide)
            self._put(
                i, "mma", ("sync", "aligned", f"m{rows}n8k{k}", "row", "col", *kinds, *more),
                Vector(tuple(d[tile * per_d : (tile + 1) * per_d])), Vector(tuple(a[x * per_a : (x + 1) * per_a])),
                Vector(tuple(b[y * per_b : (y + 1) * per_b])), Vector(tuple(c[tile * per_c : (tile + 1) * per_c])),
            )  # fmt: skip

    def _move(self, i: Instruction, shape: tuple[int, int, int], kind: str) -> None:
        """A load or store: each register's elements at their addresses; registers beyond the fragment are copies."""
        store, role = i.modifiers[0] == "store", i.modifiers[1]
        data, where = (i.operands[1], i.operands[0]) if store else (i.operands[0], i.operands[1])
        registers = [r for r in (data.elements if isinstance(data, Vector) else (data,)) if isinstance(r, Register)]
        m, n, k = shape
        extent = {"a": (m, k), "b": (k, n)}.get(role, (m, n))
        column = i.has("col")
        stride: Operand = Immediate(extent[0] if column else extent[1])
        if len(i.operands) > 2 and i.operands[2] is not None:
            stride = i.operands[2]
        space = tuple(x for x in i.modifiers if x in ("global", "shared", "shared::cta"))
        base = self._base(i, where)
        lane, row, quarter = (self._new("u32") for _ in range(3))
        self._put(i, "mov", ("u32",), lane, Special("%laneid"))
        self._put(i, "shr", ("u32",), row, lane, Immediate(2))
        self._put(i, "and", ("b32",), quarter, lane, Immediate(3))
        places = list(_places(role, shape, kind))
        for number, register in enumerate(registers):
            if number >= len(places):
                self._put(i, "mov", ("b64" if kind == "f64" else "b32",), register, registers[number % len(places)])
                continue
            self._element(i, register, places[number], kind, (base, row, quarter, stride), space, store=store, column=column)

    def _element(
        self,
        i: Instruction,
        register: Register,
        place: _Place,
        kind: str,
        where: tuple[Register, Register, Register, Operand],
        space: tuple[str, ...],
        *,
        store: bool,
        column: bool,
    ) -> None:
        base, row, quarter, stride = where
        size, bytes_each = max(4, _BYTES[kind]), _BYTES[kind]
        major, minor = (place.second, place.first) if column else (place.first, place.second)
        along_minor = (place.along == 1) != column
        run = size // bytes_each

        def address(j: int) -> Address:
            outer = self._sum(i, row, quarter, (major[0], major[1], major[2] + (0 if along_minor else j)))
            inner = self._sum(i, row, quarter, (minor[0], minor[1], minor[2] + (j if along_minor else 0)))
            offset, wide, at = self._new("u32"), self._new("u64"), self._new("u64")
            self._put(i, "mad", ("lo", "u32"), offset, outer, stride, inner)
            self._put(i, "mul", ("wide", "u32"), wide, offset, Immediate(bytes_each))
            self._put(i, "add", ("s64",), at, base, wide)
            return Address(at)

        operation = "st" if store else "ld"

        def access(value: Register, at: Address, bits: int) -> None:
            operands = (at, value) if store else (value, at)
            self._put(i, operation, (*space, f"{'b' if bits > 8 else 'u'}{bits}"), *operands)

        if run == 1 or along_minor:
            access(register, address(0), 8 * size)
            return
        parts = []
        for j in range(run):
            part = self._new("b16" if bytes_each == 2 else "u32")
            parts.append(part)
            if not store:
                access(part, address(j), 8 * bytes_each)
        if bytes_each == 2:
            pair = Vector(tuple(parts))
            self._put(i, "mov", ("b32",), *((pair, register) if store else (register, pair)))
        elif store:
            for j, part in enumerate(parts):
                self._put(i, "shr", ("u32",), part, register, Immediate(8 * j))
        else:
            self._put(i, "mov", ("b32",), register, parts[0])
            for j, part in enumerate(parts[1:], 1):
                self._put(i, "bfi", ("b32",), register, part, register, Immediate(8 * j), Immediate(8))
        if store:
            for j, part in enumerate(parts):
                access(part, address(j), 8 * bytes_each)

    def _sum(self, i: Instruction, row: Register, quarter: Register, coefficients: tuple[int, int, int]) -> Register:
        """row·a + quarter·b + c."""
        a, b, c = coefficients
        first, second = self._new("u32"), self._new("u32")
        self._put(i, "mad", ("lo", "u32"), first, row, Immediate(a), Immediate(c))
        self._put(i, "mad", ("lo", "u32"), second, quarter, Immediate(b), first)
        return second

    def _base(self, i: Instruction, where: Operand | None) -> Register:
        assert isinstance(where, Address)
        found = self._new("u64")
        base = where.base
        if isinstance(base, Register):
            narrow = self.registers.get(base.name, base.type).endswith("32")
            self._put(i, "cvt" if narrow else "mov", ("u64", "u32") if narrow else ("u64",), found, base)
        else:
            assert isinstance(base, Symbol | Special)
            self._put(i, "mov", ("u64",), found, base)
        if where.offset:
            self._put(i, "add", ("s64",), found, found, Immediate(where.offset))
        return found

    def _new(self, kind: str) -> Register:
        self.number += 1
        name = f"%wmma{self.number}"
        self.registers[name] = kind
        return Register(name, kind)

    def _put(self, i: Instruction, opcode: str, modifiers: tuple[str, ...], *operands: Operand) -> None:
        self.out.append(replace(i, opcode=opcode, modifiers=modifiers, operands=operands))


def _registers(elements: int, kind: str) -> int:
    """Registers of a lane that hold its share of a fragment."""
    return max(1, elements // 32 * _BYTES[kind] // max(4, _BYTES[kind]))


def _places(role: str, shape: tuple[int, int, int], kind: str) -> Iterator[_Place]:
    """The registers of a fragment in order, as `mma.sync` has them: (row, column) of the matrix as it is written."""
    m, n, k = shape
    transposed = m == 8 and n == 32
    part = {"a": "b", "b": "a"}.get(role, role) if transposed else role
    rows = 8 if kind == "f64" and k == 4 else 16
    run = max(1, 4 // _BYTES[kind])
    tall, wide = (1, 1) if rows == 8 else ((2, 1) if transposed else (m // 16, n // 8))
    for place, tile in (
        (p, t) for t in range({"a": tall, "b": wide}.get(part, tall * wide)) for p in _tile(part, rows, k, kind, run)
    ):
        down = rows * (tile if part == "a" else tile // wide if part in "cd" else 0)
        right = 8 * (tile if part == "b" else tile % wide if part in "cd" else 0)
        first = (place.first[0], place.first[1], place.first[2] + down)
        second = (place.second[0], place.second[1], place.second[2] + right)
        yield _Place(second, first, 1 - place.along) if transposed else _Place(first, second, place.along)


def _tile(part: str, rows: int, k: int, kind: str, run: int) -> Iterator[_Place]:
    """One operand of one `mma.sync`."""
    halves, chunk = rows // 8, 4 * run
    if part == "a":
        for r in range(_registers(rows * k, kind)):
            yield _Place((1, 0, 8 * (r % halves)), (0, run, r // halves * chunk), 1)
    elif part == "b":
        for r in range(_registers(8 * k, kind)):
            yield _Place((0, run, r * chunk), (1, 0, 0), 0)
    else:
        for e in range(0, rows * 8 // 32, run):
            yield _Place((1, 0, 8 * (e // 2)), (0, 2, e % 2), 1)
