"""The body of a function: statements by scope first, then names resolved, then instructions.

Inline assembly opens scopes (`{ .reg .pred p; WAIT: … bra WAIT; }`) and repeats the same names in each copy: what a nested
scope declares is renamed, so that the function that comes out is flat.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kernelwright.gpu.ptx.lex import BEGIN_ASM, END_ASM
from kernelwright.gpu.ptx.nodes import (
    Address,
    Function,
    Immediate,
    Instruction,
    Label,
    Location,
    Operand,
    Register,
    Special,
    Symbol,
    Variable,
    Vector,
)
from kernelwright.gpu.ptx.stream import Stream, number
from kernelwright.gpu.ptx.types import SPECIALS, TYPE_BYTES
from kernelwright.gpu.ptx.variables import SPACES, variables

Files = dict[int, str]


@dataclass
class _Scope:
    """Names that a pair of braces declares, each with what it is called in the flat function."""

    outer: _Scope | None
    names: dict[str, str] = field(default_factory=dict)

    def find(self, name: str) -> str:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return name


@dataclass
class _Statement:
    """The tokens [start, end) of an instruction, with its scope and position."""

    start: int
    end: int
    scope: _Scope
    location: Location | None


def parse_body(s: Stream, shell: Function, files: Files) -> Function:
    """The function with everything between its braces."""
    return _Body(s, shell, files).read()


class _Body:
    def __init__(self, s: Stream, shell: Function, files: Files) -> None:
        self.s, self.shell, self.files = s, shell, files
        self.registers: dict[str, str] = {}
        self.variables: list[Variable] = []
        self.tables: dict[str, tuple[str, ...]] = {}
        self.items: list[_Statement | Label] = []
        self.scopes = 0
        self.location: Location | None = None
        self.locations: dict[Location, Location] = {}

    def read(self) -> Function:
        self.s.expect("{")
        self._statements(_Scope(None))
        after = self.s.at
        body = tuple(item if isinstance(item, Label) else self._instruction(item) for item in self.items)
        self.s.at = after
        return replace(self.shell, body=body, registers=self.registers, variables=tuple(self.variables), tables=self.tables)

    def _declare(self, scope: _Scope, name: str) -> str:
        scope.names[name] = unique = name if scope.outer is None else f"{name}${self.scopes}"
        return unique

    def _statements(self, scope: _Scope) -> None:
        """All statements up to the closing brace. Labels and registers are declared on the way; uses are resolved later."""
        s = self.s
        words, lines = s.words, s.lines
        assembly: Location | None = None
        in_assembly = False
        while True:
            word = s.next()
            if word == "}":
                return
            if word == "{":
                self.scopes += 1
                self._statements(_Scope(scope))
            elif word == ";":
                continue
            elif word == BEGIN_ASM:
                assembly, in_assembly = self.location, True
            elif word == END_ASM:
                self.location, in_assembly = assembly, False
            elif word == ".loc":
                position = self._location()
                if not in_assembly:
                    self.location = position
            elif word == ".reg":
                self._declare_registers(scope)
            elif word in SPACES:
                for variable in variables(s, word):
                    self.variables.append(replace(variable, name=self._declare(scope, variable.name)))
            elif word in (".pragma", ".maxnreg", ".minnreg"):
                s.skip_to(";")
            elif s.at < len(words) and words[s.at] == ":" and word[0] not in ".@":
                s.at += 1
                self._label(word, scope)
            elif word[0] == ".":
                raise s.error(f"'{word}' is not known inside a function")
            else:
                start = s.at - 1
                at = s.at
                while words[at] != ";":
                    if words[at] in (BEGIN_ASM, END_ASM) or at + 1 >= len(words):
                        raise s.error(f"'{word}' is not ended by a semicolon", lines[start])
                    at += 1
                s.at = at + 1
                self.items.append(_Statement(start, at, scope, self.location))

    def _label(self, name: str, scope: _Scope) -> None:
        s = self.s
        if s.peek() in (".branchtargets", ".calltargets"):
            s.next()
            targets = []
            while not s.take(";"):
                word = s.next()
                if word != ",":
                    targets.append(scope.find(word))
            self.tables[self._declare(scope, name)] = tuple(targets)
        elif s.peek() == ".callprototype":
            s.skip_to(";")
        else:
            self.items.append(Label(self._declare(scope, name)))

    def _declare_registers(self, scope: _Scope) -> None:
        s = self.s
        kind = s.next()[1:]
        if kind in ("v2", "v4"):
            raise s.error("vector registers are not known")
        if kind not in TYPE_BYTES:
            raise s.error(f"'.{kind}' is not a type of PTX")
        while True:
            name = s.next()
            if s.take("<"):
                count = int(s.next())
                s.expect(">")
                if scope.outer is None:
                    self.registers.update((f"{name}{i}", kind) for i in range(count))
                else:
                    self.registers.update((self._declare(scope, f"{name}{i}"), kind) for i in range(count))
            else:
                self.registers[self._declare(scope, name)] = kind
            if not s.take(","):
                break
        s.expect(";")

    def _location(self) -> Location | None:
        """`.loc file line column[, function_name label[+n], inlined_at file line column]`; line 0 means the compiler's own."""
        s = self.s
        found = self._position()
        inlined: Location | None = None
        while s.take(","):
            word = s.next()
            if word == "function_name":
                s.next()
                if s.take("+"):
                    s.next()
            elif word == "inlined_at":
                inlined = self._position()
        if found is None:
            return self.location
        if inlined is not None:
            # The chain was seen when the caller's own position was named: look it up rather than lose its outer calls.
            found = replace(found, inlined_at=self.locations.get(inlined, inlined))
        self.locations[replace(found, inlined_at=None)] = found
        return found

    def _position(self) -> Location | None:
        s = self.s
        file, line, column = int(s.next()), int(s.next()), int(s.next())
        while not s.done and s.peek() in ("is_stmt", "prologue_end"):
            s.next()
        return Location(self.files.get(file, f"file {file}"), line, column) if line else None

    def _instruction(self, statement: _Statement) -> Instruction:
        s = self.s
        s.at = statement.start
        scope, end = statement.scope, statement.end
        guard: Register | None = None
        if s.take("@"):
            negated = s.take("!")
            guard = self._register(s.next(), scope, negated)
        line = s.lines[s.at]
        opcode, *modifiers = s.next().split(".")
        operands: list[Operand | None] = []
        pair = False
        while s.at < end:
            operands.append(self._operand(scope))
            if s.at < end and s.words[s.at] == "|":
                s.at += 1
                pair = True
                operands.append(self._operand(scope))
            if s.at < end and not s.take(","):
                raise s.error(f"'{s.peek()}' after an operand of {'.'.join((opcode, *modifiers))}")
        return Instruction(opcode, tuple(modifiers), tuple(operands), line, guard, statement.location, pair)

    def _register(self, name: str, scope: _Scope, negated: bool = False) -> Register:
        unique = scope.find(name)
        kind = self.registers.get(unique)
        if kind is None:
            raise self.s.error(f"'{name}' is not a register that was declared")
        return Register(unique, kind, negated)

    def _operand(self, scope: _Scope) -> Operand | None:
        s = self.s
        word = s.next()
        first = word[0]
        if first == "%" or first.isalpha() or first in "_$":
            return self._name(word, scope)
        if first.isdigit():
            return number(word)
        if word == "-":
            value = number(s.next())
            if value.type != "int":
                raise s.error("a negative float is written by its bits")
            return replace(value, value=-value.value)
        if word == "!":
            return self._register(s.next(), scope, True)
        if word == "[":
            return self._address(scope)
        if word in ("{", "("):
            closing = "}" if word == "{" else ")"
            elements: list[Operand | None] = []
            while not s.take(closing):
                elements.append(self._operand(scope))
                if s.peek() != closing:
                    s.expect(",")
            return Vector(tuple(elements))
        raise s.error(f"'{word}' is not an operand")

    def _name(self, word: str, scope: _Scope) -> Operand | None:
        s = self.s
        if word == "_":
            return None
        if word == "WARP_SZ":
            return Immediate(32)
        unique = scope.find(word)
        kind = self.registers.get(unique)
        if kind is not None:
            return Register(unique, kind)
        if word[0] == "%":
            if word.split(".")[0] not in SPECIALS:
                raise s.error(f"'{word}' is neither a register that was declared nor a special one")
            return Special(word)
        offset = 0
        if s.words[s.at] in ("+", "-"):
            offset = self._offset()
        return Symbol(unique, offset)

    def _offset(self) -> int:
        s = self.s
        total = 0
        while s.words[s.at] in ("+", "-"):
            sign = 1 if s.next() == "+" else -1
            if s.take("-"):
                sign = -sign
            total += sign * number(s.next()).value
        return total

    def _address(self, scope: _Scope) -> Address:
        s = self.s
        base: Register | Symbol | Special | None = None
        offset = 0
        if s.peek()[0].isdigit():
            offset = number(s.next()).value
        else:
            name = self._name(s.next(), scope)
            if isinstance(name, Symbol):
                base, offset = Symbol(name.name), name.offset
            elif isinstance(name, Register | Special):
                base = name
                offset = self._offset()
            else:
                raise s.error("an address needs a base")
        coordinates: tuple[Operand, ...] = ()
        while s.take(","):
            found = self._operand(scope)
            coordinates += tuple(e for e in found.elements if e is not None) if isinstance(found, Vector) else ()
            if found is not None and not isinstance(found, Vector):
                coordinates += (found,)
        s.expect("]")
        return Address(base, offset, coordinates)
