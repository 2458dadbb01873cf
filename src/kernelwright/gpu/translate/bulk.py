"""Barriers in shared memory, bulk copies, tiles by tensor maps, clusters: what sm_90 adds to memory."""

from __future__ import annotations

import re

from kernelwright.gpu.ptx import TYPE_BYTES, Address, Immediate, Instruction, Operand, Register, Symbol
from kernelwright.gpu.translate.emit import PARTS, Emitter
from kernelwright.gpu.translate.memory import address, space_of

_MBARRIER = {"init": "MB_INIT", "inval": "MB_INVAL", "complete_tx": "MB_COMPLETE", "pending_count": "MB_PENDING"}
_FIELDS = {
    "global_address": "TILE_ADDRESS",
    "rank": "TILE_RANK",
    "box_dim": "TILE_BOX",
    "global_dim": "TILE_EXTENT",
    "global_stride": "TILE_STRIDE",
    "element_stride": "TILE_STEP",
    "elemtype": "TILE_TYPE",
    "interleave_layout": "TILE_INTERLEAVE",
    "swizzle_mode": "TILE_SWIZZLE",
    "fill_mode": "TILE_FILL",
}
_ORDINALS = {"box_dim", "global_dim", "global_stride", "element_stride"}
_OPERATIONS = {name: f"OP_{name.upper()}" for name in ("add", "min", "max", "and", "or", "xor")}
_KINDS = {"u32": 2, "s32": 3, "u64": 4, "s64": 5, "f16": 6, "f32": 7, "f64": 8, "bf16": 9, "b32": 2, "b64": 4}


def bulk(e: Emitter, i: Instruction) -> bool:
    """Emit what has to do with barriers in shared memory, bulk copies, tensor maps and clusters."""
    op = i.opcode
    if op == "mbarrier":
        return _mbarrier(e, i)
    if op == "cp" and i.has("mbarrier") and i.has("arrive"):
        what = "MB_COPIES_NOINC" if i.has("noinc") else "MB_COPIES"
        _call(e, i, what, i.operands[0], Immediate(1), None)
        return True
    if op == "cp" and i.has("bulk"):
        return _copies(e, i)
    if op == "tensormap":
        return _map(e, i)
    if op in ("mapa", "getctarank"):
        return _rank(e, i)
    if op in ("bar", "barrier") and i.has("cluster") and i.has("arrive"):
        e.put(f"kw_cluster_arrive(w, {e.guarded(i)});")
        return True
    if op == "st" and i.has("async"):
        return _store_async(e, i)
    return False


def host_addresses(e: Emitter, i: Instruction, o: Operand | None, space: str = "") -> str:
    """An array with an operand's addresses of this process; `space` is that of the operand if it is not the instruction's."""
    space = space or next((m for m in i.modifiers if m.startswith("shared")), "")
    t = e.temporary()
    where = o if isinstance(o, Address) else Address(o if isinstance(o, Register | Symbol) else None)
    wide = isinstance(where.base, Register) and e.width(where.base) == 64
    if space == "shared::cluster" and not wide:
        parts = ", ".join(address(e, where, 32, p) for p in range(2))
        e.put(f"u64 {t}[4]; kw_cluster_addresses(w, {parts}, {t});")
    elif space.startswith("shared"):  # 64-bit registers of an offset in the window are used as such
        offsets = [e.resized(lambda q: address(e, where, 32, q), 32, 64, p) for p in range(4)]
        e.put(f"const u64 {t}[] = {{{', '.join(f'add_64({x}, b64((uint64_t)w->shared))' for x in offsets)}}};")
    else:
        e.put(f"const u64 {t}[] = {{{', '.join(address(e, where, 64, p) for p in range(4))}}};")
    return t


def _numbers(e: Emitter, o: Operand | None, width: int) -> str:
    t = e.temporary()
    e.put(f"const u{width} {t}[] = {{{', '.join(e.src(o, width, p) for p in range(PARTS[width]))}}};")
    return t


def _call(e: Emitter, i: Instruction, what: str, where: Operand | None, number: Operand | None, result: Operand | None) -> None:
    at = host_addresses(e, i, where)
    n = _numbers(e, number if number is not None else Immediate(1), 32)
    out = "nullptr"
    if isinstance(result, Register):
        out = e.temporary()
        e.put(f"u64 {out}[4];")
    e.put(f"kw_mbarrier(w, {e.guarded(i)}, {e.site(i)}, {what}, {at}, {n}, {out});")
    if isinstance(result, Register):
        e.assign(i, result, lambda p: e.resized(lambda q: f"{out}[{q}]", 64, e.width(result), p or 0))


