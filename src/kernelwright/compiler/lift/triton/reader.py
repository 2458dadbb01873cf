"""Reading a kernel: TTIR in, the statements of a sketch's kernel out.

`Reader` goes through the operations in order and keeps a value for each result (values.py). Integers that lead to addresses stay
expressions; tiles that are used more than once, or that cost something, get a name. `integers`, `elements` and `tiles` know the
operations; here are memory, control and the choice between them.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import Any

from kernelwright.compiler.lift.access import axes_in, axis, fixed, with_axes
from kernelwright.compiler.lift.conditions import junction, negated
from kernelwright.compiler.lift.launches import View
from kernelwright.compiler.lift.program import Program, has_data
from kernelwright.compiler.lift.triton import combining, elements, integers, loops, tiles
from kernelwright.compiler.lift.triton.ttir import Block, Function, Op, Type
from kernelwright.compiler.lift.values import Data, Ints, Mask, Num, Ptr, Value, joined_shape
from kernelwright.core.dtypes import FLOATS
from kernelwright.sketch import nodes
from kernelwright.sketch.index import bounds, joined, simplify
from kernelwright.sketch.nodes import DType, IndexOp, Int

HEAVY = {"tt.load", "tt.dot", "tt.reduce", "tt.scan", "tt.gather"}
TO_ADDRESS = {
    "arith.addi", "arith.subi", "arith.muli", "arith.divsi", "arith.remsi", "arith.divui", "arith.remui", "arith.extsi", "arith.extui",
    "arith.trunci", "arith.minsi", "arith.maxsi", "arith.select", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape",
    "tt.trans", "arith.shli", "arith.shrsi", "arith.andi",
}  # fmt: skip
IGNORED = {"tt.assert", "tt.print", "gpu.barrier", "llvm.intr.assume", "ttg.barrier"}
_UPDATES = {"fadd": "add", "add": "add", "max": "max", "min": "min", "umax": "max", "umin": "min"}


class Reader:
    """One kernel of one launch."""

    def __init__(self, program: Program, function: Function, arguments: dict[str, Any]) -> None:
        self.program = program
        self.function = function
        self.env: dict[str, Value] = {}
        self.uses: dict[str, int] = {}
        self.outside: set[str] = set()
        self.addresses: set[str] = set()
        self._survey()
        for name, kind in function.arguments:
            self.env[name] = self._parameter(arguments[name], kind)

    def read(self) -> None:
        """The whole kernel, into the program."""
        self._blocks(self.function.blocks[0], {block.label: block for block in self.function.blocks})

    # ---- what is used where

    def _survey(self) -> None:
        made: dict[str, Op] = {}
        at: dict[str, int] = {}
        reached: list[str] = []

        def walk(block: Block) -> None:
            for name, _ in block.arguments:
                at[name] = id(block)
            for op in block.ops:
                for name in (*op.operands, *(n for _, names in op.successors for n in names)):
                    self.uses[name] = self.uses.get(name, 0) + 1
                    if name in at and at[name] != id(block):
                        self.outside.add(name)
                if op.name == "tt.addptr":
                    reached.append(op.operands[1])
                for result in op.results:
                    made[result] = op
                    at[result] = id(block)
                for region in op.regions:
                    for inner in region:
                        walk(inner)

        for block in self.function.blocks:
            walk(block)
        while reached:
            name = reached.pop()
            if name in self.addresses:
                continue
            self.addresses.add(name)
            source = made.get(name)
            if source is not None and source.name in TO_ADDRESS:
                reached.extend(source.operands[1:] if source.name == "arith.select" else source.operands)

    def _parameter(self, value: Any, kind: Type) -> Value:
        if isinstance(value, View):
            return Ptr(value.buffer, Int(value.offset), ())
        if kind.element.startswith("f"):
            return Num(float(value), (), DType.f32)
        if kind.element == "i1":
            return Mask(() if value else (Int(-1),), ())
        return Ints(Int(int(value)), (), int(kind.element[1:]))

    # ---- blocks

    def _blocks(self, block: Block, every: dict[str, Block]) -> None:
        """A function's blocks: straight on, or past an early return."""
        self.ops(block.ops[:-1])
        last = block.ops[-1]
        self.program.line = last.line or self.program.line
        if last.name == "tt.return":
            return
        if last.name == "cf.br":
            ((label, names),) = last.successors
            self._enter(every[label], names)
            self._blocks(every[label], every)
            return
        if last.name != "cf.cond_br":
            raise self.program.refuse(f"a block that ends with {last.name}")
        condition = self.mask(last.operands[0])
        truth = self.program.decided(condition)
        (yes, yes_names), (no, no_names) = last.successors
        if truth is not None:
            label, names = (yes, yes_names) if truth else (no, no_names)
            self._enter(every[label], names)
            self._blocks(every[label], every)
            return
        for label, names, other, holds in ((yes, yes_names, no, True), (no, no_names, yes, False)):
            if [op.name for op in every[other].ops] == ["tt.return"]:
                if condition.rest is not None or any(map(has_data, condition.conditions)):
                    # Nothing is stored, and nothing loaded, where the program has returned.
                    self.program.predicates.append(condition if holds else self._not(condition))
                    self._enter(every[label], names)
                    self._blocks(every[label], every)
                    self.program.predicates.pop()
                    return
                with self.program.when(condition.conditions, holds=holds):
                    self._enter(every[label], names)
                    self._blocks(every[label], every)
                return
        raise self.program.refuse("a return in one branch of several")

    def _enter(self, block: Block, names: Sequence[str]) -> None:
        for (argument, _), name in zip(block.arguments, names, strict=True):
            self.env[argument] = self.env[name]

    def ops(self, ops: Sequence[Op]) -> None:
        """Operations in order."""
        for op in ops:
            self.program.line = op.line or self.program.line
            results = self.op(op)
            for name, value in zip(op.results, results, strict=True):
                self.env[name] = self._named(op, name, value)

    def _named(self, op: Op, name: str, value: Value) -> Value:
        """Tiles that are wanted again get a name, so that nothing is computed twice."""
        hint = op.label or name
        if isinstance(value, Data) and not isinstance(value.node, nodes.Var):
            often = self.uses.get(name, 0) > 1 or name in self.outside
            cheap = isinstance(value.node, nodes.Full | nodes.FromIndex)
            if not cheap and (op.name in HEAVY or often) and (self.uses.get(name, 0) or op.name in HEAVY):
                return self.program.bind(value, hint)
        if isinstance(value, Mask) and value.rest is not None and (self.uses.get(name, 0) > 1 or name in self.outside):
            return Mask(value.conditions, value.shape, self.program.bind(value.rest, hint))
        return value

    def mask(self, name: str) -> Mask:
        """An i1 value as a condition."""
        value = self.env[name]
        if isinstance(value, Mask):
            return value
        data = self.program.as_data(value)
        if data.dtype is not DType.bool:
            data = Data(nodes.Binary("ne", data.node, nodes.Number(0)), data.shape, data.actual, DType.bool)
        return Mask((), value.shape, data)

    # ---- one operation

    def op(self, op: Op) -> list[Value]:
        """The results of an operation."""
        program = self.program
        name = op.name
        if name in IGNORED:
            return []
        if name.startswith("scf."):
            return loops.control(self, op)
        if name == "arith.constant":
            return [self._constant(op)]
        given = [self.env[operand] for operand in op.operands]
        label = op.label or (op.results[0] if op.results else "t")
        match name:
            case "tt.get_program_id":
                return [Ints(program.grid.program("xyz".index(op.text.strip()[0])), ())]
            case "tt.get_num_programs":
                return [Ints(Int(program.grid.size("xyz".index(op.text.strip()[0]))), ())]
            case "tt.make_range":
                start, stop = op.attribute("start"), op.attribute("end")
                return [Ints(simplify(IndexOp("+", axis(0), Int(start))) if stop - start > 1 else Int(start), (stop - start,))]
            case "tt.splat" | "tt.broadcast":
                return [tiles.broadcast(given[0], op.result_types[0].shape)]
            case "tt.expand_dims":
                return [tiles.expanded(program, given[0], op.attribute("axis"))]
            case "tt.reshape" | "tt.unsplat":
                return [tiles.reshaped(program, given[0], op.result_types[0].shape)]
            case "tt.trans":
                found = re.search(r"order = array<i32: ([\d, ]+)>", op.text)
                return [tiles.permuted(program, given[0], [int(k) for k in (found[1] if found else "1, 0").split(",")])]
            case "tt.join":
                return [tiles.join(program, given[0], given[1])]
            case "tt.split":
                return tiles.split(program, given[0], label)
            case "tt.addptr":
                return [self._moved(given[0], given[1], label)]
            case "tt.load":
                return [self._load(op, given)]
            case "tt.store":
                self._store(given)
                return []
            case "tt.atomic_rmw":
                return self._update(op, given)
            case "tt.reduce":
                known = tiles.combiner(op)[0]
                return tiles.reduce(program, op, given, label) if known else combining.reduce(self, op, given, label)
            case "tt.scan":
                known = tiles.combiner(op)[0]
                return tiles.scan(program, op, given) if known else combining.scan(self, op, given, label)
            case "tt.dot":
                return [tiles.dot(program, op, given[0], given[1], given[2])]
            case "tt.gather":
                x, where = program.as_data(given[0]), program.as_data(given[1], DType.i64)
                shape = op.result_types[0].shape
                return [Data(nodes.Take(x.full(), where.full(), op.attribute("axis")), shape, shape, x.dtype)]
            case "tt.bitcast" | "arith.bitcast":
                return [self._bitcast(op, given[0])]
            case "arith.select":
                return [self._select(op, given)]
            case "tt.extern_elementwise":
                return [elements.library(program, op, given)]
            case "tt.clampf":
                return [elements.binary(program, "minimum", elements.binary(program, "maximum", given[0], given[1]), given[2])]
            case "math.fma":
                return [elements.binary(program, "add", elements.binary(program, "mul", given[0], given[1]), given[2])]
            case "arith.cmpi" | "arith.cmpf":
                return [self._compare(op, given)]
        if name in elements.CASTS:
            return [self._cast(op, given[0], label)]
        if name in ("arith.andi", "arith.ori", "arith.xori") and op.result_types[0].element == "i1":
            return [self._logic(name, self.mask(op.operands[0]), self.mask(op.operands[1]))]
        if len(given) == 2 and name.startswith("arith.") and op.result_types[0].element.startswith("i"):
            return [self._integer(op, given[0], given[1], label)]
        if name == "tt.mulhiui":
            return [elements.unsigned_binary(program, "mulhi", given[0], given[1])]
        if name in elements.BINARY:
            return [elements.binary(program, elements.BINARY[name], given[0], given[1])]
        if name in elements.UNARY:
            return [elements.unary(program, elements.UNARY[name], given[0])]
        raise program.refuse(f"{name}, which has no counterpart in a sketch")

    def _constant(self, op: Op) -> Value:
        kind = op.result_types[0]
        text = op.text.strip()
        inner = re.match(r"dense<(.*)>$", text)
        word = inner[1] if inner else text
        if kind.element == "i1":
            return Mask(() if word == "true" else (Int(-1),), kind.shape)
        if kind.element.startswith("i"):
            return Ints(Int(int(word)), kind.shape, int(kind.element[1:]))
        return Num(_float(word, kind.element), kind.shape, elements.dtype_of(self.program, kind))

    # ---- memory

    def _moved(self, pointer: Value, offset: Value, label: str) -> Ptr:
        if not isinstance(pointer, Ptr):
            raise self.program.refuse("an address that does not come from one of the kernel's tensors")
        by = self.program.as_ints(offset, label)
        shape = joined_shape(pointer.shape, by.shape)
        return Ptr(pointer.buffer, simplify(IndexOp("+", pointer.index, by.index)), shape)

    def _load(self, op: Op, given: Sequence[Value]) -> Value:
        pointer = given[0]
        if not isinstance(pointer, Ptr):
            raise self.program.refuse("a load by something that is not a pointer into a tensor")
        mask = self.mask(op.operands[1]) if len(given) > 1 else None
        data = self.program.load(pointer, mask, given[2] if len(given) > 2 else None)
        element = op.types[0].element
        if data.dtype is DType.bool and element == "i8":
            return Data(nodes.Cast(data.node, DType.i8), data.shape, data.actual, DType.i8)
        return data

    def _store(self, given: Sequence[Value]) -> None:
        pointer, value = given[0], given[1]
        if not isinstance(pointer, Ptr):
            raise self.program.refuse("a store by something that is not a pointer into a tensor")
        mask = given[2] if len(given) > 2 else None
        if mask is not None and not isinstance(mask, Mask):
            raise self.program.refuse("a store with a mask that is not a condition")
        self.program.store(pointer, self._as_stored(pointer, value), mask)

    def _as_stored(self, pointer: Ptr, value: Value) -> Value:
        """Signless bytes as what the tensor holds."""
        target = self.program.views.buffers[pointer.buffer].dtype
        if isinstance(value, Data) and {value.dtype, target} == {DType.i8, DType.u8}:
            return Data(nodes.Bitcast(value.node, target), value.shape, value.actual, target)
        return value

    def _update(self, op: Op, given: Sequence[Value]) -> list[Value]:
        kind = op.text.strip().split(",")[0].strip()
        if kind not in _UPDATES:
            raise self.program.refuse(f"an atomic {kind}")
        if any(self.uses.get(name, 0) for name in op.results):
            raise self.program.refuse(f"the old value that an atomic {kind} gives")
        pointer, value = given[0], given[1]
        mask = self.mask(op.operands[2]) if len(given) > 2 else None
        if not isinstance(pointer, Ptr):
            raise self.program.refuse("an atomic update by something that is not a pointer into a tensor")
        self.program.store(pointer, value, mask, _UPDATES[kind])
        return [Num(0.0, kind.shape, DType.f32) for kind in op.result_types]

    def _bitcast(self, op: Op, value: Value) -> Value:
        kind = op.result_types[0]
        if isinstance(value, Ptr):
            own = self.program.views.buffers[value.buffer].dtype
            if (own is DType.bool and kind.element == "i8") or own.size == elements.dtype_of(self.program, kind).size == 1:
                return value
            raise self.program.refuse(f"a tensor of {own.value} is looked at as {kind.element}")
        target = elements.dtype_of(self.program, kind)
        data = self.program.as_data(value)
        return Data(nodes.Bitcast(data.node, target), data.shape, data.actual, target)

    # ---- integers and conditions

    def _integer(self, op: Op, a: Value, b: Value, label: str) -> Value:
        """Arithmetic of integers: as an expression where it leads to an address or has no data in it, otherwise as a tile."""
        program = self.program
        wanted = op.results[0] in self.addresses
        both = isinstance(a, Ints) and isinstance(b, Ints)
        if both or (wanted and all(isinstance(x, Ints | Data) for x in (a, b))):
            found = integers.combine(program, op.name, program.as_ints(a, label), program.as_ints(b, label), label)
            if found is not None:
                return found
        if op.name in ("arith.divsi", "arith.remsi"):
            return self._truncated(op.name, a, b)
        unsigned = {"arith.divui": "floordiv", "arith.remui": "mod", "arith.shrui": "shr", "arith.maxui": "maximum",
                    "arith.minui": "minimum"}  # fmt: skip
        if op.name in unsigned:
            return elements.unsigned_binary(program, unsigned[op.name], a, b)
        if op.name not in elements.BINARY:
            raise program.refuse(f"{op.name}, which has no counterpart in a sketch")
        if both and op.name in ("arith.addi", "arith.subi", "arith.muli"):
            # Out of the type's range: made in i64, then cut off as the device does.
            dtype = elements.dtype_of(program, op.result_types[0])
            x, y = (program.as_data(side, DType.i64) for side in (a, b))
            wide = elements.binary(program, elements.BINARY[op.name], x, y)
            return Data(elements.wrapped(wide.node, dtype), wide.shape, wide.actual, dtype)
        return elements.binary(program, elements.BINARY[op.name], a, b)

    def _truncated(self, name: str, a: Value, b: Value) -> Data:
        """Division of integers as C does it, on tiles: towards zero."""
        program = self.program
        divisor = program.as_data(b)
        x = program.bind(program.as_data(a), "dividend")
        magnitude = elements.unary(program, "abs", x)
        size = elements.unary(program, "abs", divisor)
        part = elements.binary(program, "floordiv" if name == "arith.divsi" else "mod", magnitude, size)
        negative: nodes.Tile = nodes.Binary("lt", x.node, nodes.Number(0))
        if name == "arith.divsi":
            negative = nodes.Binary("ne", negative, nodes.Binary("lt", divisor.node, nodes.Number(0)))
        node = nodes.Where(negative, nodes.Unary("neg", part.node), part.node)
        return Data(node, part.shape, part.actual, part.dtype)

    def _compare(self, op: Op, given: Sequence[Value]) -> Value:
        a, b = given
        predicate = op.text.split(",")[0].strip().split(" ")[0]
        if isinstance(a, Mask) or isinstance(b, Mask):
            return self._logic(
                "arith.xori" if predicate == "ne" else "same", self.mask(op.operands[0]), self.mask(op.operands[1])
            )
        if op.name == "arith.cmpi" and isinstance(a, Ints) and isinstance(b, Ints):
            found = integers.compare(self.program, predicate, a, b)
            if found is not None:
                return found
        if (
            op.name == "arith.cmpi"
            and isinstance(a, Data | Ints)
            and isinstance(b, Data | Ints)
            and any(
                isinstance(x, Data) and x.dtype is not DType.bool and name in self.addresses
                for x, name in zip(given, op.operands, strict=True)
            )
        ):
            found = integers.compare(self.program, predicate, self.program.as_ints(a, "at"), self.program.as_ints(b, "at"))
            if found is not None:
                return found
        return elements.compare(self.program, op, a, b)

    def _logic(self, name: str, a: Mask, b: Mask) -> Mask:
        return junction(self.program, {"arith.andi": "and", "arith.ori": "or", "arith.xori": "ne", "same": "eq"}[name], a, b)

    def _not(self, mask: Mask) -> Mask:
        return negated(self.program, mask)

    def _select(self, op: Op, given: Sequence[Value]) -> Value:
        program = self.program
        condition = self.mask(op.operands[0])
        a, b = given[1], given[2]
        truth = program.decided(condition)
        shape = joined_shape(op.result_types[0].shape, condition.shape, a.shape, b.shape)
        if truth is not None:
            return tiles.broadcast(a if truth else b, shape)
        if a == b:
            return a
        if isinstance(a, Ptr) or isinstance(b, Ptr):
            raise program.refuse("a choice between two pointers")
        if isinstance(a, Mask) or isinstance(b, Mask):
            a, b = program.as_data(a), program.as_data(b)
        chosen = program.as_data(condition)
        left, right, _, actual, dtype = elements.pair(program, a, b)
        actual = joined_shape(actual, chosen.actual)
        if isinstance(left, nodes.Number) and isinstance(right, nodes.Number):
            left = nodes.Full((Int(1),) * len(shape), left.value, dtype)
        data = Data(nodes.Where(chosen.node, left, right), shape, actual, dtype)
        if dtype is DType.bool:
            return Mask((), shape, data)
        if op.results[0] in self.addresses and isinstance(a, Ints) and isinstance(b, Ints):
            found = program.as_ints(data, op.label or "at")
            every = with_axes(program.ranges, shape)
            program.loops[found.index.name] = joined([bounds(a.index, every), bounds(b.index, every)])  # type: ignore[union-attr]
            return found
        return data

    def _cast(self, op: Op, value: Value, label: str) -> Value:
        if (
            isinstance(value, Data)
            and op.results[0] in self.addresses
            and value.dtype not in FLOATS
            and value.dtype is not DType.bool
        ) and op.result_types[0].element != "i1":
            found = self.program.as_ints(value, label)
            return Ints(found.index, found.shape, int(op.result_types[0].element[1:]))
        return elements.cast(self.program, op, value)


def _float(word: str, element: str) -> float:
    """A float literal; bit patterns stand for what decimal digits cannot say."""
    if not word.startswith("0x"):
        return float(word)
    bits = int(word, 16)
    if element == "f64":
        return float(struct.unpack("d", struct.pack("Q", bits))[0])
    if element == "f16":
        return float(struct.unpack("e", struct.pack("H", bits))[0])
    if element == "bf16":
        bits <<= 16
    return float(struct.unpack("f", struct.pack("I", bits))[0])


__all__ = ["Reader", "axes_in", "fixed"]
