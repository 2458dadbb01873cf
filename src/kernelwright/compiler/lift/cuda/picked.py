"""Memory at positions that depend on data: reads become gathers, stores are refused.

In: a pointer and an index in terms of the tape. Out: the pointer moved there; a read at an offset that no lane knows is an entry
`gather` of the tape.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernelwright.compiler.lift.cuda.allocations import Pointer, Slot, Store, VectorType, size_of
from kernelwright.compiler.lift.cuda.lanes import binary
from kernelwright.compiler.lift.formulas.refusal import Refused
from kernelwright.compiler.lift.formulas.tape import Tape, Value


class PickingStore(Store):
    """A store whose pointers may be moved by data."""

    def moved(self, p: Pointer, i: Value, sign: int, line: int) -> Pointer:
        """The element `i` of what a pointer leads to; an array of arrays gives the inner array."""
        inner = p.inner[1:] if p.inner else ()
        step = size_of(p.type) * math.prod(inner) * sign
        if i.codes is not None:
            if p.memory.kind != "global":
                raise Refused(line, "a position in a shared or local array depends on data")
            return Pointer(p.memory, PickedOffset(self.tape, p.offset, i, step), p.type, inner)
        known = i.known
        return Pointer(p.memory, p.offset + known * step, p.type, inner)

    def read(self, p: Pointer) -> Any:
        """Reads; a position that depends on data becomes a gather."""
        if isinstance(p.offset, PickedOffset):
            return p.offset.gather(self, p)
        return super().read(p)

    def write(self, p: Pointer, value: Any) -> None:
        if isinstance(p.offset, PickedOffset):
            raise Refused(self.line, "a store to a position that depends on data")
        super().write(p, value)


def array_of(slot: Slot, line: int) -> Pointer:
    """Where a variable lies whose address is taken: an array has a place in memory, a number has none."""
    if isinstance(slot.value, Pointer) and slot.value.inner:
        return Pointer(slot.value.memory, slot.value.offset, slot.value.type)
    raise Refused(line, "the address of a variable is not followed")


class Temporary:
    """A value without a place, of which a part is read."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def get(self, store: Store) -> Any:
        return self.value

    def set(self, store: Store, value: Any) -> None:
        raise Refused(store.line, "this cannot be assigned")


class PickedOffset:
    """A byte offset that depends on data: a base and an unknown index times a step."""

    def __init__(self, tape: Tape, base: Any, index: Value, step: int) -> None:
        self.tape, self.base, self.index, self.step = tape, base, index, step

    def __add__(self, more: Any) -> PickedOffset:
        return PickedOffset(self.tape, self.base + more, self.index, self.step)

    def gather(self, store: Store, p: Pointer) -> Any:
        """An entry `gather`: the element at (base + index * step)."""
        memory = p.memory
        if isinstance(p.type, VectorType):
            raise Refused(store.line, "a vector at a position that depends on data")
        if memory.written:
            raise Refused(store.line, "a read of written memory at a position that depends on data")
        size = size_of(memory.type)
        if isinstance(self.base, PickedOffset):
            inner = self.base
            scaled = binary(self.tape, "*", inner.index, Value("i64", inner.step // size))
            base: Any = inner.base
        else:
            scaled, base = None, self.base
        where = binary(self.tape, "*", Value("i64", codes=self.tape.codes(self.index)), Value("i64", self.step // size))
        if scaled is not None:
            where = binary(self.tape, "+", where, scaled)
        known = Value("i64", base // size if isinstance(base, np.ndarray) else int(base) // size)
        where = binary(self.tape, "+", where, known)
        return Value(memory.type, codes=self.tape.emit("gather", memory.type, self.tape.codes(where), info=memory))
