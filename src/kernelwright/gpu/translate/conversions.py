"""Moves, packing, conversions between types, and between state spaces' addresses."""

from __future__ import annotations

from kernelwright.gpu.ptx import TYPE_BYTES, Immediate, Instruction, Operand, Register, Vector
from kernelwright.gpu.translate.arithmetic import ROUNDING
from kernelwright.gpu.translate.emit import PARTS, Emitter, container

_WHOLE = {"rni": 0, "rzi": 1, "rmi": 2, "rpi": 3}


def conversions(e: Emitter, i: Instruction) -> bool:
    """Emit mov, cvt, cvta and isspacep."""
    if i.opcode == "mov":
        return _mov(e, i)
    if i.opcode == "cvt":
        return _cvt(e, i)
    if i.opcode == "cvta":
        return _cvta(e, i)
    if i.opcode == "isspacep":
        return _isspacep(e, i)
    return False


def _mov(e: Emitter, i: Instruction) -> bool:
    destination, source = i.operands
    kind = i.types[0]
    if isinstance(destination, Vector):
        return _unpack(e, i, destination, source)
    if isinstance(source, Vector):
        return _pack(e, i, source)
    if kind == "pred":
        e.assign(i, destination, lambda _: e.pred(source))
        return True
    width = container(kind)
    if kind == "b128" or not isinstance(destination, Register) or e.width(destination) < width:
        return False
    width = e.width(destination)
    e.assign(i, destination, lambda p: e.src(source, width, p))
    return True


def _pack(e: Emitter, i: Instruction, source: Vector) -> bool:
    """A register out of smaller ones, the first lowest."""
    destination = i.operands[0]
    total = TYPE_BYTES[i.types[0]] * 8
    if not isinstance(destination, Register) or total > 64 or e.width(destination) != container(i.types[0]):
        return False
    width, each = e.width(destination), total // len(source.elements)

    def value(p: int | None) -> str:
        texts = []
        for k, element in enumerate(source.elements):
            if element is None:
                continue
            text = e.src(element, width, p)
            if each == 8:
                text = f"and_{width}({text}, {e.src(Immediate(255), width, p)})"
            texts.append(f"shli_{width}({text}, {k * each})" if k else text)
        while len(texts) > 1:
            texts[:2] = [f"or_{width}({texts[0]}, {texts[1]})"]
        return texts[0] if texts else e.src(Immediate(0), width, p)

    e.assign(i, destination, value)
    return True


def _unpack(e: Emitter, i: Instruction, destination: Vector, source: Operand | None) -> bool:
    total = TYPE_BYTES[i.types[0]] * 8
    if total > 64 or not isinstance(source, Register | Immediate):
        return False
    have = container(i.types[0])
    each = total // len(destination.elements)
    # All parts are read before any is written: a destination may be the source.
    for k, element in enumerate(destination.elements):
        if element is None:
            continue
        assert isinstance(element, Register)
        width = e.width(element)

        def value(p: int | None, k: int = k, width: int = width) -> str:
            if p is None:
                text = f"({e.src(source, have, None)} >> {k * each})"
                return f"(uint{width}_t)({text}{' & 255' if each == 8 else ''})"
            shifted = [
                f"shri_u{have}({e.src(source, have, q)}, {k * each})" if k else e.src(source, have, q)
                for q in range(PARTS[have])
            ]
            text = e.resized(lambda q: shifted[q], have, width, p)
            return f"and_{width}({text}, b{width}(255))" if each == 8 else text

        e.assign(i, element, value)
    return True


def _cvt(e: Emitter, i: Instruction) -> bool:
    types = i.types
    if len(types) != 2:
        return False
    to, source_type = types
    if to in ("f16x2", "bf16x2", "e4m3x2", "e5m2x2"):
        return _cvt_packed(e, i, to, source_type)
    if to == "tf32":
        e.map(i, "tf32_rn" if i.has("rn") else "tf32_rna", i.operands[1:], 32)
        return True
    integers = to[0] in "sub" and to != "bf16", source_type[0] in "sub" and source_type != "bf16"
    if all(integers):
        return _integer_to_integer(e, i, to, source_type)
    if integers[1]:
        return _integer_to_float(e, i, to, source_type)
    if integers[0]:
        return _float_to_integer(e, i, to, source_type)
    return _float_to_float(e, i, to, source_type)


