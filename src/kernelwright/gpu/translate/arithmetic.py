"""Integer and float arithmetic, bits and logic."""

from __future__ import annotations

from collections.abc import Callable

from kernelwright.gpu.ptx import Immediate, Instruction, Operand, Register
from kernelwright.gpu.translate.comparisons import COMPARISONS, HALVES, bits_of, kind_of
from kernelwright.gpu.translate.emit import Emitter
from kernelwright.gpu.translate.values import CARRY

ROUNDING = {"rn": 0, "rz": 1, "rm": 2, "rp": 3}
_INTEGERS = {f"{k}{w}" for k in "sub" for w in (16, 32, 64)}


def arithmetic(e: Emitter, i: Instruction) -> bool:
    """Emit what has one type and gives one value a lane."""
    handler = _HANDLERS.get(i.opcode)
    return handler is not None and handler(e, i)


def _sign(kind: str) -> str:
    return "s" if kind[0] == "s" else "u"


def _binary(e: Emitter, i: Instruction) -> bool:
    """add, sub, mul (floats), min, max, div."""
    kind = kind_of(i)
    if i.has("cc"):
        return _carry(e, i)
    if kind in _INTEGERS:
        return _integer_binary(e, i, kind)
    if kind in ("f32", "f64"):
        return _float(e, i, kind)
    if kind in HALVES:
        return _half(e, i, kind)
    if kind in ("u16x2", "s16x2") and i.opcode in ("add", "sub", "min", "max"):
        name = f"{i.opcode}_{_sign(kind)}16" if i.opcode in ("min", "max") else f"{i.opcode}_16"
        e.assign(i, i.operands[0], lambda p: f"kw_pairs({name}, {e.src(i.operands[1], 32, p)}, {e.src(i.operands[2], 32, p)})")
        return True
    return False


def _integer_binary(e: Emitter, i: Instruction, kind: str) -> bool:
    width, op = bits_of(kind), i.opcode
    if i.has("sat"):
        if kind != "s32" or op not in ("add", "sub"):
            return False
        e.map(i, f"{op}sat_s32", i.operands[1:], 32)
    elif op in ("min", "max"):
        e.map(i, f"{op}_{_sign(kind)}{width}", i.operands[1:], width, "kw_relu({})" if i.has("relu") else "{}")
    elif op in ("div", "rem"):
        e.map(i, f"{op}_{_sign(kind)}{width}", i.operands[1:], width)
    elif op in ("add", "sub"):
        e.map(i, f"{op}_{width}", i.operands[1:], width)
    else:
        return False
    return True


def _multiply(e: Emitter, i: Instruction) -> bool:
    """mul and mad of integers; fma by way of floats."""
    kind = kind_of(i)
    if kind not in _INTEGERS:
        return _binary(e, i) if i.opcode == "mul" else _fma(e, i)
    if i.has("cc"):
        return _carry(e, i)
    width, sign = bits_of(kind), _sign(kind)
    a, b = i.operands[1], i.operands[2]
    mad = i.operands[3] if i.opcode == "mad" else None
    if i.has("sat"):
        return False
    if i.has("wide"):
        wide = 2 * width

        def product(p: int | None) -> str:
            if p is None:
                return f"mulwide_{sign}{width}({e.src(a, width, None)}, {e.src(b, width, None)})"
            x, y = e.src(a, wide, p, signed=sign == "s"), _extended(e, b, width, wide, p, sign)
            return f"mul64_{sign}32({x}, {y})" if wide == 64 else f"mul_32({x}, {y})"

        e.assign(i, i.operands[0], lambda p: product(p) if mad is None else f"add_{wide}({product(p)}, {e.src(mad, wide, p)})")
        return True
    name = f"mul_{width}" if i.has("lo") else f"mulhi_{sign}{width}" if i.has("hi") else ""
    if not name:
        return False
    if mad is None:
        e.map(i, name, (a, b), width)
    else:
        e.assign(
            i,
            i.operands[0],
            lambda p: f"add_{width}({name}({e.src(a, width, p)}, {e.src(b, width, p)}), {e.src(mad, width, p)})",
        )
    return True


def _extended(e: Emitter, o: Operand | None, width: int, wide: int, part: int, sign: str) -> str:
    if isinstance(o, Immediate):  # as a value of the narrow type
        value = o.value & ((1 << width) - 1)
        if sign == "s" and value >> (width - 1):
            value -= 1 << width
        return e.src(Immediate(value), wide, part)
    return e.src(o, wide, part, signed=sign == "s")