def _mbarrier(e: Emitter, i: Instruction) -> bool:
    if i.has("test_wait") or i.has("try_wait"):
        to, where, phase = i.operands[:3]
        at, want, t = host_addresses(e, i, where), _numbers(e, phase, 64), e.temporary()
        e.put(
            f"const uint32_t {t} = kw_mbarrier_test(w, {e.guarded(i)}, {e.site(i)}, {int(i.has('parity'))}, {at}, {want}); (void){t};"
        )
        e.assign(i, to, lambda _: t)
        return True
    if i.has("pending_count"):
        state, t = _numbers(e, i.operands[1], 64), e.temporary()
        e.put(f"u64 {t}[4]; kw_mbarrier(w, {e.guarded(i)}, {e.site(i)}, MB_PENDING, {state}, nullptr, {t});")
        e.assign(i, i.operands[0], lambda p: e.resized(lambda q: f"{t}[{q}]", 64, 32, p or 0))
        return True
    if i.has("arrive") or i.has("arrive_drop"):
        result, where, *rest = i.operands if not isinstance(i.operands[0], Address) else (None, *i.operands)
        if i.has("expect_tx"):
            if i.has("arrive_drop"):
                return False
            what = "MB_ARRIVE_EXPECT"
        else:
            what = "MB_DROP" if i.has("arrive_drop") else "MB_ARRIVE"
        _call(e, i, what, where, rest[0] if rest else None, result)
        return True
    if i.has("expect_tx"):
        _call(e, i, "MB_EXPECT", i.operands[0], i.operands[1], None)
        return True
    found = next((name for key, name in _MBARRIER.items() if i.has(key)), "")
    if not found:
        return False
    _call(e, i, found, i.operands[0], i.operands[1] if len(i.operands) > 1 else None, None)
    return True


def _copies(e: Emitter, i: Instruction) -> bool:
    if i.has("commit_group"):
        e.put(f"kw_bulk_commit(w, {e.guarded(i)});")
        return True
    if i.has("wait_group"):
        groups = i.operands[0]
        assert isinstance(groups, Immediate)
        e.put(f"kw_bulk_wait(w, {e.guarded(i)}, {e.site(i)}, {groups.value});")
        return True
    if i.has("prefetch"):
        return True
    if any(m.startswith("im2col") for m in i.modifiers) or any(m.startswith("tile::") or m == "cp_mask" for m in i.modifiers):
        return False
    spaces = [m for m in i.modifiers if m.split("::")[0] in ("shared", "global")]
    if len(spaces) != 2:
        return False
    combine = next((_OPERATIONS[m] for m in i.modifiers if m in _OPERATIONS), "-1")
    if i.has("reduce") and combine == "-1":
        return False
    if i.has("tensor"):
        return _tile(e, i, spaces, combine)
    return _row(e, i, spaces, combine)


def _members(e: Emitter, i: Instruction, rest: tuple[Operand | None, ...]) -> str | None:
    """The blocks of a cluster that a copy goes to; what else follows is a policy of caches."""
    if not i.has("multicast::cluster"):
        return "0"
    if not rest:
        return None
    o = rest[0]
    return e.src(o, 32, None) if e.is_uniform(o) else f"kw_any_lane({e.src(o, 32, 0)}, {e.src(o, 32, 1)}, m)"


def _tile(e: Emitter, i: Instruction, spaces: list[str], combine: str) -> bool:
    load = spaces[0].startswith("shared")
    rank = next((int(m[0]) for m in i.modifiers if re.fullmatch(r"[1-5]d", m)), 0)
    map_, shared = (i.operands[1], i.operands[0]) if load else (i.operands[0], i.operands[1])
    if not rank or not isinstance(map_, Address) or len(map_.coordinates) != rank:
        return False
    at = host_addresses(e, i, shared, spaces[0] if load else spaces[1])
    maps = host_addresses(e, i, Address(map_.base, map_.offset), "generic")
    places = e.temporary()
    e.put(f"const u32 {places}[] = {{{', '.join(e.src(c, 32, p) for c in map_.coordinates for p in range(2))}}};")
    barrier, members = "nullptr", "0"
    if load:
        barrier = host_addresses(e, i, i.operands[2], spaces[0])
        found = _members(e, i, i.operands[3:])
        if found is None:
            return False
        members = found
    e.put(
        f"kw_tile(w, {e.guarded(i)}, {e.site(i)}, {int(load)}, {combine}, {rank}, {at}, {maps}, {places}, {barrier}, {members});"
    )
    return True


