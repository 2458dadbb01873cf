"""Loads of shared memory as the assembler merges them: neighbouring words by the same base become one vector.

In: a module as its compiler wrote it, and lines at which nothing is merged (a vector there would not be aligned). Out: the module with
vectors, for counting what a device would do; values are the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kernelwright.gpu.ptx.nodes import Address, Function, Instruction, Label, Module, Register, Vector

_ENDS = {
    *("st", "atom", "red", "bar", "barrier", "call", "bra", "brx", "ret", "exit", "cp", "mbarrier", "stmatrix"),
    *("fence", "membar", "wgmma"),
}
_WORDS = {"f32", "u32", "s32", "b32"}


def merged(module: Module, apart: frozenset[int] = frozenset()) -> Module:
    """The module with merged loads."""
    return replace(module, functions=tuple(_function(f, apart) for f in module.functions))


def _function(function: Function, apart: frozenset[int]) -> Function:
    out: list[Instruction | Label] = []
    run: list[Instruction] = []
    for item in function.body:
        if isinstance(item, Label) or item.opcode in _ENDS:
            out += [*_run(run, apart), item]
            run = []
        else:
            run.append(item)
    return replace(function, body=(*out, *_run(run, apart)))


def _run(run: list[Instruction], apart: frozenset[int]) -> list[Instruction]:
    """Instructions with no store among them."""
    groups: dict[str, dict[int, int]] = {}
    for at, i in enumerate(run):
        if (
            i.opcode == "ld"
            and i.guard is None
            and i.has("shared")
            and not i.has("volatile")
            and i.types
            and i.types[-1] in _WORDS
        ):
            where = i.operands[1]
            if (
                isinstance(where, Address)
                and isinstance(where.base, Register)
                and isinstance(i.operands[0], Register)
                and i.line not in apart
            ):
                groups.setdefault(where.base.name, {}).setdefault(where.offset, at)
    if not groups:
        return run
    found: dict[int, Instruction] = {}
    gone: set[int] = set()
    for places in groups.values():
        for size in (4, 2):
            for offset in sorted(places):
                members = [places.get(offset + 4 * k, -1) for k in range(size)]
                if offset % (4 * size) or -1 in members or gone & set(members) or found.keys() & set(members):
                    continue
                first = min(members)
                if not _may_move(run, first, members):
                    continue
                gone |= set(members) - {first}
                found[first] = _vector(run, first, members, offset)
    return [found.get(at, i) for at, i in enumerate(run) if at not in gone]


def _vector(run: list[Instruction], first: int, members: list[int], offset: int) -> Instruction:
    i = run[first]
    where = i.operands[1]
    assert isinstance(where, Address)
    modifiers = (*i.modifiers[:-1], f"v{len(members)}", i.modifiers[-1])
    data = Vector(tuple(run[m].operands[0] for m in members))
    return replace(i, modifiers=modifiers, operands=(data, replace(where, offset=offset)))


def _may_move(run: list[Instruction], first: int, members: Iterable[int]) -> bool:
    """Whether nothing between reads or writes what the loads write, and their base stays."""
    for member in members:
        data, where = run[member].operands[:2]
        assert isinstance(data, Register)
        assert isinstance(where, Address)
        assert isinstance(where.base, Register)
        for i in run[first:member]:
            names = {r for o in i.operands for r in _names(o)} | ({i.guard.name} if i.guard else set())
            if data.name in names or (i.operands and where.base.name in _names(i.operands[0]) and i.opcode != "ld"):
                return False
            if i.opcode == "ld" and where.base.name in _names(i.operands[0]):
                return False
    return True


def _names(o: object) -> set[str]:
    if isinstance(o, Register):
        return {o.name}
    if isinstance(o, Vector):
        return {name for e in o.elements for name in _names(e)}
    return _names(o.base) if isinstance(o, Address) else set()
