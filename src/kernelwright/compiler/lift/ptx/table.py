"""The table of instructions, and what their readers share: operands of a type, packed operations, values that must be known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernelwright.compiler.lift.formulas.refusal import Refused
from kernelwright.compiler.lift.ptx import arithmetic as on
from kernelwright.compiler.lift.ptx.words import Held, Word, full, packed, split
from kernelwright.gpu.ptx import Instruction, Vector, type_bytes

Do = Callable[[Any, Instruction], None]
OPCODES: dict[str, Do] = {}


def execute(m: Any, item: Instruction) -> None:
    """One instruction for the lanes of the mask; one that is not in the table is refused by its name."""
    do = OPCODES.get(item.opcode)
    if do is None:
        raise Refused(0, "this instruction is not read")
    do(m, item)


def opcode(*names: str) -> Callable[[Do], Do]:
    """Registers what an opcode does."""

    def put(do: Do) -> Do:
        for name in names:
            OPCODES[name] = do
        return do

    return put


def type_of(item: Instruction) -> str:
    return item.types[0] if item.types else "b32" if not item.has("pred") else "pred"


def operands(m: Any, item: Instruction, width: int, first: int = 1) -> list[Held]:
    return [m.value(o, width) for o in item.operands[first:]]


def each_half(type: str, do: Callable[[str, list[Held]], Held], args: list[Held]) -> Held:
    """A packed operation half by half."""
    if type not in on.PAIRS:
        return do(type, args)
    halves = [split(a, (2, 2)) for a in args]
    if any(h is None for h in halves):
        raise Refused(0, f"an operand does not hold two numbers of type {on.PAIRS[type]}")
    made = [do(on.PAIRS[type], [h[k] for h in halves if h is not None]) for k in (0, 1)]
    return packed(tuple(w for w in made if isinstance(w, Word)))


def known(m: Any, operand: Any, type: str) -> Any:
    held = m.value(operand, type_bytes(type))
    lanes = on.unknown(held)
    if lanes is not None and (lanes & m.mask).any():
        raise Refused(0, "an operand that depends on data is not read here")
    return on.whole(held, type)


def elements(operand: Any) -> tuple[Any, ...]:
    return operand.elements if isinstance(operand, Vector) else (operand,)


def narrowed(held: Held, width: int) -> Held:
    if held.width <= width:
        return held
    return _low_part(held, width)


def _low_part(held: Held, width: int) -> Held:
    cut = split(held, (width, held.width - width))
    if cut is None:
        if isinstance(held, Word):  # an integer of a narrower tensor in a wider register
            return Word(width, held.bits & full(width), held.codes)
        raise Refused(0, "a part of a value is stored")
    return cut[0]