def _row(e: Emitter, i: Instruction, spaces: list[str], combine: str) -> bool:
    to, source, size = i.operands[:3]
    at, origin = host_addresses(e, i, to, spaces[0]), host_addresses(e, i, source, spaces[1])
    count = _numbers(e, size, 32)
    if spaces[0].startswith("shared"):
        if i.has("reduce"):
            return False
        barrier = host_addresses(e, i, i.operands[3], spaces[0])
        members = _members(e, i, i.operands[4:])
        if members is None:
            return False
        e.put(f"kw_bulk_load(w, {e.guarded(i)}, {e.site(i)}, {at}, {origin}, {count}, {barrier}, {members});")
        return True
    kind = next((m for m in reversed(i.modifiers) if m in _KINDS), "u32")
    size_of = TYPE_BYTES[kind]
    e.put(f"kw_bulk_store(w, {e.guarded(i)}, {e.site(i)}, {combine}, {_KINDS[kind]}, {size_of}, {at}, {origin}, {count});")
    return True


def _map(e: Emitter, i: Instruction) -> bool:
    if i.has("cp_fenceproxy"):
        to, source = host_addresses(e, i, i.operands[0], "generic"), host_addresses(e, i, i.operands[1], "shared::cta")
        e.put(f"kw_tensor_map(w, {e.guarded(i)}, {e.site(i)}, TILE_COPY, 0, {to}, {source});")
        return True
    field = next((m for m in i.modifiers if m in _FIELDS), "")
    if not i.has("replace") or not field:
        return False
    ordinal = i.operands[1] if field in _ORDINALS else Immediate(0)
    if not isinstance(ordinal, Immediate):
        return False
    value = _numbers(e, i.operands[-1], 64)
    space = "shared::cta" if space_of(i) == "shared" else "generic"
    e.put(
        f"kw_tensor_map(w, {e.guarded(i)}, {e.site(i)}, {_FIELDS[field]}, {ordinal.value}, "
        f"{host_addresses(e, i, i.operands[0], space)}, {value});"
    )
    return True


def _rank(e: Emitter, i: Instruction) -> bool:
    """`mapa`: the same place in another block of the cluster; `getctarank`: whose place it is."""
    short = any(m.startswith("shared") for m in i.modifiers)
    width = 32 if short else 64
    source = i.operands[1]
    t = e.temporary()
    e.put(f"uint{width}_t {t}i[32], {t}r[32]; uint32_t {t}k[32] = {{}};")
    for p in range(PARTS[width]):
        e.put(f"*(u{width}*)({t}i + {p * 32 // PARTS[width]}) = {e.src(source, width, p)};")
    if i.opcode == "mapa":
        for p in range(2):
            e.put(f"*(u32*)({t}k + {16 * p}) = {e.src(i.operands[2], 32, p)};")
        e.put(f"for (int i = 0; i < 32; i++) {t}r[i] = kw_mapa_{width}(w, {t}i[i], {t}k[i]);")
        e.assign(i, i.operands[0], lambda p: f"{t}r[0]" if p is None else f"*(u{width}*)({t}r + {p * 32 // PARTS[width]})")
        return True
    place = f"(uint32_t){t}i[i] >> 24 ? ((uint32_t){t}i[i] >> 24) - 1 : w->rank" if short else f"kw_rank_of(w, {t}i[i])"
    e.put(f"for (int i = 0; i < 32; i++) {t}k[i] = {place};")
    e.assign(i, i.operands[0], lambda p: f"{t}k[0]" if p is None else f"*(u32*)({t}k + {16 * p})")
    return True


def _store_async(e: Emitter, i: Instruction) -> bool:
    """A store to a block of the cluster that tells a barrier there of its bytes."""
    kind = i.types[-1]
    elements = getattr(i.operands[1], "elements", (i.operands[1],))
    size, width = TYPE_BYTES[kind], 8 * TYPE_BYTES[kind]
    if size not in (4, 8):
        return False
    at = host_addresses(e, i, i.operands[0], "shared::cluster")
    data = e.temporary()
    e.put(f"const u{width} {data}[] = {{{', '.join(e.src(o, width, p) for o in elements for p in range(PARTS[width]))}}};")
    e.put(
        f"kw_store(w, {e.guarded(i)}, {e.site(i)}, {size}, {len(elements)}, {', '.join(f'{at}[{p}]' for p in range(4))}, {data});"
    )
    barrier = host_addresses(e, i, i.operands[2], "shared::cluster")
    count = _numbers(e, Immediate(size * len(elements)), 32)
    e.put(f"kw_mbarrier(w, {e.guarded(i)}, {e.site(i)}, MB_COMPLETE, {barrier}, {count}, nullptr);")
    return True


def has_partial_barriers(instructions: list[Instruction]) -> bool:
    """Whether some barrier is not of all warps of a block."""
    return any(
        i.opcode == "mbarrier"
        or (
            i.opcode in ("bar", "barrier")
            and not any(i.has(m) for m in ("warp", "cluster", "result"))
            and (len(i.operands) > 1 + i.has("red") or i.has("arrive") or (i.operands and i.operands[0] != Immediate(0)))
        )
        for i in instructions
    )
