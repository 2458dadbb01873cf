"""Memory of a block: tensors, shared arrays, arrays of one thread, variables; and the places in them that can be assigned.

All memory holds codes (tape.py). A tensor's element that the block has not written is an entry `load`; whatever is written stays
known by its address, so that a later read finds the value itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelwright.compiler.lift.cuda.lanes import chosen, converted
from kernelwright.compiler.lift.formulas.memory import Memory
from kernelwright.compiler.lift.formulas.refusal import Refused
from kernelwright.compiler.lift.formulas.tape import FLOATS, SIZES, Tape, Value


@dataclass(frozen=True)
class VectorType:
    """float4 and its kin."""

    base: str
    count: int

    @property
    def size(self) -> int:
        return SIZES[self.base] * self.count


@dataclass(frozen=True)
class PointerType:
    """A pointer to elements of a type."""

    to: Any


def size_of(type: Any) -> int:
    """sizeof."""
    if isinstance(type, VectorType):
        return type.size
    return 8 if isinstance(type, PointerType) else SIZES[type]


@dataclass
class Vector:
    """A value of a vector type."""

    type: VectorType
    parts: list[Value]


@dataclass
class Pointer:
    """Where a lane points: memory, byte offset (a number or one for each lane), element type, and the extents of inner arrays."""

    memory: Memory
    offset: Any
    type: Any
    inner: tuple[int, ...] = ()

    @property
    def step(self) -> int:
        """Bytes from one element (or inner array) to the next."""
        return int(size_of(self.type) * int(np.prod(self.inner, dtype=np.int64)) if self.inner else size_of(self.type))


class Store:
    """Reads and writes of memory under the state of the machine (`mask`, `predicate`)."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.mask: Any = np.ones(tape.lanes, dtype=bool)
        self.predicate: Value | None = None
        self.line = 0

    def full(self) -> bool:
        return bool(self.mask.all())

    def merged(self, old: Any, new: Any) -> Any:
        """What a variable holds after an assignment by the lanes that are active."""
        if isinstance(new, Vector):
            if not isinstance(old, Vector):
                return new
            return Vector(new.type, [self.merged(a, b) for a, b in zip(old.parts, new.parts, strict=True)])
        if isinstance(new, Pointer):
            if not isinstance(old, Pointer) or self.full():
                return new
            if old.memory is not new.memory:
                raise Refused(self.line, "threads point into different arrays here")
            return Pointer(new.memory, np.where(self.mask, new.offset, old.offset), new.type, new.inner)
        if old is None or not isinstance(new, Value):
            return new
        if self.predicate is not None:
            new = chosen(self.tape, self.predicate, new, old)
        return new if self.full() else chosen(self.tape, Value("bool", self.mask), new, old)

    # ------------------------------------------------------------ arrays and tensors

    def read(self, p: Pointer) -> Any:
        """The element behind a pointer."""
        if isinstance(p.type, VectorType):
            size = SIZES[p.type.base]
            return Vector(p.type, [self.read(Pointer(p.memory, p.offset + k * size, p.type.base)) for k in range(p.type.count)])
        at = self._elements(p)
        memory = p.memory
        if memory.kind == "global":
            return self._load(memory, at, p.type)
        codes = memory.codes[at] if memory.kind == "shared" else memory.codes[at, self.tape.lane]
        if (codes[self.mask] < 0).any():
            if not (codes[self.mask] >= 0).any() and memory.kind == "local":
                return Value(p.type, 0)  # read of garbage that a later mask drops
            codes = np.where(codes < 0, self.tape.codes(Value(p.type, 0)), codes)
        known = self.tape.constant(codes, self.mask)
        if known is not None:
            return Value(p.type, known)
        return Value(self._type(codes, p.type), codes=codes)

    def _type(self, codes: Any, wanted: str) -> str:
        entry = int(codes[self.mask][0] // self.tape.lanes)
        made = self.tape.types[entry]
        return "f32" if wanted == "f64" and made == "f32" else wanted

    def _elements(self, p: Pointer) -> Any:
        """Positions of lanes, as elements of a tensor or as slots of an array; lanes that are off point to the start."""
        size = SIZES[p.type] if isinstance(p.type, str) else 1
        if p.memory.kind == "global":
            if p.type != p.memory.type and SIZES[p.memory.type] != size:
                raise Refused(self.line, f"a tensor of {p.memory.type} is read as {p.type}")
            size = SIZES[p.memory.type]
        offset = p.offset if isinstance(p.offset, np.ndarray) else np.full(self.tape.lanes, p.offset, dtype=np.int64)
        at = np.where(self.mask, offset, 0) // size if p.memory.kind != "shared" else np.where(self.mask, offset, 0)
        limit = p.memory.size
        used = at[self.mask]
        if used.size and (used.min() < 0 or used.max() >= limit):
            raise Refused(self.line, f"an access to {p.memory.name} lies outside of it (element {int(used.max())} of {limit})")
        return at

    def _load(self, memory: Memory, at: Any, type: str) -> Value:
        codes = self.tape.emit("load", memory.type, info=(memory, at))
        if memory.written:
            found = [memory.written.get(a, -1) for a in at.tolist()]
            codes = np.where(np.asarray(found) >= 0, found, codes)
        value = Value(memory.type, codes=codes)
        return value if type == memory.type else converted(self.tape, value, type)

    def write(self, p: Pointer, value: Any) -> None:
        """Active lanes write."""
        if isinstance(p.type, VectorType):
            size = SIZES[p.type.base]
            for k in range(p.type.count):
                self.write(Pointer(p.memory, p.offset + k * size, p.type.base), value.parts[k])
            return
        if not self.mask.any():
            return
        memory = p.memory
        type = memory.type if memory.kind == "global" else p.type
        value = converted(self.tape, value, type)
        if self.predicate is not None:
            value = chosen(self.tape, self.predicate, value, self.read(p))
        at = self._elements(p)
        codes = self.tape.codes(value)
        if memory.kind == "global":
            memory.written.update(zip(at[self.mask].tolist(), codes[self.mask].tolist(), strict=True))
        elif memory.kind == "shared":
            memory.codes[at[self.mask]] = codes[self.mask]
        else:
            memory.codes[at[self.mask], self.tape.lane[self.mask]] = codes[self.mask]

    # ------------------------------------------------------------ arrays of a kernel

    def shared(self, name: str, size: int) -> Memory:
        """An array of the block, `size` bytes."""
        return Memory("shared", name, size=size, codes=np.full(size, -1, dtype=np.int64))

    def local(self, name: str, count: int) -> Memory:
        """An array of each thread."""
        return Memory("local", name, size=count, codes=np.full((count, self.tape.lanes), -1, dtype=np.int64))


@dataclass
class Accessor:
    """A tensor accessor of torch: `a[i][j]`, `a.size(0)`."""

    pointer: Pointer
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


class Slot:
    """A variable. Lanes that were off when it was declared never see it, so their values need no keeping."""

    __slots__ = ("born", "predicate", "type", "value")

    def __init__(self, store: Store, type: Any, value: Any) -> None:
        self.born, self.predicate, self.type, self.value = store.mask, store.predicate, type, value

    def get(self, store: Store) -> Any:
        if self.value is None:
            self.value = Value(self.type if isinstance(self.type, str) else "i32", 0)
        return self.value

    def set(self, store: Store, value: Any) -> None:
        value = fitted(store.tape, value, self.type)
        whole = store.mask is self.born and store.predicate is self.predicate
        self.value = value if whole or self.value is None else store.merged(self.value, value)


@dataclass
class Element:
    """The element that a pointer leads to."""

    pointer: Pointer

    def get(self, store: Store) -> Any:
        return store.read(self.pointer)

    def set(self, store: Store, value: Any) -> None:
        store.write(self.pointer, value)


@dataclass
class Part:
    """`.x` of a vector that lies somewhere."""

    of: Any
    at: int

    def get(self, store: Store) -> Any:
        return self.of.get(store).parts[self.at]

    def set(self, store: Store, value: Any) -> None:
        whole = self.of.get(store)
        parts = list(whole.parts)
        parts[self.at] = converted(store.tape, value, whole.type.base)
        self.of.set(store, Vector(whole.type, parts))


def fitted(tape: Tape, value: Any, type: Any) -> Any:
    """A value as a variable's declared type holds it."""
    if isinstance(value, Value) and isinstance(type, str) and type not in ("auto", "void"):
        return converted(tape, value, type)
    if (
        isinstance(value, Pointer)
        and isinstance(type, PointerType)
        and type.to != "void"
        and type.to != value.type
        and not value.inner
    ):
        return Pointer(value.memory, value.offset, type.to)
    return value


__all__ = [
    "FLOATS",
    "Accessor",
    "Element",
    "Part",
    "Pointer",
    "PointerType",
    "Slot",
    "Store",
    "Vector",
    "VectorType",
    "fitted",
    "size_of",
]
