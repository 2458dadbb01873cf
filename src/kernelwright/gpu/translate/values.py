"""What instructions read and write, which registers are equal in all lanes, and which live across blocks."""

from __future__ import annotations

from collections.abc import Iterator

from kernelwright.gpu.ptx import Address, Instruction, Operand, Register, Special, Symbol, Vector
from kernelwright.gpu.translate.flow import BasicBlock, all_lanes, mark_divergent

CARRY = Register("%cc", "pred")

_NO_RESULT = {
    "st", "red", "bra", "brx", "membar", "fence", "cp", "prefetch", "prefetchu", "discard", "applypriority", "nanosleep", "exit", "ret",
    "trap", "brkpt", "pmevent", "stmatrix", "setmaxnreg", "griddepcontrol", "tensormap",
}  # fmt: skip
_PURE = {
    "add", "sub", "mul", "mad", "mul24", "mad24", "sad", "div", "rem", "abs", "neg", "min", "max", "popc", "clz", "bfind", "brev", "bfe",
    "bfi", "bmsk", "szext", "dp2a", "dp4a",
    "and", "or", "xor", "not", "cnot", "lop3", "shf", "shl", "shr", "prmt", "mov", "selp", "slct", "set",
    "setp", "testp", "copysign", "fma", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh", "cvt", "cvta", "isspacep", "addc",
    "subc", "madc", "fns", "mapa", "getctarank",
}  # fmt: skip
_LANE_SPECIALS = ("%tid", "%laneid", "%lanemask", "%clock", "%globaltimer")


def registers(operand: Operand | None) -> Iterator[Register]:
    """The registers of an operand."""
    if isinstance(operand, Register):
        yield operand
    elif isinstance(operand, Vector):
        for element in operand.elements:
            yield from registers(element)
    elif isinstance(operand, Address):
        yield from registers(operand.base)
        for coordinate in operand.coordinates:
            yield from registers(coordinate)


def results(i: Instruction) -> int:
    """How many operands, from the left, an instruction writes."""
    if i.opcode in _NO_RESULT or not i.operands:
        return 0
    if i.opcode in ("bar", "barrier"):
        return 1 if i.has("result") else 0
    if i.opcode == "call":
        return 0 if isinstance(i.operands[0], Symbol) else 1
    if i.opcode == "mbarrier":
        if any(i.has(m) for m in ("init", "inval", "expect_tx")) and not i.has("arrive"):
            return 0
        return 0 if isinstance(i.operands[0], Address) else 1
    if i.opcode in ("wgmma", "wmma"):
        return 0 if any(i.has(m) for m in ("fence", "commit_group", "wait_group", "store")) else 1
    if i.opcode == "tcgen05":
        return 1 if i.has("ld") else 0
    return 2 if i.pair else 1


def writes(i: Instruction) -> list[Register]:
    """The registers that an instruction writes."""
    found = [r for o in i.operands[: results(i)] for r in registers(o)]
    return [*found, CARRY] if i.has("cc") else found


def reads(i: Instruction) -> list[Register]:
    """The registers that an instruction reads; under a guard also what it writes, since old values stay."""
    n = results(i)
    found = [r for o in i.operands[n:] for r in registers(o)]
    if i.guard is not None:
        found += [i.guard, *writes(i)]
    if i.opcode == "wgmma":
        found += [r for o in i.operands[:n] for r in registers(o)]
    if i.opcode in ("addc", "subc", "madc"):
        found.append(CARRY)
    return found


