"""Calls, put in place: a kernel becomes one flat list of instructions.

Variables in `.param` space that carry arguments and results become registers, one for each offset at which they are accessed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kernelwright.core.errors import PtxError
from kernelwright.gpu.ptx import (
    TYPE_BYTES,
    Address,
    Function,
    Instruction,
    Label,
    Module,
    Operand,
    Register,
    Symbol,
    Variable,
    Vector,
)

SYSTEM_CALLS = {"vprintf", "__assertfail", "malloc", "free"}
_MOST_INSTRUCTIONS = 400_000


@dataclass
class FlatKernel:
    """A kernel without calls of PTX functions."""

    function: Function
    body: list[Instruction | Label] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    tables: dict[str, tuple[str, ...]] = field(default_factory=dict)


def flatten(module: Module, entry: Function, name: str) -> FlatKernel:
    """The entry with all that it calls in place; PtxError for recursion and calls by pointer."""
    flat = FlatKernel(entry)
    _Inliner(module, flat, name).put(entry, "", {}, ())
    return flat


class _Inliner:
    def __init__(self, module: Module, flat: FlatKernel, name: str) -> None:
        self.module, self.flat, self.name = module, flat, name
        self.copies = 0

    def put(self, function: Function, suffix: str, aliases: dict[str, str], stack: tuple[str, ...]) -> None:
        """Append a function's body, its names made unique by the suffix, its parameters replaced by the caller's."""
        flat = self.flat
        stack = (*stack, function.name)
        flat.registers.update((f"{n}{suffix}", kind) for n, kind in function.registers.items())
        params = {p.name for p in (*function.parameters, *function.results)} if suffix else set()
        for variable in function.variables:
            if variable.space == "param":
                params.add(variable.name)
            else:  # not recursive: one place is enough for all copies
                flat.variables[f"{variable.name}@{function.name}"] = replace(variable, name=f"{variable.name}@{function.name}")
        own = {v.name for v in function.variables if v.space != "param"}
        labels = {item.name for item in function.body if isinstance(item, Label)}
        flat.tables.update((f"{n}{suffix}", tuple(f"{t}{suffix}" for t in targets)) for n, targets in function.tables.items())

        def symbol(name: str) -> str:
            if name in params:
                return aliases.get(name, f"{name}{suffix}")
            if name in own:
                return f"{name}@{function.name}"
            return f"{name}{suffix}" if name in labels or name in function.tables else name

        end = f"$end{suffix}"
        for item in function.body:
            if isinstance(item, Label):
                flat.body.append(Label(f"{item.name}{suffix}"))
                continue
            found = _rename(item, suffix, symbol)
            if item.opcode in ("ld", "st") and item.modifiers and item.modifiers[0].startswith("param"):
                address = item.operands[1 if item.opcode == "ld" else 0]
                if isinstance(address, Address) and isinstance(address.base, Symbol) and address.base.name in params:
                    self._parameter_moves(found)
                    continue
            if item.opcode == "call":
                self._call(found, stack)
            elif item.opcode == "ret" and suffix:
                flat.body.append(replace(found, opcode="bra", operands=(Symbol(end),), modifiers=("uni",)))
            else:
                flat.body.append(found)
        if suffix:
            flat.body.append(Label(end))
        if len(flat.body) > _MOST_INSTRUCTIONS:
            raise PtxError(f"{function.name} is too large with all that it calls in place", path=self.name)

    def _call(self, call: Instruction, stack: tuple[str, ...]) -> None:
        groups = [o for o in call.operands if isinstance(o, Vector)]
        target = next((o for o in call.operands if isinstance(o, Symbol)), None)
        if target is None:
            raise PtxError("call by pointer is not known", path=self.name, line=call.line)
        if target.name in SYSTEM_CALLS:
            self.flat.body.append(self._system_call(call, target, groups))
            return
        if target.name in stack:
            raise PtxError(f"recursion ({target.name}) is not known", path=self.name, line=call.line)
        try:
            callee = self.module.function(target.name)
        except KeyError:
            callee = None
        if callee is None or callee.declared_only:
            raise PtxError(f"the function {target.name} has no body here", path=self.name, line=call.line)
        if call.guard is not None:
            raise PtxError("a call with a guard is not known", path=self.name, line=call.line)
        arguments = groups[-1] if callee.parameters else Vector(())
        results = groups[0] if callee.results else Vector(())
        aliases: dict[str, str] = {}
        for formal, actual in [
            *zip(callee.parameters, arguments.elements, strict=False),
            *zip(callee.results, results.elements, strict=False),
        ]:
            if not isinstance(actual, Symbol):
                raise PtxError("an argument of a call that is not a .param variable", path=self.name, line=call.line)
            aliases[formal.name] = actual.name
        self.copies += 1
        self.put(callee, f"#{self.copies}", aliases, stack)

    def _system_call(self, call: Instruction, target: Symbol, groups: list[Vector]) -> Instruction:
        """What the runtime answers: arguments and result as registers."""
        has_result = target.name in ("vprintf", "malloc")
        arguments = groups[-1].elements if groups else ()
        operands: list[Operand | None] = []
        if has_result:
            name = groups[0].elements[0]
            assert isinstance(name, Symbol)
            operands.append(self._register(name.name, 0, 4 if target.name == "vprintf" else 8))
        operands.append(target)
        for i, argument in enumerate(arguments):
            assert isinstance(argument, Symbol)
            operands.append(self._register(argument.name, 0, 4 if target.name == "__assertfail" and i == 2 else 8))
        return replace(call, operands=tuple(operands))

    def _register(self, variable: str, offset: int, size: int) -> Register:
        name = f"{variable}@{offset}.{size}"
        kind = {1: "b16", 2: "b16", 4: "b32", 8: "b64"}[size]
        self.flat.registers[name] = kind
        return Register(name, kind)

    def _parameter_moves(self, item: Instruction) -> None:
        """A load or store of a parameter of a call: one move for each element."""
        size = TYPE_BYTES[item.types[0]]
        store = item.opcode == "st"
        address, value = (item.operands[0], item.operands[1]) if store else (item.operands[1], item.operands[0])
        assert isinstance(address, Address)
        assert isinstance(address.base, Symbol)
        elements = value.elements if isinstance(value, Vector) else (value,)
        for i, element in enumerate(elements):
            if element is None:
                continue
            slot = self._register(address.base.name, address.offset + i * size, size)
            kind = slot.type
            if isinstance(element, Register) and TYPE_BYTES[element.type] * 8 != int(kind[1:]):
                # a byte or a short in a wider register: a conversion does both directions
                signed = item.types[0][0] == "s"
                narrow = f"{'s' if signed else 'u'}{min(size, TYPE_BYTES[element.type]) * 8}"
                wide = f"u{TYPE_BYTES[element.type] * 8}"
                modifiers = (narrow, wide) if store else (wide if not signed else f"s{wide[1:]}", narrow)
                move = replace(item, opcode="cvt", modifiers=modifiers, operands=(slot, element) if store else (element, slot))
            else:
                operands: tuple[Operand | None, ...] = (slot, element) if store else (element, slot)
                move = replace(item, opcode="mov", modifiers=(kind,), operands=operands)
            self.flat.body.append(move)


def _rename(item: Instruction, suffix: str, symbol: Callable[[str], str]) -> Instruction:
    def operand(o: Operand | None) -> Operand | None:
        if isinstance(o, Register):
            return replace(o, name=o.name + suffix) if suffix else o
        if isinstance(o, Symbol):
            return replace(o, name=symbol(o.name))
        if isinstance(o, Vector):
            return Vector(tuple(operand(e) for e in o.elements))
        if isinstance(o, Address):
            base = operand(o.base)
            coordinates = tuple(c for c in (operand(c) for c in o.coordinates) if c is not None)
            assert base is None or isinstance(base, Register | Symbol) or not isinstance(base, Vector | Address)
            return replace(o, base=base, coordinates=coordinates)  # type: ignore[arg-type]
        return o

    operands = tuple(operand(o) for o in item.operands)
    guard = replace(item.guard, name=item.guard.name + suffix) if item.guard and suffix else item.guard
    return replace(item, operands=operands, guard=guard)
