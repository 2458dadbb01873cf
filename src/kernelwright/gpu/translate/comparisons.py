"""Comparisons, tests and selections; the type of an instruction and its width."""

from __future__ import annotations

from collections.abc import Callable

from kernelwright.gpu.ptx import Immediate, Instruction, Operand
from kernelwright.gpu.translate.emit import Emitter, container

HALVES = {"f16", "bf16", "f16x2", "bf16x2"}
_COMPARE_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_NAMES = {
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "lo",
    "ls",
    "hi",
    "hs",
    "equ",
    "neu",
    "ltu",
    "leu",
    "gtu",
    "geu",
    "num",
    "nan",
}


def kind_of(i: Instruction) -> str:
    """The type that decides: the last one named."""
    return i.types[-1] if i.types else ""


def bits_of(kind: str) -> int:
    return container(kind)


def compare(e: Emitter, op: str, kind: str, a: Operand | None, b: Operand | None, *, scalar: bool, ftz: bool = False) -> str:
    """A mask of the lanes for which the comparison holds."""
    width = bits_of(kind)
    if op in _COMPARE_UNSIGNED and kind[0] != "f":
        op, kind = _COMPARE_UNSIGNED[op], f"u{width}"
    if kind[0] == "b" and kind not in HALVES:
        kind = f"u{width}"
    wrap = "ftz({})" if ftz and kind == "f32" else "{}"
    parts: list[int | None] = [None] if scalar else list(range({16: 1, 32: 2, 64: 4}[width]))
    values = [wrap.format(e.src(o, width, p)) for o in (a, b) for p in parts]
    return f"{op}_{kind}({', '.join(values)})"


def _combined(e: Emitter, i: Instruction, text: str) -> str:
    """With the third operand of setp and set, if there is one."""
    sign = next(({"and": "&", "or": "|", "xor": "^"}[m] for m in i.modifiers if m in ("and", "or", "xor")), "")
    return f"({text}) {sign} {e.pred(i.operands[-1])}" if sign else text


def _setp(e: Emitter, i: Instruction) -> bool:
    op = i.modifiers[0]
    kind = kind_of(i)
    start = 2 if i.pair else 1
    a, b = i.operands[start], i.operands[start + 1]
    if op not in _NAMES:
        return False
    first = i.operands[0]
    if kind in ("f16x2", "bf16x2"):
        half = kind[:-2]
        x, y = ((e.src(o, 32, 0), e.src(o, 32, 1)) for o in (a, b))
        low = f"{op}_{half}(tr16({x[0]}, {x[1]}), tr16({y[0]}, {y[1]}))"
        high = f"{op}_{half}(tr16({x[0]} >> 16, {x[1]} >> 16), tr16({y[0]} >> 16, {y[1]} >> 16))"
        e.assign(i, first, lambda _: _combined(e, i, low))
        if i.pair:
            e.assign(i, i.operands[1], lambda _: _combined(e, i, high))
        return True
    scalar = e.is_uniform(a) and e.is_uniform(b)
    t = e.temporary()
    e.put(f"const uint32_t {t} = {compare(e, op, kind, a, b, scalar=scalar, ftz=i.has('ftz'))};")
    e.assign(i, first, lambda _: _combined(e, i, t))
    if i.pair:
        e.assign(i, i.operands[1], lambda _: _combined(e, i, f"~{t}"))
    return True


def _set(e: Emitter, i: Instruction) -> bool:
    op = i.modifiers[0]
    if len(i.types) != 2 or op not in _NAMES:
        return False
    result, kind = i.types
    a, b = i.operands[1], i.operands[2]
    if kind in ("f16x2", "bf16x2"):
        half = kind[:-2]
        one = {"f16x2": 0x3C00, "bf16x2": 0x3F80}.get(result, 0xFFFF)

        def pair(p: int | None) -> str:
            x, y = ((e.src(o, 32, p) if p is not None else f"b32({e.src(o, 32, None)})") for o in (a, b))
            value = f"(u32)sel({op}_{half}((u16){x}, (u16){y}), b16({one}), b16(0))"
            return value if p is not None else f"({value})[0]"

        e.assign(i, i.operands[0], pair)
        return True
    width = bits_of(result)
    one = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}.get(result, (1 << width) - 1)
    scalar = e.is_uniform(a) and e.is_uniform(b)
    t = e.temporary()
    e.put(f"const uint32_t {t} = {_combined(e, i, compare(e, op, kind, a, b, scalar=scalar, ftz=i.has('ftz')))};")
    lanes = 512 // width
    e.assign(
        i,
        i.operands[0],
        lambda p: (
            f"sel({t}{f' >> {lanes * p}' if p else ''}, {e.src(Immediate(one), width, p)}, {e.src(Immediate(0), width, p)})"
        ),
    )
    return True


def select(e: Emitter, i: Instruction, mask: str, a: Operand | None, b: Operand | None, width: int) -> None:
    """`a` where the mask is set, else `b`."""
    lanes = 512 // width
    e.assign(
        i, i.operands[0], lambda p: f"sel({mask}{f' >> {lanes * p}' if p else ''}, {e.src(a, width, p)}, {e.src(b, width, p)})"
    )


def _selp(e: Emitter, i: Instruction) -> bool:
    select(e, i, f"({e.pred(i.operands[3])})", i.operands[1], i.operands[2], bits_of(kind_of(i)))
    return True


def _slct(e: Emitter, i: Instruction) -> bool:
    c = i.operands[3]
    t = e.temporary()
    kind = i.types[1]
    test = compare(e, "ge", kind, c, Immediate(0), scalar=e.is_uniform(c), ftz=i.has("ftz"))
    e.put(f"const uint32_t {t} = {test};")
    select(e, i, t, i.operands[1], i.operands[2], bits_of(i.types[0]))
    return True


def _testp(e: Emitter, i: Instruction) -> bool:
    kind, a = kind_of(i), i.operands[1]
    width = bits_of(kind)
    exponent, fraction = (0x7F800000, 0x7FFFFF) if width == 32 else (0x7FF << 52, (1 << 52) - 1)
    scalar = e.is_uniform(a)
    magnitude = e.temporary()

    def test(op: str, value: int) -> str:
        parts: list[int | None] = [None] if scalar else list(range(width // 16))
        left = [f"and_{width}({e.src(a, width, p)}, {e.src(Immediate(exponent | fraction), width, p)})" for p in parts]
        return f"{op}_u{width}({', '.join([*left, *(e.src(Immediate(value), width, p) for p in parts)])})"

    what = next(m for m in i.modifiers if m in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"))
    text = {
        "finite": test("lt", exponent),
        "infinite": test("eq", exponent),
        "number": test("le", exponent),
        "notanumber": test("gt", exponent),
        "normal": f"{test('lt', exponent)} & {test('gt', fraction)}",
        "subnormal": f"{test('le', fraction)} & {test('ne', 0)}",
    }[what]
    e.put(f"const uint32_t {magnitude} = {text};")
    e.assign(i, i.operands[0], lambda _: magnitude)
    return True


COMPARISONS: dict[str, Callable[[Emitter, Instruction], bool]] = {
    "setp": _setp,
    "set": _set,
    "selp": _selp,
    "slct": _slct,
    "testp": _testp,
}
"""What emits each opcode."""
