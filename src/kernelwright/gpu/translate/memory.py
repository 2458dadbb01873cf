"""Loads, stores, atomics and asynchronous copies: calls of the runtime, each with its site."""

from __future__ import annotations

from kernelwright.gpu.ptx import TYPE_BYTES, Address, Immediate, Instruction, Operand, Register, Symbol, Vector
from kernelwright.gpu.translate.emit import PARTS, Emitter, container

_SPACES = ("global", "shared", "local", "const", "param")
_OPERATIONS = {"add": "OP_ADD", "min": "OP_MIN", "max": "OP_MAX", "and": "OP_AND", "or": "OP_OR", "xor": "OP_XOR", "exch": "OP_EXCH",
               "cas": "OP_CAS", "inc": "OP_INC", "dec": "OP_DEC"}  # fmt: skip


def memory(e: Emitter, i: Instruction) -> bool:
    """Emit what touches memory."""
    op = i.opcode
    if op in ("ld", "ldu"):
        return _load(e, i)
    if op == "st":
        return _store(e, i)
    if op in ("atom", "red"):
        return _atomic(e, i)
    if op == "cp":
        return _copy(e, i)
    if op in ("membar", "fence", "prefetch", "prefetchu", "discard", "applypriority", "griddepcontrol", "setmaxnreg"):
        return True  # a block's warps run on one core, and others see stores in order
    if op == "createpolicy":
        e.assign(i, i.operands[0], lambda p: e.src(Immediate(0), 64, p))
        return True
    return False


def space_of(i: Instruction) -> str:
    """The state space of an access; empty for generic addresses."""
    return next((m.split("::")[0] for m in i.modifiers if m.split("::")[0] in _SPACES), "")


def address(e: Emitter, a: Operand | None, width: int, part: int | None) -> str:
    """The expression of an address."""
    assert isinstance(a, Address)
    if isinstance(a.base, Symbol):
        return e.src(Symbol(a.base.name, a.offset), width, part)
    if a.base is None:
        return e.src(Immediate(a.offset), width, part)
    text = e.src(a.base, width, part)
    return f"add_{width}({text}, {e.src(Immediate(a.offset), width, part)})" if a.offset else text


def addresses(e: Emitter, a: Operand | None, width: int) -> str:
    """All vectors of an address, as arguments of a call."""
    return ", ".join(address(e, a, width, p) for p in range(PARTS[width]))


def cluster_addresses(e: Emitter, a: Operand | None) -> str:
    """The same for 32-bit addresses in the window of a cluster: addresses of this process."""
    t = e.temporary()
    e.put(f"u64 {t}[4]; kw_cluster_addresses(w, {addresses(e, a, 32)}, {t});")
    return ", ".join(f"{t}[{p}]" for p in range(4))


def _elements(o: Operand | None) -> tuple[Operand | None, ...]:
    return o.elements if isinstance(o, Vector) else (o,)


def _is_symbolic_parameter(a: Operand | None) -> bool:
    return isinstance(a, Address) and isinstance(a.base, Symbol)


def _load(e: Emitter, i: Instruction) -> bool:
    space = space_of(i)
    kind = i.types[-1]
    size = TYPE_BYTES[kind]
    if size > 8:
        return False
    where = i.operands[1]
    elements = _elements(i.operands[0])
    cluster = i.has("shared::cluster")
    if space == "param" and _is_symbolic_parameter(where):
        for k, element in enumerate(elements):
            at = address(e, Address(where.base, where.offset + k * size), 64, None)  # type: ignore[union-attr]
            _assign_scalar(e, i, element, kind, f"kw_read<uint{size * 8}_t>({at})")
        return True
    base = where.base if isinstance(where, Address) else None
    m, site = e.guarded(i), e.site(i)
    uniform = all(o is None or e.is_uniform(o) for o in elements)
    if uniform and not cluster and (not isinstance(base, Register) or e.is_uniform(base)):
        call = "kw_load_shared_uniform" if space == "shared" else "kw_load_uniform"
        width = 32 if space == "shared" else 64
        for k, element in enumerate(elements):
            at = address(e, Address(base, where.offset + k * size), width, None)  # type: ignore[union-attr]
            _assign_scalar(e, i, element, kind, f"{call}(w, {m}, {site}, {size}, {at})")
        return True
    have = container(kind)
    parts = PARTS[have]
    data = e.temporary()
    e.put(f"u{have} {data}[{parts * len(elements)}];")
    call, width = _call("load", "" if cluster else space)
    text = cluster_addresses(e, where) if cluster else addresses(e, where, width)
    if size == 4 and len(elements) == 1 and space != "local":
        e.put(f"{call}_4(w, {m}, {site}, {text}, {data});")
    elif size == 4 and len(elements) == 4 and width == 64 and space != "local":
        e.put(f"{call}_4x4(w, {m}, {site}, {text}, {data});")
    else:
        e.put(f"{call}(w, {m}, {site}, {size}, {len(elements)}, {text}, {data});")
    for k, element in enumerate(elements):
        if element is not None:
            _assign_vector(e, i, element, kind, data, k * parts)
    return True


def _call(what: str, space: str) -> tuple[str, int]:
    if space == "shared":
        return f"kw_{what}_shared", 32
    if space == "local":
        return f"kw_{what}_local", 64
    return f"kw_{what}", 64


def _assign_scalar(e: Emitter, i: Instruction, o: Operand | None, kind: str, text: str) -> None:
    if o is None:
        return
    assert isinstance(o, Register)
    bits, width = TYPE_BYTES[kind] * 8, e.width(o)
    signed = kind[0] == "s"
    value = f"(uint{width}_t)(int{width}_t)(int{bits}_t)({text})" if signed else f"(uint{width}_t)({text})"
    e.assign(i, o, lambda p: value if p is None else f"b{width}({value})")


