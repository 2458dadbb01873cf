"""Blocks of threads in step, on the tape: many blocks at a time, each lane one thread.

Lanes whose branch conditions are known go their ways one after another, the lowest block of the text first, and wait at barriers for each
other. Where a condition depends on data both ways are run up to where they meet, and what they leave in registers becomes a choice;
stores on the way become choices between the new and the old.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernelwright.compiler.lift.formulas.refusal import Refused
from kernelwright.compiler.lift.formulas.tape import Tape
from kernelwright.compiler.lift.ptx import exchanges, numbers, transfers  # noqa: F401  (they fill the table of instructions)
from kernelwright.compiler.lift.ptx.arithmetic import chosen, inverted, predicate_logic, unknown
from kernelwright.compiler.lift.ptx.flow import Block, blocks_of, live_at, meeting
from kernelwright.compiler.lift.ptx.memory import CONSTANT, LOCAL, SHARED, Bytes, Global
from kernelwright.compiler.lift.ptx.table import execute
from kernelwright.compiler.lift.ptx.words import Held, Word, merged, word
from kernelwright.gpu.ptx import Function, Instruction, Module, Register, Special, Symbol, Variable, type_bytes

MOST_STEPS = 3_000_000
DEEPEST = 24
"""Branches on data inside each other: more is a loop whose length depends on data."""


@dataclass
class Frame:
    """A function under execution: registers, and what `.param` variables of calls hold by offset."""

    function: Function
    registers: dict[str, Held] = field(default_factory=dict)
    params: dict[str, dict[int, Held]] = field(default_factory=dict)


@dataclass
class Prepared:
    """A function's blocks, where branches meet, and the registers that are read later, by block."""

    blocks: list[Block]
    meets: list[int | None]
    live: list[frozenset[str]]


