"""What lanes, warps and blocks do together, and calls of the system."""

from __future__ import annotations

from kernelwright.gpu.ptx import Immediate, Instruction, Operand, Register, Symbol
from kernelwright.gpu.translate.comparisons import kind_of
from kernelwright.gpu.translate.emit import PARTS, Emitter, container

_MODES = {"up": 0, "down": 1, "bfly": 2, "idx": 3}


def warps(e: Emitter, i: Instruction) -> bool:
    """Emit shuffles, votes, barriers without a wait, traps and calls."""
    op = i.opcode
    if op == "shfl":
        return _shuffle(e, i)
    if op == "vote":
        return _vote(e, i)
    if op == "activemask":
        e.assign(i, i.operands[0], lambda p: "m" if p is None else "b32(m)")
        return True
    if op == "match":
        return _match(e, i)
    if op == "redux":
        return _redux(e, i)
    if op == "elect":
        return _elect(e, i)
    if op in ("bar", "barrier"):
        return _barrier(e, i)
    if op == "trap":
        e.put(f"kw_trap(w, {e.guarded(i)}, {e.site(i)});")
        return True
    if op == "nanosleep":
        e.put("w->fuel = w->fuel > 4 ? 4 : w->fuel;")
        return True
    if op in ("brkpt", "pmevent"):
        return True
    if op == "call":
        return _system_call(e, i)
    return False


def _shuffle(e: Emitter, i: Instruction) -> bool:
    if not i.has("sync"):
        return False
    mode = next(_MODES[m] for m in i.modifiers if m in _MODES)
    start = 2 if i.pair else 1
    value, b, c, members = i.operands[start : start + 4]
    t = e.temporary()
    e.put(f"const u32 {t}v[] = {{{e.src(value, 32, 0)}, {e.src(value, 32, 1)}}}; u32 {t}r[2];")
    lanes = ", ".join(e.src(o, 32, p) for o in (b, c) for p in range(2))
    e.put(
        f"const uint32_t {t} = kw_shuffle(w, {e.guarded(i)}, {e.site(i)}, {mode}, {_members(e, members)}, {t}v, {lanes}, {t}r); (void){t};"
    )
    e.assign_from_array(i, i.operands[0], f"{t}r", 0)
    if i.pair:
        e.assign(i, i.operands[1], lambda _: t)
    return True


def _members(e: Emitter, o: Operand | None) -> str:
    return e.src(o, 32, None) if e.is_uniform(o) else f"kw_any_lane({e.src(o, 32, 0)}, {e.src(o, 32, 1)}, m)"


def _vote(e: Emitter, i: Instruction) -> bool:
    kind = next(m for m in i.modifiers if m in ("ballot", "all", "any", "uni"))
    source, members = i.operands[1], i.operands[2] if i.has("sync") else Immediate(-1)
    t = e.temporary()
    e.put(f"const uint32_t {t} = m & {e.pred(source)}, {t}m = m & {_members(e, members)};")
    if kind == "ballot":
        e.assign(i, i.operands[0], lambda p: f"({t} & {t}m)" if p is None else f"b32({t} & {t}m)")
        return True
    # each set of lanes that votes has its own outcome; with one mask for all there is one
    text = {
        "all": f"({t}m & ~{t}) == 0",
        "any": f"({t}m & {t}) != 0",
        "uni": f"(({t}m & {t}) == 0 || ({t}m & ~{t}) == 0)",
    }[kind]
    e.assign(i, i.operands[0], lambda _: f"({text} ? ~0u : 0u)")
    return True


def _match(e: Emitter, i: Instruction) -> bool:
    width = container(kind_of(i))
    start = 2 if i.pair else 1
    value = i.operands[start]
    t = e.temporary()
    e.put(f"const u{width} {t}v[] = {{{', '.join(e.src(value, width, p) for p in range(PARTS[width]))}}};")
    mask = f"{e.guarded(i)} & {_members(e, i.operands[-1])}"
    if i.has("any"):
        e.put(f"u32 {t}r[2]; kw_match_any(w, {mask}, {width // 8}, {t}v, {t}r);")
        e.assign_from_array(i, i.operands[0], f"{t}r", 0)
    else:
        e.put(f"uint32_t {t}p; const uint32_t {t} = kw_match_all(w, {mask}, {width // 8}, {t}v, &{t}p);")
        e.assign(i, i.operands[0], lambda p: t if p is None else f"b32({t})")
        if i.pair:
            e.assign(i, i.operands[1], lambda _: f"{t}p")
    return True


def _redux(e: Emitter, i: Instruction) -> bool:
    op = next(m for m in i.modifiers if m in ("add", "min", "max", "and", "or", "xor"))
    kind = kind_of(i)
    if kind == "f32":
        return False
    t = e.temporary()
    name = "T_S32" if kind == "s32" else "T_U32"
    value = i.operands[1]
    e.put(
        f"const uint32_t {t} = kw_redux(w, {e.guarded(i)} & {_members(e, i.operands[2])}, OP_{op.upper()}, {name}, "
        f"{e.src(value, 32, 0)}, {e.src(value, 32, 1)});"
    )
    e.assign(i, i.operands[0], lambda p: t if p is None else f"b32({t})")
    return True


def _elect(e: Emitter, i: Instruction) -> bool:
    """The lowest lane is chosen."""
    t = e.temporary()
    e.put(f"const uint32_t {t} = m & {_members(e, i.operands[-1])};")
    e.assign(i, i.operands[0], lambda p: f"(uint32_t)__builtin_ctz({t})" if p is None else f"b32(__builtin_ctz({t}))")
    e.assign(i, i.operands[1], lambda _: f"({t} & -{t})")
    return True


def _barrier(e: Emitter, i: Instruction) -> bool:
    if i.has("result"):
        destination = i.operands[0]
        if isinstance(destination, Register) and destination.type == "pred":
            e.assign(i, destination, lambda _: "(w->barrier_result ? ~0u : 0u)")
        else:
            e.assign(i, destination, lambda p: "w->barrier_result" if p is None else "b32(w->barrier_result)")
        return True
    if i.has("warp"):
        return True
    if i.has("arrive") and not i.has("cluster"):
        values = [e.src(o, 32, None) if e.is_uniform(o) else f"{e.src(o, 32, 0)}[0]" for o in i.operands]
        e.put(f"kw_arrive(w, {', '.join(values)});")
        return True
    return False


def _system_call(e: Emitter, i: Instruction) -> bool:
    target = next((o for o in i.operands if isinstance(o, Symbol)), None)
    if target is None:
        return False
    at = i.operands.index(target)
    arguments = i.operands[at + 1 :]

    def all_of(o: Operand | None) -> str:
        return ", ".join(e.src(o, 64, p) for p in range(4))

    m = e.guarded(i)
    t = e.temporary()
    if target.name == "vprintf":
        e.put(f"kw_printf(w, {m}, {all_of(arguments[0])}, {all_of(arguments[1])});")
        e.assign(i, i.operands[0], lambda p: e.src(Immediate(0), 32, p))
    elif target.name == "__assertfail":
        e.put(f"kw_assert(w, {m}, {e.site(i)}, {all_of(arguments[0])});")
    elif target.name == "malloc":
        e.put(f"const u64 {t}s[] = {{{all_of(arguments[0])}}}; u64 {t}r[4]; kw_malloc(w, {m}, {t}s, {t}r);")
        e.assign_from_array(i, i.operands[0], f"{t}r", 0)
    elif target.name == "free":
        e.put(f"const u64 {t}s[] = {{{all_of(arguments[0])}}}; kw_free(w, {m}, {t}s);")
    else:
        return False
    return True
