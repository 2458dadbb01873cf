"""Reading a tile program: the statements of one `T.Kernel` in, those of a sketch's kernel out.

Blocks are parallel loops of the sketch (`grid`), serial and pipelined loops are its ranges; a parallel loop is no loop but an axis of all
tiles inside it (`elements`). A branch over loop variables is a loop that runs once or not at all; one that depends on elements or data
becomes the condition of the stores inside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernelwright.compiler.backends.tilelang.expressions import tirx
from kernelwright.compiler.backends.tilelang.interpreter import PARALLEL
from kernelwright.compiler.lift.access import DATA, axes_in, axis, folded
from kernelwright.compiler.lift.conditions import negated
from kernelwright.compiler.lift.launches import Launch, View
from kernelwright.compiler.lift.program import Program
from kernelwright.compiler.lift.tilelang.record import TileKernel, line_of
from kernelwright.compiler.lift.tilelang.tileops import TileOps
from kernelwright.compiler.lift.values import Ints, Mask, Num, Value
from kernelwright.sketch import nodes
from kernelwright.sketch.index import bounds, constant, simplify, symbols
from kernelwright.sketch.nodes import DType, Index, IndexOp, Int, Sym

VECTORIZED = 2
"""A loop whose iterations are one instruction: parallel, too (`tirx.ForKind`)."""


class Reader(TileOps):
    """One kernel of one launch."""

    def __init__(self, program: Program, launch: Launch) -> None:
        super().__init__(program)
        kernel = launch.kernel
        assert isinstance(kernel, TileKernel)
        self.kernel = kernel
        for key, name in kernel.tensors.items():
            view = launch.arguments[name]
            assert isinstance(view, View)
            self.views[key] = view
        for key, number in kernel.values.items():
            self.env[key] = self._given(number)
        for number, var in enumerate(kernel.blocks):
            self.env[hash(var)] = Ints(program.grid.program(number), ())

    @staticmethod
    def _given(number: Any) -> Value:
        return Num(number, (), DType.f32) if isinstance(number, float) else Ints(Int(int(number)), ())

    def write_kernel(self) -> None:
        """The whole kernel, into the program."""
        self.statement(self.kernel.body)
        self.program.out[:0] = self.begin

    # ---- statements

    def statement(self, node: Any) -> None:
        """Any statement."""
        kind = type(node).__name__
        if kind != "SeqStmt":
            self.program.line = line_of(node) or self.program.line
        makers: dict[str, Callable[[Any], None]] = {
            "SeqStmt": self._sequence, "For": self._for, "SBlockRealize": self._realize, "BufferStore": self._store, "Bind": self._bind,
            "IfThenElse": self._if, "AttrStmt": self._inner, "Evaluate": self._evaluate, "AllocBuffer": self._allocation,
            "AssertStmt": self._inner, "DeclBuffer": self._inner, "LetStmt": self._let,
        }  # fmt: skip
        if kind not in makers:
            raise self.program.refuse("a while loop" if kind == "While" else f"{kind}, which has no counterpart in a sketch")
        makers[kind](node)

    def _sequence(self, node: Any) -> None:
        for each in node:
            self.statement(each)

    def _inner(self, node: Any) -> None:
        if getattr(node, "body", None) is not None:
            self.statement(node.body)

    def _realize(self, node: Any) -> None:
        for buffer in node.block.alloc_buffers:
            self._declare(buffer)
        self.statement(node.block.body)

    def _allocation(self, node: Any) -> None:
        self._declare(node.buffer)
        self._inner(node)

    def _declare(self, buffer: Any) -> None:
        if "barrier" in str(buffer.scope()) or "descriptor" in str(buffer.scope()):
            return
        self.allocate(buffer, tuple(self.number(extent) for extent in buffer.shape), self.dtype(buffer.dtype))

    def _bind(self, node: Any) -> None:
        value = node.value
        if type(value).__name__ == "Call" and str(value.op.name).endswith("launch_thread_idx"):
            return
        self.env[hash(node.var)] = self.named(self.value(value), str(node.var.name))

    def _let(self, node: Any) -> None:
        self._bind(node)
        self.statement(node.body)

    def _evaluate(self, node: Any) -> None:
        if type(node.value).__name__ == "Call":
            self.operation(node.value)

    def _store(self, node: Any) -> None:
        self.put(node.buffer, [self.index(each) for each in node.indices], self.value(node.value))

    # ---- branches

    def _if(self, node: Any) -> None:
        program = self.program
        condition = self.mask(node.condition)
        line = program.line
        truth = program.decided(condition)
        if truth is not None:
            if truth or node.else_case is not None:
                self.statement(node.then_case if truth else node.else_case)
            return
        sides = [(node.then_case, True), *([(node.else_case, False)] if node.else_case is not None else [])]
        still = condition.rest is None and not any(axes_in(c) or _data(c) for c in condition.conditions)
        if still:
            for body, holds in sides:
                with program.when(condition.conditions, holds=holds), self.scope():
                    self.statement(body)
            return
        kept = self.named(condition, "taken")
        assert isinstance(kept, Mask)
        for body, holds in sides:
            program.line = line
            self.masks.append(kept if holds else negated(program, kept))
            self.statement(body)
            self.masks.pop()

    # ---- loops

    def _for(self, node: Any) -> None:
        if int(node.kind) in (PARALLEL, VECTORIZED):
            self._parallel(node)
            return
        program = self.program
        start, extent = self.index(node.min), self.index(node.extent)
        if any(axes_in(each) or _data(each) for each in (start, extent)):
            raise program.refuse("a loop whose bounds come from data")
        if getattr(node, "step", None) is not None and self.number(node.step) != 1:
            raise program.refuse("a loop with a step of its own")
        trips = folded(extent, program.ranges)
        count = constant(trips)
        if count is not None and count <= 1:
            if count == 1:
                self.env[hash(node.loop_var)] = Ints(start, ())
                self.statement(node.body)
            return
        name = program.fresh(str(node.loop_var.name))
        stop = simplify(IndexOp("+", start, trips))
        low, high = bounds(start, program.ranges)[0], bounds(stop, program.ranges)[1]
        program.loops[name] = (low, high - 1 if high is not None else None)
        self.env[hash(node.loop_var)] = Ints(Sym(name), ())
        line, before = program.line, len(program.assumed)
        program.assumed += [
            simplify(IndexOp("-", IndexOp("-", stop, Int(1)), Sym(name))),
            simplify(IndexOp("-", Sym(name), start)),
        ]
        with program.block() as inner, self.scope():
            self.statement(node.body)
        del program.assumed[before:]
        program.out.append(nodes.For(name, "range", start, stop, Int(1), tuple(inner), line=line))

    def _parallel(self, node: Any) -> None:
        """A nest of parallel loops: axes of all tiles inside it."""
        nest = [node]
        while type(nest[-1].body).__name__ == "For" and int(nest[-1].body.kind) in (PARALLEL, VECTORIZED):
            nest.append(nest[-1].body)
        extents = [self.number(each.extent) for each in nest]
        starts = [self.index(each.min) for each in nest]
        outer = self.lanes
        used: set[int] = set()
        tirx.stmt_functor.post_order_visit(nest[-1].body, lambda inner: used.update(_buffers(inner)))
        with self.own_copies(tuple(extents), used):
            self.lanes = (*outer, *extents)
            for number, (each, start, extent) in enumerate(zip(nest, starts, extents, strict=True), start=len(outer)):
                at: Index = simplify(IndexOp("+", axis(number), start)) if extent > 1 else start
                self.env[hash(each.loop_var)] = Ints(at, self.lanes)
            self.statement(nest[-1].body)
        self.lanes = outer


def _data(index: Index) -> bool:
    return any(name.startswith(DATA) for name in symbols(index))


def _buffers(node: Any) -> list[int]:
    return [hash(node.buffer.data)] if type(node).__name__ in ("BufferLoad", "BufferStore") else []