def _integer(e: Emitter, o: Operand | None, kind: str, width: int, part: int | None) -> str:
    """An integer operand of a narrow type, at a width: cut to its own bits first, then extended by its sign."""
    bits = TYPE_BYTES[kind] * 8
    signed = kind[0] == "s"
    have = e.width(o) if isinstance(o, Register) else width
    if isinstance(o, Immediate) or bits == have or (bits > width and bits != 8):
        return e.src(o, width, part, signed=signed)
    if bits in (16, 32) and bits < have:
        narrow = [e.src(o, bits, q) for q in range(PARTS[bits])] if part is not None else []
        if part is None:
            return e._convert_scalar(f"(uint{bits}_t)({e.src(o, bits, None)})", bits, width, signed)
        return e.resized(lambda q: narrow[q], bits, width, part, signed)
    # eight bits in a wider register
    text = e.src(o, width, part)
    shift = width - 8
    return f"shri_{'s' if signed else 'u'}{width}(shli_{width}({text}, {shift}), {shift})"


def _integer_to_integer(e: Emitter, i: Instruction, to: str, source_type: str) -> bool:
    destination, source = i.operands
    if not isinstance(destination, Register):
        return False
    width = e.width(destination)
    bits = TYPE_BYTES[to] * 8
    if i.has("sat"):
        if bits == 64 or TYPE_BYTES[source_type] == 8:
            return False
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if to[0] == "s" else (0, (1 << bits) - 1)
        if source_type == "u32" or (to == "u32" and source_type[0] == "s"):
            if to == "u32":
                e.assign(
                    i,
                    destination,
                    lambda p: f"max_s32({_integer(e, source, source_type, 32, p)}, {e.src(Immediate(0), 32, p)})",
                )
            else:
                e.assign(i, destination, lambda p: f"min_u32({e.src(source, 32, p)}, {e.src(Immediate(high), 32, p)})")
            return width == 32

        def wide(q: int | None) -> str:
            return f"clamp_int({_integer(e, source, source_type, 32, q)}, {low}, {min(high, (1 << 31) - 1)})"

        e.assign(
            i,
            destination,
            lambda p: f"(uint{width}_t)({wide(None)})" if p is None else e.resized(wide, 32, width, p, to[0] == "s"),
        )
        return True

    def value(p: int | None) -> str:
        return _integer(e, source, source_type if TYPE_BYTES[source_type] <= TYPE_BYTES[to] else to, width, p)

    e.assign(i, destination, value)
    return True


def _halves(e: Emitter, o: Operand | None, kind: str, part: int | None) -> str:
    """f16 or bf16 as f32 bits."""
    if part is None:
        return f"f32_of_{kind}({e.src(o, 16, None)})"
    return f"f32_of_{kind}{'lh'[part]}({e.src(o, 16, 0)})"


def _as_float(e: Emitter, o: Operand | None, kind: str, part: int | None) -> str:
    """A float operand of at most 32 bits as f32 bits."""
    return e.src(o, 32, part) if kind == "f32" else _halves(e, o, kind, part)


def _as_double(e: Emitter, o: Operand | None, kind: str, part: int | None) -> str:
    if kind == "f64":
        return e.src(o, 64, part)
    if part is None:
        return f"f64_of_f32({_as_float(e, o, kind, None)})"
    return f"f64_of_f32{'lh'[part & 1]}({_as_float(e, o, kind, part >> 1)})"


def _to_half(e: Emitter, i: Instruction, to: str, mode: int, single: object) -> None:
    """Assign an f16 or bf16 out of f32 bits given by `single(part)`."""
    assert callable(single)

    def value(p: int | None) -> str:
        if p is None:
            return (
                f"{to}_of_f32({single(None)})"
                if mode == 0
                else f"(uint16_t)half_from_f32({single(None)}, T_{to.upper()}, {mode})"
            )
        if mode == 0:
            return f"{to}_of_f32({single(0)}, {single(1)})"
        return f"tr16(half_from_f32({single(0)}, T_{to.upper()}, {mode}), half_from_f32({single(1)}, T_{to.upper()}, {mode}))"

    e.assign(i, i.operands[0], value)


