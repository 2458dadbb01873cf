"""Basic blocks and their order.

The machine runs the lowest block with waiting lanes first. Lanes that part at a branch meet again at its immediate
post-dominator if all blocks between have lower numbers: so the order is topological, loops are contiguous, and a loop with
several ways back gets one latch, its last block. Ways out of the kernel (`@p bra EXIT`) are guarded exits inside a block: who
has left is not waited for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from kernelwright.core.errors import PtxError
from kernelwright.gpu.ptx import Immediate, Instruction, Label, Register, Symbol
from kernelwright.gpu.translate.calls import FlatKernel


@dataclass
class BasicBlock:
    """Instructions without a jump, and how they end: `kind` is jump, branch, table, barrier or exit."""

    instructions: list[Instruction]
    kind: str = "jump"
    successors: list[int] = field(default_factory=list)
    terminator: Instruction | None = None
    divergent: bool = False
    irreducible: bool = False
    held: bool = False  # starts with a warp-wide instruction for which lanes may be missing


def is_barrier(i: Instruction) -> bool:
    """Whether a warp stops here until others come."""
    if i.opcode in ("bar", "barrier"):
        return not any(i.has(m) for m in ("warp", "arrive", "cluster", "result")) or (i.has("cluster") and i.has("wait"))
    return False


def blocks_of(flat: FlatKernel, name: str) -> list[BasicBlock]:
    """The blocks of a kernel in the order in which they run."""
    return _ordered(_cut(flat, name))


def _cut(flat: FlatKernel, name: str) -> list[BasicBlock]:
    body = _guarded_exits(flat.body)
    blocks: list[BasicBlock] = [BasicBlock([])]
    labels: dict[str, int] = {}
    ended = False

    def new() -> None:
        nonlocal ended
        if blocks[-1].kind == "jump" and not ended:
            blocks[-1].successors = [len(blocks)]
        blocks.append(BasicBlock([]))
        ended = False

    jumps: list[tuple[BasicBlock, list[str], bool]] = []
    for item in body:
        if isinstance(item, Label):
            if blocks[-1].instructions or ended:
                new()
            labels[item.name] = len(blocks) - 1
            continue
        if ended:
            new()
        here = blocks[-1]
        if item.opcode == "bra":
            target = item.operands[0]
            assert isinstance(target, Symbol)
            here.kind = "jump" if item.guard is None else "branch"
            here.terminator = item
            jumps.append((here, [target.name], item.guard is not None))
            ended = True
            if item.guard is not None:
                here.successors = [len(blocks)]
        elif item.opcode == "brx":
            table = item.operands[1]
            targets = flat.tables.get(table.name, ()) if isinstance(table, Symbol) else ()
            if not targets or item.guard is not None:
                raise PtxError("brx without a table of targets", path=name, line=item.line)
            here.kind, here.terminator = "table", item
            jumps.append((here, list(targets), False))
            ended = True
        elif item.opcode in ("ret", "exit") and item.guard is None:
            here.kind, ended = "exit", True
        elif is_barrier(item):
            if item.guard is not None:
                raise PtxError(f"{item.name} with a guard is not known", path=name, line=item.line)
            here.kind, here.terminator, here.successors, ended = "barrier", item, [len(blocks)], True
            if item.has("red"):  # the result is read where the warp goes on
                here.terminator = replace(item, operands=item.operands[1:])
                new()
                blocks[-1].instructions.append(replace(item, modifiers=("result", *item.types), operands=item.operands[:1]))
        else:
            here.instructions.append(item)
    if not ended:
        blocks[-1].kind = "exit"
    for here, names, conditional in jumps:
        try:
            found = [labels[n] for n in names]
        except KeyError as missing:
            raise PtxError(f"the label {missing} is not there", path=name) from None
        here.successors = found + here.successors if conditional else found
    for block in blocks:
        if block.kind == "branch" and block.successors[0] == block.successors[1]:
            block.kind, block.successors, block.terminator = "jump", block.successors[:1], None
        block.successors = [s if s < len(blocks) else _exit(blocks) for s in block.successors]
    return blocks


def _exit(blocks: list[BasicBlock]) -> int:
    blocks.append(BasicBlock([], "exit"))
    return len(blocks) - 1


def _guarded_exits(body: list[Instruction | Label]) -> list[Instruction | Label]:
    """`@p bra EXIT` as `@p exit`, where EXIT only returns."""
    leaving: set[str] = set()
    for i, item in enumerate(body):
        if isinstance(item, Label):
            rest = (x for x in body[i:] if isinstance(x, Instruction))
            following = next(rest, None)
            if following is None or (following.opcode in ("ret", "exit") and following.guard is None):
                leaving.add(item.name)
    found: list[Instruction | Label] = []
    for item in body:
        if isinstance(item, Instruction) and item.opcode == "bra":
            target = item.operands[0]
            if isinstance(target, Symbol) and target.name in leaving:
                item = replace(item, opcode="exit", modifiers=(), operands=())
        found.append(item)
    return found


def _ordered(blocks: list[BasicBlock]) -> list[BasicBlock]:
    reached = _reachable(blocks)
    irreducible: set[int] = set()
    order: list[int] = []

    def arrange(nodes: set[int], cut: set[tuple[int, int]]) -> None:
        for component in reversed(_components(nodes, blocks, cut)):
            if len(component) == 1 and component[0] not in _next(component[0], blocks, cut):
                order.append(component[0])
                continue
            inside = set(component)
            entries = sorted(n for n in inside if n == 0 or any(n in blocks[p].successors for p in reached if p not in inside))
            header = entries[0] if entries else min(inside)
            if len(entries) > 1:
                irreducible.update(inside)
            back = [n for n in component if header in blocks[n].successors and (n, header) not in cut]
            if len(back) > 1:
                blocks.append(BasicBlock([], "jump", [header]))
                latch = len(blocks) - 1
                reached.add(latch)
                for n in back:
                    blocks[n].successors = [latch if s == header else s for s in blocks[n].successors]
                inside.add(latch)
            order.append(header)
            arrange(inside - {header}, cut | {(n, header) for n in inside})

    arrange(set(reached), set())
    place = {old: new for new, old in enumerate(order)}
    for old in order:
        block = blocks[old]
        block.successors = [place[s] for s in block.successors]
        block.irreducible = old in irreducible
    return [blocks[old] for old in order]


def _reachable(blocks: list[BasicBlock]) -> set[int]:
    seen, work = {0}, [0]
    while work:
        for s in blocks[work.pop()].successors:
            if s not in seen:
                seen.add(s)
                work.append(s)
    return seen


def _next(node: int, blocks: list[BasicBlock], cut: set[tuple[int, int]]) -> list[int]:
    return [s for s in blocks[node].successors if (node, s) not in cut]


def _components(nodes: set[int], blocks: list[BasicBlock], cut: set[tuple[int, int]]) -> list[list[int]]:
    """Strongly connected components, the last in the flow first (Tarjan, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on: set[int] = set()
    found: list[list[int]] = []
    for root in sorted(nodes, reverse=True) if 0 not in nodes else [0, *sorted(nodes - {0}, reverse=True)]:
        if root in index:
            continue
        work: list[tuple[int, Iterable[int]]] = []

        def open_node(n: int) -> None:
            index[n] = low[n] = len(index)
            stack.append(n)
            on.add(n)
            work.append((n, iter([s for s in _next(n, blocks, cut) if s in nodes])))  # noqa: B023

        open_node(root)
        while work:
            node, following = work[-1]
            for s in following:
                if s not in index:
                    open_node(s)
                    break
                if s in on:
                    low[node] = min(low[node], index[s])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = []
                    while True:
                        n = stack.pop()
                        on.discard(n)
                        component.append(n)
                        if n == node:
                            break
                    found.append(component)
    return found


def post_dominators(blocks: list[BasicBlock]) -> list[int]:
    """The immediate post-dominator of each block; `len(blocks)` is the end of the kernel."""
    count = len(blocks)
    end = count
    successors = [list(b.successors) or [end] for b in blocks]
    reaches = {end}
    changed = True
    while changed:
        changed = False
        for n in range(count - 1, -1, -1):
            if n not in reaches and any(s in reaches for s in successors[n]):
                reaches.add(n)
                changed = True
        if not changed and len(reaches) <= count:  # a loop without an end
            stuck = max(n for n in range(count) if n not in reaches)
            successors[stuck].append(end)
            changed = True
    above = [-1] * (count + 1)
    above[end] = end
    # Numbers fall along the reversed flow of an acyclic part; iterate for loops.
    rank = _post_rank(successors, count)
    changed = True
    while changed:
        changed = False
        for n in sorted(range(count), key=lambda n: rank[n]):
            new = -1
            for s in successors[n]:
                if above[s] == -1:
                    continue
                new = s if new == -1 else _meet(new, s, above, rank)
            if new != -1 and above[n] != new:
                above[n] = new
                changed = True
    return above[:count]


def _post_rank(successors: list[list[int]], count: int) -> list[int]:
    """Reverse postorder from the end over reversed edges."""
    before: list[list[int]] = [[] for _ in range(count + 1)]
    for n, found in enumerate(successors):
        for s in found:
            before[s].append(n)
    seen = {count}
    post: list[int] = []
    work = [(count, iter(before[count]))]
    while work:
        node, rest = work[-1]
        for p in rest:
            if p not in seen:
                seen.add(p)
                work.append((p, iter(before[p])))
                break
        else:
            post.append(node)
            work.pop()
    rank = [0] * (count + 1)
    for i, n in enumerate(reversed(post)):
        rank[n] = i
    return rank


def _meet(a: int, b: int, above: list[int], rank: list[int]) -> int:
    while a != b:
        while rank[a] > rank[b]:
            a = above[a]
        while rank[b] > rank[a]:
            b = above[b]
    return a


def mark_divergent(blocks: list[BasicBlock], uniform: set[str]) -> None:
    """Mark the blocks that lanes of a warp may reach apart, given the registers that are equal in all lanes."""
    above = post_dominators(blocks)
    changed = True
    done: set[int] = set()
    while changed:
        changed = False
        for n, block in enumerate(blocks):
            if n in done or len(block.successors) < 2 or not (block.divergent or not _uniform_jump(block, uniform)):
                continue
            done.add(n)
            changed = True
            for s in block.successors:
                x = s
                while x not in (above[n], len(blocks)):
                    blocks[x].divergent = True
                    x = above[x]


def _uniform_jump(block: BasicBlock, uniform: set[str]) -> bool:
    i = block.terminator
    if i is None:
        return True
    if block.kind == "table":
        return isinstance(i.operands[0], Register) and i.operands[0].name in uniform
    return i.guard is not None and i.guard.name in uniform


WARP_WIDE = {"shfl", "vote", "match", "redux"}


def is_warp_wide(i: Instruction) -> bool:
    """Whether an instruction waits for other lanes of its warp."""
    return (i.opcode in WARP_WIDE and i.has("sync")) or (i.opcode == "bar" and i.has("warp"))


def split_where_lanes_gather(blocks: list[BasicBlock]) -> list[BasicBlock]:
    """In blocks that lanes reach apart, a block of its own begins at each instruction for which lanes wait."""
    pieces: list[list[BasicBlock]] = []
    for block in blocks:
        cuts = [k for k, i in enumerate(block.instructions) if is_warp_wide(i)] if block.divergent else []
        starts = sorted({0, *cuts})
        ends = [*starts[1:], len(block.instructions)]
        parts = [
            BasicBlock(block.instructions[a:b], irreducible=block.irreducible, held=a in cuts)
            for a, b in zip(starts, ends, strict=True)
        ]
        parts[-1].kind, parts[-1].terminator = block.kind, block.terminator
        pieces.append(parts)
    first: list[int] = []
    total = 0
    for parts in pieces:
        first.append(total)
        total += len(parts)
    for n, parts in enumerate(pieces):
        for k, part in enumerate(parts[:-1]):
            part.successors = [first[n] + k + 1]
        parts[-1].successors = [first[s] for s in blocks[n].successors]
    return [part for parts in pieces for part in parts]


def all_lanes(i: Instruction) -> bool:
    """Whether a warp-wide instruction names all lanes as a constant."""
    last = i.operands[-1]
    return isinstance(last, Immediate) and last.value & 0xFFFFFFFF == 0xFFFFFFFF