class Machine:
    """Runs some blocks of one launch. `places` are the blocks' coordinates, as many as there are groups of `threads` lanes."""

    def __init__(
        self, tape: Tape, module: Module, memory: Global, block: tuple[int, int, int], grid: tuple[int, int, int], shared: int
    ) -> None:
        self.tape, self.module, self.memory = tape, module, memory
        self.block, self.grid = block, grid
        self.threads = int(np.prod(block))
        self.lane: Any = np.arange(tape.lanes, dtype=np.int64)
        thread: Any = self.lane % self.threads
        self.thread = thread
        self.in_warp: Any = thread % 32
        self.warp_start = self.lane - self.in_warp
        self.mask: Any = np.ones(tape.lanes, dtype=bool)
        self.predicate: Word | None = None
        self.frame: Frame
        self.line = 0
        self.steps = 0
        self.depth = 0
        self.dynamic = shared
        self.places: Any = np.zeros((tape.lanes, 3), dtype=np.int64)
        self._prepared: dict[str, Prepared] = {}
        self._shared: dict[str, int] = {}
        self._constants: dict[str, int] = {}
        self.constant = self._lay_constants()
        self.outside: dict[str, int] = {}
        """Variables of the module that lie among the tensors, by address."""
        self._locals: dict[str, int] = {}
        self.special = {
            "%tid.x": thread % block[0], "%tid.y": thread // block[0] % block[1], "%tid.z": thread // (block[0] * block[1]),
            "%laneid": self.in_warp, "%warpid": thread // 32,
        }  # fmt: skip

    # ------------------------------------------------------------ a launch

    def run(self, entry: Function, arguments: bytes, places: Sequence[tuple[int, int, int]]) -> None:
        """Runs the blocks at these places, as many at a time as the tape has lanes for."""
        together = self.tape.lanes // self.threads
        for start in range(0, len(places), together):
            some = places[start : start + together]
            self.mask = self.lane // self.threads < len(some)
            chosen_places = np.array([some[min(int(k), len(some) - 1)] for k in range(together)])
            self.places = chosen_places[self.lane // self.threads]
            size = self._lay_shared()
            self.shared = Bytes(together, max(size, 1), self.lane // self.threads)
            self._locals = {}
            self.local = Bytes(self.tape.lanes, max(self._lay_locals(entry), 1), self.lane)
            self.frame = Frame(entry)
            self.predicate = None
            self.arguments = arguments
            prepared = self.prepared(entry)
            self.region(prepared, 0, self.mask, None)

    def prepared(self, function: Function) -> Prepared:
        """The function cut into blocks; made once."""
        if function.name not in self._prepared:
            blocks = blocks_of(function)
            self._prepared[function.name] = Prepared(blocks, meeting(blocks), live_at(blocks))
        return self._prepared[function.name]

    def _lay_shared(self) -> int:
        """Places of shared variables; the one of open size comes last."""
        at = 0
        self._shared = {}
        variables = [
            v for v in (*self.module.variables, *(x for f in self.module.functions for x in f.variables)) if v.space == "shared"
        ]
        for variable in sorted(variables, key=lambda v: v.size == 0):
            at = -(-at // max(variable.align, 1)) * max(variable.align, 1)
            self._shared[variable.name] = at
            at += variable.size
        return at + self.dynamic

    def _lay_locals(self, entry: Function) -> int:
        at = 0
        for function in (entry, *(f for f in self.module.functions if not f.entry)):
            for variable in function.variables:
                if variable.space == "local":
                    at = -(-at // max(variable.align, 1)) * max(variable.align, 1)
                    self._locals[variable.name] = at
                    at += variable.size
        return at

    def _lay_constants(self) -> Bytes:
        """Variables of the module in constant and global memory, with their initial values."""
        found: list[tuple[Variable, int]] = []
        at = 0
        for variable in (*self.module.variables, *(x for f in self.module.functions for x in f.variables)):
            if variable.space in ("const", "global"):
                at = -(-at // 16) * 16
                self._constants[variable.name] = at
                found.append((variable, at))
                at += max(variable.size, 1)
        memory = Bytes(1, max(at, 1), np.zeros(self.tape.lanes, dtype=np.int64))
        for variable, place in found:
            width = type_bytes(variable.type)
            for k, value in enumerate(variable.values):
                if isinstance(value, int):
                    raw = (value & ((1 << (8 * width)) - 1)).to_bytes(width, "little")
                    memory.bytes[0, place + k * width : place + (k + 1) * width] = np.frombuffer(raw, dtype=np.uint8)
        return memory

    def fill(self, name: str, raw: bytes) -> None:
        """A variable of the module holds these bytes."""
        if name in self._constants:
            at = self._constants[name]
            self.constant.bytes[0, at : at + len(raw)] = np.frombuffer(raw, dtype=np.uint8)

    # ------------------------------------------------------------ control

    def region(self, prepared: Prepared, start: int, mask: Any, stop: int | None) -> Any:
        """Runs lanes from a block until they reach `stop` or end; the lanes that reached it."""
        pending: dict[int, Any] = {start: mask}
        parked: dict[int, Any] = {}
        reached: Any = np.zeros_like(mask)

        def go(where: int | None, lanes: Any) -> None:
            nonlocal reached
            if where is None or not lanes.any():
                return
            if where == stop:
                reached = reached | lanes
            else:
                pending[where] = pending[where] | lanes if where in pending else lanes

        if start == stop:
            return mask
        while pending or parked:
            if not pending:
                pending, parked = parked, {}
            number = min(pending)
            lanes = pending.pop(number)
            block = prepared.blocks[number]
            self.mask = lanes
            ends = self._block(block)
            self.mask = lanes
            if ends is None:
                if block.barrier and block.next is not None:
                    parked[block.next] = parked[block.next] | lanes if block.next in parked else lanes
                else:
                    go(block.next, lanes)
                continue
            taken, open_lanes = ends
            target = block.targets[0] if block.targets else None
            go(target, lanes & taken & ~open_lanes)
            go(block.next, lanes & ~taken & ~open_lanes)
            if open_lanes.any():
                go(prepared.meets[number], self._both(prepared, block, open_lanes))
        return reached

    def _block(self, block: Block) -> tuple[Any, Any] | None:
        """Runs a block; for a branch the lanes that take it, and those of which nobody knows."""
        for item in block.instructions:
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise Refused(0, "it runs too long to be followed")
            self.line = item.line
            try:
                if item.opcode in ("bra", "ret", "exit", "trap"):
                    return self._branch(item)
                self._guarded(item)
            except Refused as refused:
                if refused.line:
                    raise
                place = item.location.outermost.line if item.location is not None else 0
                raise Refused(place, f"{refused.reason} ({item.name})") from None
        return None

    def _branch(self, item: Instruction) -> tuple[Any, Any]:
        nobody = np.zeros_like(self.mask)
        if item.opcode == "trap" or item.guard is None:
            return np.ones_like(self.mask), nobody
        p = self.value(item.guard, 0)
        assert isinstance(p, Word)
        lanes = unknown(p)
        self.condition = p
        return p.bits != 0, (lanes & self.mask) if lanes is not None else nobody

    def _both(self, prepared: Prepared, block: Block, lanes: Any) -> Any:
        """Both ways of a branch on data, up to where they meet."""
        if self.depth >= DEEPEST:
            location = block.instructions[-1].location if block.instructions else None
            raise Refused(location.outermost.line if location is not None else 0, "how long a loop runs depends on data")
        meet, condition, outer = prepared.meets[block.number], self.condition, self.predicate
        before = dict(self.frame.registers)
        sides: list[dict[str, Held]] = []
        arrived: list[Any] = []
        self.depth += 1
        for way, where in (
            (condition, block.targets[0] if block.targets else None),
            (inverted(self.tape, condition), block.next),
        ):
            self.frame.registers = dict(before)
            self.predicate = way if outer is None else predicate_logic(self.tape, "and", outer, way)
            arrived.append(self.region(prepared, where, lanes, meet) if where is not None else np.zeros_like(lanes))
            sides.append(self.frame.registers)
        self.depth -= 1
        self.predicate = outer
        joined = dict(before)
        needed = prepared.live[meet] if meet is not None else frozenset()
        for name in needed:
            a, b = sides[0].get(name), sides[1].get(name)
            if a is None or b is None:
                some = a if a is not None else b
                if some is not None:
                    joined[name] = some
                continue
            if a is b:
                joined[name] = a
                continue
            # a side that ended before the meeting place leaves nothing there
            choice = Word(0, np.where(arrived[0] & ~arrived[1], np.uint64(1), condition.bits), condition.codes)
            if not (arrived[0] == arrived[1]).all():
                only = arrived[0] ^ arrived[1]
                codes = np.where(only, -1, condition.codes) if condition.codes is not None else None
                choice = Word(0, np.where(only, arrived[0].astype(np.uint64), condition.bits), codes)
            old = before.get(name)
            joined[name] = merged(lanes, chosen(self.tape, choice, a, b), old)
        self.frame.registers = joined
        return arrived[0] | arrived[1]

    def _guarded(self, item: Instruction) -> None:
        if item.guard is None:
            execute(self, item)
            return
        p = self.value(item.guard, 0)
        assert isinstance(p, Word)
        mask, outer = self.mask, self.predicate
        lanes = unknown(p)
        if lanes is not None:
            lanes = lanes & mask
        self.mask = mask & (p.bits != 0) if lanes is None else mask & ((p.bits != 0) | lanes)
        if self.mask.any():
            if lanes is not None and lanes.any():
                self.predicate = p if outer is None else predicate_logic(self.tape, "and", outer, p)
                self.guard = p
                execute(self, item)
                self.guard = None
            else:
                execute(self, item)
        self.mask, self.predicate = mask, outer

    guard: Word | None = None

    # ------------------------------------------------------------ operands

    def value(self, operand: Any, width: int) -> Held:
        """What an operand holds, at least `width` bytes of it."""
        match operand:
            case Register():
                held = self.frame.registers.get(operand.name)
                own = 0 if operand.type == "pred" else type_bytes(operand.type)
                if held is None:
                    held = word(self.tape.lanes, own, 0)
                if operand.negated:
                    assert isinstance(held, Word)
                    return inverted(self.tape, held)
                return held
            case Special():
                return self._special(operand.name, width)
            case Symbol():
                return word(self.tape.lanes, width or 8, self.address(operand.name) + operand.offset)
        value = getattr(operand, "value", None)
        if isinstance(value, int):
            if getattr(operand, "type", "int") == "f64" and width == 4:
                value = struct.unpack("<I", struct.pack("<f", struct.unpack("<d", struct.pack("<Q", value))[0]))[0]
            return word(self.tape.lanes, width, value)
        raise Refused(0, "an operand of this kind is not read")

    def address(self, name: str) -> int:
        """Where a variable lies in its own space."""
        if name in self.outside:
            return self.outside[name]
        if name in self._shared:
            return self._shared[name]
        if name in self._locals:
            return self._locals[name]
        if name in self._constants:
            return CONSTANT + self._constants[name]
        raise Refused(0, f"the address of {name} is not known")

    def _special(self, name: str, width: int) -> Word:
        axis = "xyz".find(name[-1]) if "." in name else -1
        base = name.partition(".")[0]
        values: Any
        if name in self.special:
            values = self.special[name]
        elif base == "%ntid":
            values = np.full(self.tape.lanes, self.block[axis])
        elif base in ("%nctaid",):
            values = np.full(self.tape.lanes, self.grid[axis])
        elif base == "%ctaid":
            values = self.places[:, axis]
        elif name == "%nwarpid":
            values = np.full(self.tape.lanes, -(-self.threads // 32))
        elif name.startswith("%lanemask_"):
            one = np.int64(1) << self.in_warp
            table = {
                "eq": one,
                "lt": one - 1,
                "le": 2 * one - 1,
                "gt": 0xFFFFFFFF & ~(2 * one - 1),
                "ge": 0xFFFFFFFF & ~(one - 1),
            }
            values = table[name.removeprefix("%lanemask_")]
        elif base in ("%clusterid", "%cluster_ctaid") or name == "%cluster_ctarank":
            values = np.zeros(self.tape.lanes, dtype=np.int64)
        elif base in ("%nclusterid", "%cluster_nctaid") or name == "%cluster_nctarank":
            values = np.ones(self.tape.lanes, dtype=np.int64)
        else:
            raise Refused(0, f"{name} is not read")
        return Word(width or 4, np.asarray(values).astype(np.int64).view(np.uint64) & np.uint64((1 << (8 * (width or 4))) - 1))

    def put(self, operand: Any, held: Held) -> None:
        """An instruction's result into its register."""
        if operand is None:
            return
        if not isinstance(operand, Register):
            raise Refused(0, "a result goes to an operand that is no register")
        registers = self.frame.registers
        old = registers.get(operand.name)
        if self.guard is not None:
            held = chosen(self.tape, self.guard, held, old if old is not None else word(self.tape.lanes, held.width, 0))
        registers[operand.name] = merged(self.mask, held, old)

    # ------------------------------------------------------------ memory

    def space(self, modifiers: tuple[str, ...], address: Held) -> str:
        """The state space of an access; generic addresses say it themselves."""
        for name in ("param", "shared", "local", "const", "global"):
            if any(m.partition("::")[0] == name for m in modifiers):
                if name in ("global", "const") and isinstance(address, Word) and address.codes is None:
                    top = address.bits[self.mask]
                    if top.size:
                        return "const" if (top >= np.uint64(CONSTANT)).all() else "global"
                return name
        if isinstance(address, Word) and address.codes is None:
            top = address.bits[self.mask]
            for name, flag in (("const", CONSTANT), ("local", LOCAL), ("shared", SHARED)):
                if top.size and (top >= np.uint64(flag)).all():
                    return name
        return "global"

    def bytes_of(self, space: str) -> tuple[Bytes, int]:
        """The memory of a space, and what its generic addresses have in front."""
        return {"shared": (self.shared, SHARED), "local": (self.local, LOCAL), "const": (self.constant, CONSTANT)}[space]

    def parameters(self) -> Mapping[str, int]:
        """The offsets of the entry's parameters."""
        return {p.name: p.offset for p in self.frame.function.parameters}
