"""Registers of a product that has not been waited for: `wgmma` writes them when it likes until `wgmma.wait_group`.

In: basic blocks. Out: the instructions that use such a register too early. A register's age is how many groups were committed after
its own (-1: not even that one); a wait for all but N groups ends those of age N and more. Where ways meet the younger age counts.
Copies of such registers are not uses: the assembler puts both into one place.
"""

from __future__ import annotations

from kernelwright.gpu.ptx import Immediate, Instruction, Register
from kernelwright.gpu.translate.flow import BasicBlock
from kernelwright.gpu.translate.values import reads, registers, writes

_Ages = dict[str, int]


def too_early(blocks: list[BasicBlock]) -> set[int]:
    """The identities of instructions that use a result before its wait."""
    if not any(i.opcode == "wgmma" for block in blocks for i in block.instructions):
        return set()
    begins: list[_Ages | None] = [None] * len(blocks)
    begins[0] = {}
    found: set[int] = set()
    work = [0]
    while work:
        n = work.pop()
        ages = dict(begins[n] or {})
        for i in (*blocks[n].instructions, *([blocks[n].terminator] if blocks[n].terminator else [])):
            assert i is not None
            if _step(i, ages):
                found.add(id(i))
        for s in blocks[n].successors:
            before = begins[s]
            merged = dict(ages) if before is None else {**before, **{r: min(a, before.get(r, a)) for r, a in ages.items()}}
            if merged != before:
                begins[s] = merged
                work.append(s)
    return found


def _step(i: Instruction, ages: _Ages) -> bool:
    """Bring the ages up to date; whether the instruction comes too early."""
    if i.opcode == "wgmma":
        if i.has("commit_group"):
            for r in ages:
                ages[r] += 1
        elif i.has("wait_group"):
            left = i.operands[0].value if isinstance(i.operands[0], Immediate) else 0
            for r in [r for r, age in ages.items() if age >= left]:
                del ages[r]
        elif i.has("mma_async"):
            ages.update((r.name, -1) for r in registers(i.operands[0]))
        return False
    if not ages:
        return False
    if i.opcode == "mov" and i.guard is None and len(i.operands) == 2 and isinstance(i.operands[0], Register):
        source = i.operands[1]
        ages.pop(i.operands[0].name, None)
        if isinstance(source, Register) and source.name in ages:
            ages[i.operands[0].name] = ages[source.name]
        return False
    return any(r.name in ages for r in (*reads(i), *writes(i)))
