"""A function's basic blocks and where branches meet again."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelwright.gpu.ptx import Function, Instruction, Label, Symbol

ENDS = ("bra", "ret", "exit", "trap", "brx")
BARRIERS = ("bar", "barrier")


@dataclass
class Block:
    """Instructions without a branch between them; `next` is where the text goes on, `targets` where a branch may lead."""

    number: int
    instructions: list[Instruction] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)
    next: int | None = None
    barrier: bool = False

    @property
    def successors(self) -> list[int]:
        """All blocks that may follow."""
        return self.targets + ([self.next] if self.next is not None else [])


def blocks_of(function: Function) -> list[Block]:
    """The function cut at labels, behind branches and behind barriers."""
    blocks = [Block(0)]
    labels: dict[str, int] = {}
    for item in function.body:
        if isinstance(item, Label):
            if blocks[-1].instructions:
                blocks.append(Block(len(blocks)))
            labels[item.name] = blocks[-1].number
            continue
        blocks[-1].instructions.append(item)
        barrier = item.opcode in BARRIERS and "arrive" not in item.modifiers
        if item.opcode in ENDS or barrier:
            blocks[-1].barrier = barrier
            blocks.append(Block(len(blocks)))
    if not blocks[-1].instructions and blocks[-1].number not in labels.values():
        blocks.pop()
    for block in blocks:
        last = block.instructions[-1] if block.instructions else None
        if last is not None and last.opcode == "bra" and isinstance(last.operands[0], Symbol):
            block.targets = [labels[last.operands[0].name]]
        falls = last is None or last.opcode not in ENDS or last.guard is not None
        if falls and block.number + 1 < len(blocks):
            block.next = block.number + 1
    return blocks


def meeting(blocks: list[Block]) -> list[int | None]:
    """For each block its immediate post-dominator; None where only the end follows both ways."""
    count = len(blocks)
    end = count
    everything = set(range(count + 1))
    after = [everything.copy() for _ in range(count)] + [{end}]
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            following = block.successors or [end]
            last = block.instructions[-1] if block.instructions else None
            if last is not None and last.opcode in ("ret", "exit", "trap") and block.successors:
                following = [*following, end]
            met = set.intersection(*(after[s] for s in following)) | {block.number}
            if met != after[block.number]:
                after[block.number], changed = met, True
    found: list[int | None] = []
    for block in blocks:
        others = after[block.number] - {block.number, end}
        nearest = next((o for o in others if len(after[o]) == len(after[block.number]) - 1), None)
        found.append(nearest)
    return found


def live_at(blocks: list[Block]) -> list[frozenset[str]]:
    """The registers that are read at or behind the start of each block before they are written."""
    from kernelwright.gpu.ptx import Address, Register, Vector

    def names(operand: object) -> set[str]:
        match operand:
            case Register():
                return {operand.name}
            case Address():
                return names(operand.base)
            case Vector():
                return set().union(*(names(e) for e in operand.elements))
        return set()

    uses: list[set[str]] = []
    kills: list[set[str]] = []
    for block in blocks:
        used: set[str] = set()
        killed: set[str] = set()
        for item in block.instructions:
            writes = item.opcode not in ("st", "red", "bra", "ret", "exit", "trap", "bar", "barrier", "membar", "fence", "call")
            results = item.operands[: 2 if item.pair else 1] if writes else ()
            read = set().union(*(names(o) for o in (item.operands[len(results) :] if writes else item.operands)), set())
            if item.guard is not None:
                read |= {item.guard.name}
            made = set().union(*(names(o) for o in results), set())
            if item.guard is not None:
                read |= made  # a guarded result keeps the old where the guard does not hold
            used |= read - killed
            if item.guard is None:
                killed |= made
        uses.append(used)
        kills.append(killed)
    live = [frozenset(u) for u in uses]
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            out = frozenset().union(*(live[s] for s in block.successors)) if block.successors else frozenset()
            new = frozenset(uses[block.number] | (out - kills[block.number]))
            if new != live[block.number]:
                live[block.number], changed = new, True
    return live