def _integer_to_float(e: Emitter, i: Instruction, to: str, source_type: str) -> bool:
    source = i.operands[1]
    mode = next((ROUNDING[m] for m in i.modifiers if m in ROUNDING), 0)
    sign = "s" if source_type[0] == "s" else "u"
    if to == "f64":
        e.assign(i, i.operands[0], lambda p: f"f64_of_{sign}64({_integer(e, source, source_type, 64, p)})")
        return mode == 0
    if TYPE_BYTES[source_type] == 8:

        def single(p: int | None) -> str:
            if p is None:
                return f"(uint32_t)f32_of_{sign}64({e.src(source, 64, None)})"
            return f"tr32(f32_of_{sign}64({e.src(source, 64, 2 * p)}), f32_of_{sign}64({e.src(source, 64, 2 * p + 1)}))"

        if mode:
            return False
    else:

        def single(p: int | None) -> str:
            if mode:  # a double holds any 32-bit integer
                if p is None:
                    return f"kw_round_int({_integer(e, source, source_type, 32, None)}, {mode}, {int(sign == 's')})"
                return f"kw_round_ints({_integer(e, source, source_type, 32, p)}, {mode}, {int(sign == 's')})"
            return f"f32_{sign}32({_integer(e, source, source_type, 32, p)})"

    if to == "f32":
        e.assign(i, i.operands[0], single)
    else:
        _to_half(e, i, to, mode, single)
    return True


def _float_to_integer(e: Emitter, i: Instruction, to: str, source_type: str) -> bool:
    destination, source = i.operands
    if not isinstance(destination, Register):
        return False
    mode = next((_WHOLE[m] for m in i.modifiers if m in _WHOLE), 1)
    width, bits = e.width(destination), TYPE_BYTES[to] * 8
    signed = to[0] == "s"
    inner = "ftz({})" if i.has("ftz") and source_type == "f32" else "{}"
    if bits == 64:
        e.assign(i, destination, lambda p: f"to_{to}({_as_double(e, source, source_type, p)}, {mode})")
        return True

    def small(p: int | None) -> str:
        name = "to_s32" if signed or bits < 32 else "to_u32"
        if source_type == "f64":
            if p is None:
                text = f"(uint32_t)f64_{name}({e.src(source, 64, None)}, {mode})"
            else:
                text = (
                    f"tr32(f64_{name}({e.src(source, 64, 2 * p)}, {mode}), f64_{name}({e.src(source, 64, 2 * p + 1)}, {mode}))"
                )
        else:
            text = f"{name}({inner.format(_as_float(e, source, source_type, p))}, {mode})"
        if bits < 32:
            low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
            text = f"clamp_int({text}, {low}, {high})"
        return text

    e.assign(
        i, destination, lambda p: f"(uint{width}_t)({small(None)})" if p is None else e.resized(small, 32, width, p, signed)
    )
    return True


def _float_to_float(e: Emitter, i: Instruction, to: str, source_type: str) -> bool:
    source = i.operands[1]
    mode = next((ROUNDING[m] for m in i.modifiers if m in ROUNDING), 0)
    whole = next((_WHOLE[m] for m in i.modifiers if m in _WHOLE), None)
    ftz = "ftz({})" if i.has("ftz") else "{}"
    saturate = f"sat_{to}({{}})" if i.has("sat") and to in ("f32", "f64") else "{}"
    if to == source_type and to in ("f32", "f64"):
        width = container(to)
        shape = f"whole_{to}({{}}, {whole})" if whole is not None else "{}"
        wrap = ftz if to == "f32" else "{}"
        e.assign(i, i.operands[0], lambda p: saturate.format(shape.format(wrap.format(e.src(source, width, p)))))
        return True
    if to == "f64":
        e.assign(i, i.operands[0], lambda p: saturate.format(_as_double(e, source, source_type, p)))
        return True
    if to == "f32":
        if source_type == "f64":
            if mode:
                return False

            def single(p: int | None) -> str:
                if p is None:
                    return f"f32_of_f64({e.src(source, 64, None)})"
                return f"f32_of_f64({e.src(source, 64, 2 * p)}, {e.src(source, 64, 2 * p + 1)})"

            e.assign(i, i.operands[0], lambda p: saturate.format(ftz.format(single(p))))
        else:
            e.assign(i, i.operands[0], lambda p: saturate.format(ftz.format(_halves(e, source, source_type, p))))
        return True
    if source_type == "f64":
        if whole is not None:
            return False

        def half(p: int | None) -> str:
            return f"half_from({e.src(source, 64, p)}, T_{to.upper()}, {mode})"

        e.assign(
            i,
            i.operands[0],
            lambda p: (
                f"(uint16_t){half(None)}" if p is None else f"tr16(tr32({half(0)}, {half(1)}), tr32({half(2)}, {half(3)}))"
            ),
        )
        return True

    def value(p: int | None) -> str:
        text = (
            ftz.format(_as_float(e, source, source_type, p)) if source_type == "f32" else _as_float(e, source, source_type, p)
        )
        if i.has("relu"):
            text = f"max_f32({text}, {e.src(Immediate(0), 32, p)})"
        if i.has("sat"):
            text = f"sat_f32({text})"
        return f"whole_f32({text}, {whole})" if whole is not None else text

    _to_half(e, i, to, mode, value)
    return True