def _assign_vector(e: Emitter, i: Instruction, o: Operand, kind: str, data: str, at: int) -> None:
    assert isinstance(o, Register)
    have, width = container(kind), e.width(o)
    signed = kind[0] == "s"

    def source(q: int) -> str:
        if signed and TYPE_BYTES[kind] == 1:
            return f"shri_s16(shli_16({data}[{at + q}], 8), 8)"
        return f"{data}[{at + q}]"

    e.assign(i, o, lambda p: e.resized(source, have, width, p or 0, signed))


def _store(e: Emitter, i: Instruction) -> bool:
    space = space_of(i)
    kind = i.types[-1]
    size = TYPE_BYTES[kind]
    if size > 8 or space in ("param", "const") or i.has("async"):
        return False
    where, elements = i.operands[0], _elements(i.operands[1])
    have = container(kind)
    parts = PARTS[have]
    cluster = i.has("shared::cluster")
    call, width = _call("store", "" if cluster else space)
    m, site, text = e.guarded(i), e.site(i), cluster_addresses(e, where) if cluster else addresses(e, where, width)
    values = [e.src(o, have, p) for o in elements for p in range(parts)]
    if size == 4 and len(elements) == 1 and space != "local":
        e.put(f"{call}_4(w, {m}, {site}, {text}, {', '.join(values)});")
        return True
    data = e.temporary()
    e.put(f"const u{have} {data}[] = {{{', '.join(values)}}};")
    if size == 4 and len(elements) == 4 and width == 64 and space != "local":
        e.put(f"{call}_4x4(w, {m}, {site}, {text}, {data});")
    else:
        e.put(f"{call}(w, {m}, {site}, {size}, {len(elements)}, {text}, {data});")
    return True


def _atomic(e: Emitter, i: Instruction) -> bool:
    space = space_of(i)
    op = next((m for m in i.modifiers if m in _OPERATIONS), "")
    kind = i.types[-1]
    if not op or TYPE_BYTES[kind] > 8 or i.has("async"):
        return False
    red = i.opcode == "red"
    where = i.operands[0 if red else 1]
    first, *rest = i.operands[1 if red else 2 :]
    elements = _elements(first)
    have = container(kind)
    parts = PARTS[have]
    t = e.temporary()
    width = 32 if space == "shared" else 64
    if i.has("shared::cluster"):
        e.put(f"const u64 {t}p[] = {{{cluster_addresses(e, where)}}};")
        space = ""
    elif space == "shared":  # through the block's own memory
        offsets = [e.resized(lambda q: address(e, where, 32, q), 32, 64, p) for p in range(4)]
        e.put(f"const u64 {t}p[] = {{{', '.join(f'add_64({o}, b64((uint64_t)w->shared))' for o in offsets)}}};")
    else:
        e.put(f"const u64 {t}p[] = {{{addresses(e, where, width)}}};")
    e.put(f"const u{have} {t}a[] = {{{', '.join(e.src(o, have, p) for o in elements for p in range(parts))}}};")
    second = "nullptr"
    if op == "cas":
        e.put(f"const u{have} {t}b[] = {{{', '.join(e.src(rest[0], have, p) for p in range(parts))}}};")
        second = f"{t}b"
    result = "nullptr"
    outputs: tuple[Operand | None, ...] = ()
    if not red:
        outputs = _elements(i.operands[0])
        e.put(f"u{have} {t}r[{parts * len(elements)}];")
        result = f"{t}r"
    name = {"b16": "T_U16", "b32": "T_U32", "b64": "T_U64"}.get(kind, f"T_{kind.upper()}")
    e.put(
        f"kw_atomic(w, {e.guarded(i)}, {e.site(i)}, {int(space == 'shared')}, {_OPERATIONS[op]}, {name}, {len(elements)}, "
        f"{t}p, {t}a, {second}, {result});"
    )
    for k, element in enumerate(outputs):
        if element is not None:
            _assign_vector(e, i, element, f"u{have}", f"{t}r", k * parts)
    return True


def _copy(e: Emitter, i: Instruction) -> bool:
    """cp.async of up to 16 bytes a lane; what is not read is zero. Bulk copies are in `bulk`."""
    if not i.has("async"):
        return False
    if i.has("commit_group"):
        e.put(f"kw_copy_commit(w, {e.guarded(i)});")
        return True
    if i.has("wait_group") or i.has("wait_all"):
        groups = i.operands[0] if i.operands else Immediate(0)
        assert isinstance(groups, Immediate)
        e.put(f"kw_copy_wait(w, {e.guarded(i)}, {groups.value}, {int(i.has('wait_all'))});")
        return True
    to, source, size = i.operands[:3]
    if not isinstance(size, Immediate):
        return False
    given = i.operands[3] if len(i.operands) > 3 else size
    if isinstance(given, Register) and given.type == "pred":  # ignore-src
        t = e.pred(given)
        present = [f"sel({t}{f' >> {16 * p}' if p else ''}, b32(0), b32({size.value}))" for p in range(2)]
    elif isinstance(given, Register) and e.width(given) == 64:
        given, present = size, [e.src(size, 32, p) for p in range(2)]  # a cache policy
    else:
        present = [e.src(given, 32, p) for p in range(2)]
    e.put(
        f"kw_copy_async(w, {e.guarded(i)}, {e.site(i)}, {size.value}, {addresses(e, to, 32)}, {addresses(e, source, 64)}, "
        f"{', '.join(present)});"
    )
    return True