def _24(e: Emitter, i: Instruction) -> bool:
    kind = kind_of(i)
    name = f"mul24{'hi' if i.has('hi') else ''}_{kind}"
    if i.opcode == "mul24":
        e.map(i, name, i.operands[1:], 32)
    else:
        a, b, c = i.operands[1:]
        e.assign(i, i.operands[0], lambda p: f"add_32({name}({e.src(a, 32, p)}, {e.src(b, 32, p)}), {e.src(c, 32, p)})")
    return True


def _carry(e: Emitter, i: Instruction) -> bool:
    """Chains of additions over words: `.cc` writes a carry for each lane, addc, subc and madc read it."""
    kind = kind_of(i)
    width = bits_of(kind)
    if width not in (32, 64):
        return False
    reads_carry = i.opcode.endswith("c")
    op = i.opcode.rstrip("c") if reads_carry else i.opcode
    a, b = i.operands[1], i.operands[2]
    product = ""
    if op in ("mad",):
        product = f"mul_{width}" if i.has("lo") else f"mulhi_{_sign(kind)}{width}"
    carry = e.identifier(CARRY.name)
    destination = i.operands[0]
    scalar = all(e.is_uniform(o) for o in i.operands[1:]) and isinstance(destination, Register) and e.is_uniform(destination)
    parts: list[int | None] = [None] if scalar else list(range(width // 16))
    lanes = 512 // width
    old = e.temporary()
    e.put(f"const uint32_t {old} = {carry if reads_carry else '0'};")
    new = e.temporary()
    e.put(f"uint32_t {new} = 0;")
    values = []
    for p in parts:
        t = e.temporary()
        values.append(t)
        x, y = e.src(a, width, p), e.src(b, width, p)
        if product:
            x, y = f"{product}({x}, {y})", e.src(i.operands[3], width, p)
        shift = f" >> {lanes * p}" if p else ""
        call = "kw_subc" if op == "sub" else "kw_addc"
        vector = f"uint{width}_t" if scalar else f"u{width}"
        e.put(
            f"uint32_t {t}c = {old}{shift}; const {vector} {t} = {call}({x}, {y}, {t}c); {new} |= {t}c << {lanes * (p or 0)};"
        )
    e.assign(i, destination, lambda p: values[p or 0])
    if i.has("cc"):
        e.put(f"{carry} = {f'kw_mix({e.pred(i.guard)}, {new}, {carry})' if i.guard else new};")
    return True


def _float(e: Emitter, i: Instruction, kind: str) -> bool:
    op = i.opcode
    width = bits_of(kind)
    mode = next((ROUNDING[m] for m in i.modifiers if m in ROUNDING), 0)
    ftz = i.has("ftz")
    wrap = "ftz({})" if ftz else "{}"
    inner = "ftz({})" if ftz else "{}"
    if i.has("sat"):
        wrap = f"sat_{kind}({wrap})"
    if op in ("min", "max"):
        if i.has("NaN"):
            if kind != "f32":
                return False
            op += "nan"
        if i.has("xorsign") or len(i.operands) != 3:
            return False
        e.map(i, f"{op}_{kind}", i.operands[1:], width, wrap, inner)
    elif op == "div" and any(i.has(m) for m in ("approx", "full")):
        e.map(i, f"div_{kind}", i.operands[1:], width, wrap, inner)
    elif op in ("add", "sub", "mul", "div") and mode == 0:
        e.map(i, f"{op}_{kind}", i.operands[1:], width, wrap, inner)
    elif op in ("add", "sub", "mul", "div"):
        a, b = i.operands[1:3]
        name = {"add": "R_ADD", "sub": "R_ADD", "mul": "R_MUL", "div": "R_DIV"}[op]
        second = f"neg_{kind}({{}})" if op == "sub" else "{}"

        def rounded(p: int | None) -> str:
            x, y = inner.format(e.src(a, width, p)), second.format(inner.format(e.src(b, width, p)))
            return wrap.format(f"rounded_{kind}({name}, {mode}, {x}, {y}, {e.src(Immediate(0), width, p)})")

        e.assign(i, i.operands[0], rounded)
    else:
        return False
    return True


def _half(e: Emitter, i: Instruction, kind: str) -> bool:
    op = i.opcode
    width = bits_of(kind)
    if op in ("min", "max") and i.has("NaN"):
        op += "nan"
    if op not in ("add", "sub", "mul", "min", "max", "minnan", "maxnan") or i.has("xorsign"):
        return False
    e.map(i, f"{op}_{kind}", i.operands[1:], width, f"sat_{kind}({{}})" if i.has("sat") else "{}")
    return True


def _fma(e: Emitter, i: Instruction) -> bool:
    kind = kind_of(i)
    width = bits_of(kind) if kind else 0
    if kind in ("f32", "f64"):
        mode = next((ROUNDING[m] for m in i.modifiers if m in ROUNDING), 0)
        inner = "ftz({})" if i.has("ftz") else "{}"
        wrap = f"sat_{kind}({inner})" if i.has("sat") else inner
        if mode == 0:
            e.map(i, f"fma_{kind}", i.operands[1:], width, wrap, inner)
        else:
            e.assign(
                i,
                i.operands[0],
                lambda p: wrap.format(
                    f"rounded_{kind}(R_FMA, {mode}, {', '.join(inner.format(e.src(o, width, p)) for o in i.operands[1:])})"
                ),
            )
        return True
    if kind in HALVES:
        name = "fmarelu" if i.has("relu") else "fma"
        e.map(i, f"{name}_{kind}", i.operands[1:], width, f"sat_{kind}({{}})" if i.has("sat") else "{}")
        return True
    return False


def _unary(e: Emitter, i: Instruction) -> bool:
    """abs, neg, not, cnot, and the functions of one float."""
    kind, op = kind_of(i), i.opcode
    if kind == "pred":
        if op != "not":
            return False
        e.assign(i, i.operands[0], lambda _: f"~{e.pred(i.operands[1])}")
        return True
    width = bits_of(kind)
    inner = "ftz({})" if i.has("ftz") and kind == "f32" else "{}"
    if op in ("abs", "neg"):
        if kind in _INTEGERS:
            name = f"{op}_{width}"
        elif kind in HALVES:
            name = f"{op}_{kind.removeprefix('b')}"
        else:
            name = f"{op}_{kind}"
        e.map(i, name, i.operands[1:], width, "{}", inner)
    elif op in ("not", "cnot"):
        e.map(i, f"{op}_{width}", i.operands[1:], width)
    elif op in ("ex2", "tanh") and kind in HALVES:
        e.map(i, f"{op}_{kind}", i.operands[1:], width)
    elif op in ("ex2", "lg2", "sin", "cos", "tanh", "rsqrt", "rcp", "sqrt") and kind == "f32":
        mode = next((ROUNDING[m] for m in i.modifiers if m in ROUNDING), 0)
        if op == "sqrt" or (op == "rcp" and not i.has("approx")):
            if mode:
                name = "R_SQRT" if op == "sqrt" else "R_RCP"

                def zero(p: int | None) -> str:
                    return e.src(Immediate(0), 32, p)

                e.assign(
                    i,
                    i.operands[0],
                    lambda p: inner.format(
                        f"rounded_f32({name}, {mode}, {inner.format(e.src(i.operands[1], 32, p))}, {zero(p)}, {zero(p)})"
                    ),
                )
                return True
            op = "sqrt" if op == "sqrt" else "rcp"
        e.map(i, f"{op}_f32", i.operands[1:], 32, inner, inner)
    elif op in ("rcp", "rsqrt", "sqrt") and kind == "f64":
        e.map(i, f"{op}_f64", i.operands[1:], 64)
    else:
        return False
    return True


def _logic(e: Emitter, i: Instruction) -> bool:
    kind, op = kind_of(i), i.opcode
    if kind == "pred":
        sign = {"and": "&", "or": "|", "xor": "^"}[op]
        e.assign(i, i.operands[0], lambda _: f"{e.pred(i.operands[1])} {sign} {e.pred(i.operands[2])}")
    else:
        width = bits_of(kind)
        e.map(i, f"{op}_{width}", i.operands[1:], width)
    return True


def _shift(e: Emitter, i: Instruction) -> bool:
    kind = kind_of(i)
    width = bits_of(kind)
    name = f"shl_{width}" if i.opcode == "shl" else f"shr_{_sign(kind)}{width}"
    a, b = i.operands[1], i.operands[2]
    if isinstance(b, Immediate) and 0 <= b.value < width:
        fixed = name.replace("shl", "shli").replace("shr", "shri")
        e.assign(i, i.operands[0], lambda p: f"{fixed}({e.src(a, width, p)}, {b.value})")
    else:
        narrow = width if width != 16 else 16

        def amount(p: int | None) -> str:
            if p is None:
                return e.src(b, 32, None)
            if width == 16:  # an amount above the 16 bits that a lane has is an amount that shifts all out
                return f"tr16(min_u32({e.src(b, 32, 0)}, b32(255)), min_u32({e.src(b, 32, 1)}, b32(255)))"
            return e.src(b, narrow, p)

        e.assign(i, i.operands[0], lambda p: f"{name}({e.src(a, width, p)}, {amount(p)})")
    return True


def _by_name(name: Callable[[Instruction, str], str], operand_width: int = 0) -> Callable[[Emitter, Instruction], bool]:
    """Instructions that are a function of the same name; `operand_width` 32 where all operands are 32-bit."""

    def emit(e: Emitter, i: Instruction) -> bool:
        kind = kind_of(i)
        e.map(i, name(i, kind), i.operands[1:], operand_width or bits_of(kind))
        return True

    return emit


def _count(e: Emitter, i: Instruction) -> bool:
    """popc, clz, bfind: the result is 32 bits whatever the operand is."""
    kind = kind_of(i)
    width = bits_of(kind)
    name = (
        f"{i.opcode}_{width}"
        if i.opcode in ("popc", "clz")
        else f"bfind{'shift' if i.has('shiftamt') else ''}_{_sign(kind)}{width}"
    )
    if i.has("shiftamt") and width == 64:
        return False
    source = i.operands[1]

    def value(p: int | None) -> str:
        if p is None:
            return f"(uint32_t){name}({e.src(source, width, None)})"
        if width == 32:
            return f"{name}({e.src(source, 32, p)})"
        return f"tr32({name}({e.src(source, 64, 2 * p)}), {name}({e.src(source, 64, 2 * p + 1)}))"

    e.assign(i, i.operands[0], value)
    return True


def _field(e: Emitter, i: Instruction) -> bool:
    """bfe and bfi; with constant places they are shifts."""
    kind = kind_of(i)
    width = bits_of(kind)
    if i.opcode == "bfe":
        a, start, length = i.operands[1:4]
        if (
            isinstance(start, Immediate)
            and isinstance(length, Immediate)
            and length.value
            and start.value + length.value <= width
        ):
            up = width - start.value - length.value
            sign = _sign(kind)
            e.assign(
                i,
                i.operands[0],
                lambda p: f"shri_{sign}{width}(shli_{width}({e.src(a, width, p)}, {up}), {width - length.value})",
            )
        else:
            e.map(i, f"bfe_{_sign(kind)}{width}", i.operands[1:4], width)
    else:
        e.map(i, f"bfi_{width}", i.operands[1:5], width)
    return True


def _lop3(e: Emitter, i: Instruction) -> bool:
    table = i.operands[4]
    if i.pair or not isinstance(table, Immediate):
        return False
    a, b, c = i.operands[1:4]
    e.assign(i, i.operands[0], lambda p: f"lop3_32({e.src(a, 32, p)}, {e.src(b, 32, p)}, {e.src(c, 32, p)}, {table.value})")
    return True


def _prmt(e: Emitter, i: Instruction) -> bool:
    mode = next((m for m in i.modifiers if m in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")), "")
    if mode:
        return False
    e.map(i, "prmt_32", i.operands[1:4], 32)
    return True


def _shf(e: Emitter, i: Instruction) -> bool:
    e.map(i, f"shf{'l' if i.has('l') else 'r'}_{'wrap' if i.has('wrap') else 'clamp'}", i.operands[1:4], 32)
    return True


def _dp2a(e: Emitter, i: Instruction) -> bool:
    part = "hi" if i.has("hi") else "lo"
    e.map(i, f"dp2a_{part}_{_sign(i.types[0])}{_sign(i.types[1])}", i.operands[1:4], 32)
    return True


def _dp4a(e: Emitter, i: Instruction) -> bool:
    e.map(i, f"dp4a_{_sign(i.types[0])}{_sign(i.types[1])}", i.operands[1:4], 32)
    return True


_HANDLERS: dict[str, Callable[[Emitter, Instruction], bool]] = {
    **dict.fromkeys(("add", "sub", "min", "max", "div", "rem"), _binary),
    **dict.fromkeys(("mul", "mad"), _multiply),
    **dict.fromkeys(("mul24", "mad24"), _24),
    **dict.fromkeys(("addc", "subc", "madc"), _carry),
    "fma": _fma,
    **dict.fromkeys(("abs", "neg", "not", "cnot", "ex2", "lg2", "sin", "cos", "tanh", "rsqrt", "rcp", "sqrt"), _unary),
    **dict.fromkeys(("and", "or", "xor"), _logic),
    **dict.fromkeys(("shl", "shr"), _shift),
    **dict.fromkeys(("popc", "clz", "bfind"), _count),
    "brev": _by_name(lambda i, kind: f"brev_{bits_of(kind)}"),
    "sad": _by_name(lambda i, kind: f"sad_{kind}"),
    "copysign": _by_name(lambda i, kind: f"copysign_{kind}"),
    "bmsk": _by_name(lambda i, kind: f"bmsk_{'wrap' if i.has('wrap') else 'clamp'}"),
    "szext": _by_name(lambda i, kind: f"szext_clamp_{kind}"),
    **dict.fromkeys(("bfe", "bfi"), _field),
    "lop3": _lop3,
    "prmt": _prmt,
    "shf": _shf,
    "dp2a": _dp2a,
    "dp4a": _dp4a,
    **COMPARISONS,
}
