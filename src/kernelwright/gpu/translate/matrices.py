"""Matrix instructions: fragments go to the runtime as arrays of vectors."""

from __future__ import annotations

import functools
import re

from kernelwright.gpu.ptx import Immediate, Instruction, Operand, Register, Vector
from kernelwright.gpu.translate.emit import PARTS, Emitter
from kernelwright.gpu.translate.memory import addresses

_FAST = {
    ("m16n8k16", "f32", "f16", "f16", "f32"): "kw_mma_16816_f16_f32",
    ("m16n8k16", "f32", "bf16", "bf16", "f32"): "kw_mma_16816_bf16_f32",
    ("m16n8k8", "f32", "tf32", "tf32", "f32"): "kw_mma_1688_tf32_f32",
}


def matrices(e: Emitter, i: Instruction) -> bool:
    """Emit mma.sync, wgmma, ldmatrix and stmatrix."""
    if i.opcode in ("ldmatrix", "stmatrix"):
        return _matrix_memory(e, i)
    if i.opcode == "mma" and i.has("sync"):
        return _mma(e, i)
    if i.opcode == "wgmma":
        return _wgmma(e, i)
    return False


def _wgmma(e: Emitter, i: Instruction) -> bool:
    """A warpgroup's product, where it is issued: each warp makes its sixteen rows. That what it reads stays until its wait is checked."""
    if i.has("commit_group"):
        e.put("kw_wgmma_commit(w);")
    elif i.has("wait_group"):
        groups = i.operands[0]
        e.put(f"kw_wgmma_wait(w, {e.site(i)}, {groups.value if isinstance(groups, Immediate) else 0});")
    if any(i.has(x) for x in ("fence", "commit_group", "wait_group")):
        return True
    shape = next((x for x in i.modifiers if re.fullmatch(r"m64n\d+k\d+", x)), "")
    types = [x for x in i.modifiers if x in ("f16", "bf16", "tf32", "f32", "e4m3", "e5m2")]
    if not shape or len(types) != 3 or i.has("sp") or i.guard is not None:
        return False
    n, k = (int(x) for x in re.findall(r"\d+", shape)[1:])
    d, a, b, scale, *rest = i.operands
    if not all(isinstance(x, Immediate) for x in rest):
        return False
    numbers = [x.value for x in rest if isinstance(x, Immediate)]
    turns = numbers[2:] if isinstance(b, Register) and not isinstance(a, Vector) else [0, *numbers[2:]]
    flags = 2 * (numbers[0] == -1) | 4 * (numbers[1] == -1)
    flags |= 8 * bool(turns and turns[0]) | 16 * bool(len(turns) > 1 and turns[1])
    t = e.temporary()
    values = ", ".join(f"(u32)({e.src(r, 32, p)})" for r in _registers(d) for p in range(2))
    e.put(f"u32 {t}[] = {{{values}}};")
    fragment_a, descriptor_a = "nullptr", "0"
    if isinstance(a, Vector):
        e.put(f"const u32 {t}a[] = {{{fragment(e, a)}}};")
        fragment_a = f"{t}a"
    else:
        descriptor_a = _first_lane(e, a)
    names = ", ".join(f"T_{x.upper()}" for x in (types[1], types[2], types[0]))
    e.put(
        f"kw_wgmma(w, {e.site(i)}, {n}, {k}, {names}, {flags} | (({e.pred(scale)}) & m ? 1 : 0), {fragment_a}, {descriptor_a}, "
        f"{_first_lane(e, b)}, {t});"
    )
    for q, r in enumerate(_registers(d)):
        e.assign_from_array(i, r, t, 2 * q)
    return True


def _first_lane(e: Emitter, o: Operand | None) -> str:
    return e.src(o, 64, None) if e.is_uniform(o) else f"({e.src(o, 64, 0)})[0]"


def _registers(o: Operand | None) -> list[Register]:
    elements = o.elements if isinstance(o, Vector) else (o,)
    return [r for r in elements if isinstance(r, Register)]


def fragment(e: Emitter, o: Operand | None) -> str:
    """The vectors of a fragment's registers."""
    return ", ".join(f"(u32)({e.src(r, e.width(r), p)})" for r in _registers(o) for p in range(PARTS[e.width(r)]))


def _matrix_memory(e: Emitter, i: Instruction) -> bool:
    load = i.opcode == "ldmatrix"
    if not i.has("m8n8") or not i.has("b16"):
        return False
    n = next((int(m[1]) for m in i.modifiers if m in ("x1", "x2", "x4")), 1)
    where = i.operands[1 if load else 0]
    data, t = i.operands[0 if load else 1], e.temporary()
    transposed = int(i.has("trans"))
    if load:
        e.put(
            f"u32 {t}[{2 * n}]; kw_ldmatrix(w, {e.guarded(i)}, {e.site(i)}, {n}, {transposed}, {addresses(e, where, 32)}, {t});"
        )
        for k, r in enumerate(_registers(data)):
            e.assign_from_array(i, r, t, 2 * k)
    else:
        e.put(f"const u32 {t}[] = {{{fragment(e, data)}}};")
        e.put(f"kw_stmatrix(w, {e.guarded(i)}, {e.site(i)}, {n}, {transposed}, {addresses(e, where, 32)}, {t});")
    return True


def _mma(e: Emitter, i: Instruction) -> bool:
    shape = next((m for m in i.modifiers if re.fullmatch(r"m\d+n\d+k\d+", m)), "")
    types = [m for m in i.modifiers if re.fullmatch(r"(f16|bf16|tf32|f32|f64|s32|[su]8|[su]4|b1|e4m3|e5m2)", m)]
    if not shape or len(types) != 4 or any(t in ("b1", "s4", "u4") for t in types) or i.has("sp") or i.guard is not None:
        return False
    m, n, k = (int(x) for x in re.findall(r"\d+", shape))
    if (m, n) not in ((16, 8), (8, 8)) or (m == 8 and types[0] != "f64") or i.has("col") != (i.modifiers.count("col") == 1):
        return False
    d, a, b, c = i.operands[:4]
    t = e.temporary()
    count = len(_registers(d)) * (4 if types[0] == "f64" else 2)
    e.put(f"const u32 {t}a[] = {{{fragment(e, a)}}}, {t}b[] = {{{fragment(e, b)}}}, {t}c[] = {{{fragment(e, c)}}};")
    e.put(f"u32 {t}[{count}];")
    fast = _FAST.get((shape, types[0], types[1], types[2], types[3]))
    if fast:
        e.put(f"{fast}({t}a, {t}b, {t}c, {t});")
    else:
        names = [f"T_{x.upper()}" for x in (types[1], types[2], types[0], types[3])]
        e.put(f"kw_mma(w, {e.site(i)}, {m}, {n}, {k}, {', '.join(names)}, {int(i.has('satfinite'))}, {t}a, {t}b, {t}c, {t});")
    step = 4 if types[0] == "f64" else 2
    cast = "(u64)" if types[0] == "f64" else ""

    def result(q: int, p: int | None) -> str:
        return f"{cast}{t}[{q * step + (p or 0)}]"

    for q, r in enumerate(_registers(d)):
        e.assign(i, r, functools.partial(result, q))
    return True
