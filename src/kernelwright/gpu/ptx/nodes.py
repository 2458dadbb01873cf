"""The nouns of a parsed module. All are frozen; names are as in the text, but for what nested scopes declare (made unique)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelwright.gpu.ptx.types import TYPE_BYTES


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the source that was compiled; `inlined_at` is the call that brought it here."""

    file: str
    line: int
    column: int = 0
    inlined_at: Location | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def outermost(self) -> Location:
        """The place in the kernel itself, after all inlining is undone."""
        return self if self.inlined_at is None else self.inlined_at.outermost


@dataclass(frozen=True, slots=True)
class Register:
    """A virtual register or a predicate; `negated` for `!%p` as an operand."""

    name: str
    type: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Special:
    """A special register, with its component: `%tid.x`, `%laneid`, `%clock64`."""

    name: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant. Integers are as written; a float is given by the bits of `type` ("f32" or "f64"), as PTX writes it."""

    value: int
    type: str = "int"


@dataclass(frozen=True, slots=True)
class Symbol:
    """The name of a variable, a function or a label; `offset` for `name+4` as a value."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Address:
    """`[base + offset]`; an absolute address has no base. `coordinates` are those of `[map, {x, y}]` (tensor copies)."""

    base: Register | Symbol | Special | None
    offset: int = 0
    coordinates: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Vector:
    """`{a, b, …}`; an element that is thrown away (`_`) is None. A parenthesised list of a call is a Vector too."""

    elements: tuple[Operand | None, ...]


Operand = Register | Special | Immediate | Symbol | Address | Vector


@dataclass(frozen=True, slots=True)
class Label:
    """A target of branches."""

    name: str


@dataclass(frozen=True)
class Instruction:
    """`@guard opcode.modifier… operands`. `%p|%q` as a first operand is two operands with `pair` set. A `_` operand is None."""

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand | None, ...]
    line: int
    guard: Register | None = None
    location: Location | None = None
    pair: bool = False

    @functools.cached_property
    def types(self) -> tuple[str, ...]:
        """The modifiers that are types, in order: destination first where there are two."""
        return tuple(m for m in self.modifiers if m in TYPE_BYTES)

    @property
    def name(self) -> str:
        """Opcode and modifiers, as written."""
        return ".".join((self.opcode, *self.modifiers))

    def has(self, modifier: str) -> bool:
        """Whether a modifier is there."""
        return modifier in self.modifiers


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable in a state space; `values` holds its initialiser: integers of `type`'s size, or names whose address is meant."""

    name: str
    space: str
    type: str
    count: int
    align: int
    values: tuple[int | Symbol, ...] = ()
    external: bool = False

    @property
    def size(self) -> int:
        """Bytes; 0 for `name[]`, whose size the launch decides."""
        return TYPE_BYTES[self.type] * self.count


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter, with its place in the parameter block of a launch. `pointer` is the state space of a `.ptr`, if said."""

    name: str
    type: str
    size: int
    align: int
    offset: int
    pointer: str = ""


@dataclass(frozen=True)
class Function:
    """An entry (a kernel) or a device function. A declaration without a body (`vprintf`) has an empty one."""

    name: str
    entry: bool
    parameters: tuple[Parameter, ...]
    results: tuple[Parameter, ...]
    body: tuple[Instruction | Label, ...]
    registers: Mapping[str, str]
    variables: tuple[Variable, ...]
    directives: Mapping[str, tuple[int, ...]]
    tables: Mapping[str, tuple[str, ...]]
    line: int
    declared_only: bool = False

    @functools.cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        """The body without labels."""
        return tuple(item for item in self.body if isinstance(item, Instruction))


@dataclass(frozen=True)
class Module:
    """A whole PTX text."""

    version: str
    target: str
    variables: tuple[Variable, ...]
    functions: tuple[Function, ...]
    files: Mapping[int, str] = field(default_factory=dict)

    @property
    def entries(self) -> tuple[Function, ...]:
        """The kernels."""
        return tuple(f for f in self.functions if f.entry)

    def function(self, name: str) -> Function:
        """A function by name; the one with a body where it was also declared."""
        found = [f for f in self.functions if f.name == name]
        if not found:
            raise KeyError(name)
        return next((f for f in found if not f.declared_only), found[0])