def _cvt_packed(e: Emitter, i: Instruction, to: str, source_type: str) -> bool:
    if to in ("f16x2", "bf16x2") and source_type == "f32":
        high, low = i.operands[1], i.operands[2]
        mode = next((ROUNDING[m] for m in i.modifiers if m in ROUNDING), 0)
        relu = i.has("relu")

        def pair(p: int | None) -> str:
            a, b = e.src(high, 32, p), e.src(low, 32, p)
            if relu:
                zero = e.src(Immediate(0), 32, p)
                a, b = f"max_f32({a}, {zero})", f"max_f32({b}, {zero})"
            if mode == 0:
                return f"{to}_of_f32({a}, {b})"
            kind = f"T_{to[:-2].upper()}"
            return f"or_32(shli_32(half_from_f32({a}, {kind}, {mode}), 16), half_from_f32({b}, {kind}, {mode}))"

        e.assign(i, i.operands[0], pair)
        return True
    names = {
        ("e4m3x2", "f32"),
        ("e5m2x2", "f32"),
        ("e4m3x2", "f16x2"),
        ("e5m2x2", "f16x2"),
        ("f16x2", "e4m3x2"),
        ("f16x2", "e5m2x2"),
    }
    if (to, source_type) not in names or i.has("relu"):
        return False
    destination = i.operands[0]
    if not isinstance(destination, Register):
        return False
    width = e.width(destination)

    def call(p: int | None) -> str:
        return f"{to}_{source_type}({', '.join(e.src(o, 32, p) for o in i.operands[1:])})"

    e.assign(i, destination, lambda p: f"(uint{width}_t){call(None)}" if p is None else e.resized(call, 32, width, p))
    return True


def _cvta(e: Emitter, i: Instruction) -> bool:
    """Generic addresses are addresses of the host; shared, local and parameter ones are offsets."""
    to = i.has("to")
    space = next(
        (m.split("::")[0] for m in i.modifiers if m.split("::")[0] in ("global", "shared", "local", "const", "param")), ""
    )
    source = i.operands[1]
    width = container(i.types[-1])
    if width != 64:
        return False
    if space == "param" and not to:
        e.assign(i, i.operands[0], lambda p: f"kw_parameter(w, {e.src(source, 64, p)})")
    elif space in ("global", "const", "param"):
        e.assign(i, i.operands[0], lambda p: e.src(source, 64, p))
    elif space == "shared":
        op = "sub" if to else "add"
        e.assign(i, i.operands[0], lambda p: f"{op}_64({e.src(source, 64, p)}, {e._constant('(uint64_t)w->shared', 64, p)})")
    elif space == "local":
        op = "sub" if to else "add"
        e.assign(i, i.operands[0], lambda p: f"{op}_64({e.src(source, 64, p)}, kw_local_base(w, {p}))")
    else:
        return False
    return True


def _isspacep(e: Emitter, i: Instruction) -> bool:
    space = next(
        (m.split("::")[0] for m in i.modifiers if m.split("::")[0] in ("global", "shared", "local", "const", "param")), ""
    )
    source = i.operands[1]
    values = ", ".join(e.src(source, 64, p) for p in range(4))
    if space in ("shared", "local"):
        e.assign(i, i.operands[0], lambda _: f"kw_is_{space}(w, {values})")
    elif space == "global":
        e.assign(i, i.operands[0], lambda _: f"~(kw_is_shared(w, {values}) | kw_is_local(w, {values}))")
    else:
        e.assign(i, i.operands[0], lambda _: "0u")
    return True