class Values:
    """The analysis of one kernel's blocks."""

    def __init__(self, blocks: list[BasicBlock], one_row: bool) -> None:
        self.blocks = blocks
        self.one_row = one_row  # blocks of threads have one dimension
        self.definitions: dict[str, list[tuple[int, Instruction]]] = {}
        for n, block in enumerate(blocks):
            for i in [*block.instructions, *([block.terminator] if block.terminator else [])]:
                for r in writes(i):
                    self.definitions.setdefault(r.name, []).append((n, i))
        irreducible = [b.irreducible for b in blocks]
        self.uniform: set[str] = set()
        self._settle(irreducible)
        if self._spins():  # lanes may wait for each other: nothing is known of who runs together
            self.spins = True
            self._settle([True] * len(blocks))
        else:
            self.spins = False
        self.live_in = self._liveness()

    def _settle(self, divergent: list[bool]) -> None:
        self.uniform = set(self.definitions)
        invariant = {name for name, found in self.definitions.items() if len(found) == 1}
        while True:
            for block, start in zip(self.blocks, divergent, strict=True):
                block.divergent = start
            mark_divergent(self.blocks, self.uniform)
            lost_invariant = {n for n in invariant if not self._is_invariant(n, invariant)}
            invariant -= lost_invariant
            lost = {
                name
                for name in self.uniform
                if name not in invariant
                and any(self.blocks[n].divergent or not self._same(i, self.uniform) for n, i in self.definitions[name])
            }
            if not lost and not lost_invariant:
                return
            self.uniform -= lost

    def _is_invariant(self, name: str, invariant: set[str]) -> bool:
        """Whether a register has the same value whenever and wherever in a block of threads it is computed."""
        _, i = self.definitions[name][0]
        if i.guard is not None or (i.opcode not in _PURE and not _parameter(i)) or i.has("cc"):
            return False
        return self._same(i, invariant)

    def _same(self, i: Instruction, uniform: set[str]) -> bool:
        """Whether an instruction gives all lanes the same, if these registers are the same in all."""
        if i.opcode in ("bar", "barrier"):
            return i.has("result")
        if i.opcode in ("vote", "activemask", "redux", "elect"):
            # by all lanes together: the same for all (elect's own lane is not)
            return i.opcode in ("vote", "redux", "activemask") and (i.opcode == "activemask" or all_lanes(i))
        if i.opcode == "ld":
            if not (_parameter(i) or i.has("const") or i.has("global") or _is_shared(i)) or any(
                m in i.modifiers for m in ("volatile", "relaxed", "acquire")
            ):
                return False
        elif i.opcode == "mbarrier":  # asked once for all lanes
            if not (i.has("test_wait") or i.has("try_wait")):
                return False
        elif i.opcode not in _PURE:
            return False
        if i.has("local") or _takes_local(i):
            return False
        for operand in i.operands[results(i) :]:
            if isinstance(operand, Special) and self._differs(operand.name):
                return False
        return all(r.name in uniform for r in reads(i))

    def _differs(self, special: str) -> bool:
        if self.one_row and special in ("%tid.y", "%tid.z"):
            return False
        return special.startswith(_LANE_SPECIALS)

    def _spins(self) -> bool:
        """Whether lanes of a warp that are apart may wait for one another: an exchange or a strong load inside a divergent loop."""
        loops: set[int] = set()
        for n, block in enumerate(self.blocks):
            for s in block.successors:
                if s <= n:
                    loops.update(range(s, n + 1))
        return any(
            self.blocks[n].divergent
            and any(
                (i.opcode == "atom" and (i.has("cas") or i.has("exch")))
                or (i.opcode == "ld" and (i.has("volatile") or i.has("acquire")))
                for i in self.blocks[n].instructions
            )
            for n in loops
        )

    def _liveness(self) -> list[set[str]]:
        count = len(self.blocks)
        used: list[set[str]] = []
        defined: list[set[str]] = []
        for block in self.blocks:
            u: set[str] = set()
            d: set[str] = set()
            for i in [*block.instructions, *([block.terminator] if block.terminator else [])]:
                u.update(r.name for r in reads(i) if r.name not in d)
                if i.guard is None:
                    d.update(r.name for r in writes(i))
            used.append(u)
            defined.append(d)
        live: list[set[str]] = [set(u) for u in used]
        changed = True
        while changed:
            changed = False
            for n in range(count - 1, -1, -1):
                out: set[str] = set()
                for s in self.blocks[n].successors:
                    out |= live[s]
                new = used[n] | (out - defined[n])
                if len(new) != len(live[n]):
                    live[n] = new
                    changed = True
        return live

    def live_out(self, n: int) -> set[str]:
        """Registers whose value is needed after a block."""
        out: set[str] = set()
        for s in self.blocks[n].successors:
            out |= self.live_in[s]
        return out


def _parameter(i: Instruction) -> bool:
    return i.opcode == "ld" and bool(i.modifiers) and i.modifiers[0].startswith("param")


def _is_shared(i: Instruction) -> bool:
    return any(m.startswith("shared") for m in i.modifiers)


def _takes_local(i: Instruction) -> bool:
    """The address of a local variable is the same offset in all lanes, its generic address is not."""
    return i.opcode == "cvta" and i.has("local")
