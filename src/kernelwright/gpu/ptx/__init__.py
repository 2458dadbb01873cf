"""PTX as data: the text that NVIDIA's, Triton's and TileLang's compilers write in, a frozen, typed module out.

Nothing here executes anything: the machine (`kernelwright.gpu`) and the symbolic lifter read the same module.

    module = parse(text)
    for entry in module.entries:
        for item in entry.body: ...      # Instruction or Label, in the order of the text

1. `lex` cuts the text into tokens with their lines; comments go, but the marks of inline assembly stay (the `.loc` lines
   between them count the lines of the assembly, not of the source: the position before the mark holds).
2. `parse` reads directives, variables and functions; nested scopes are dissolved by renaming what they declare.
3. `nodes` are the nouns: Module, Function, Parameter, Variable, Instruction, operands, Location.

`parse` refuses what is not PTX, by line. Which instructions are *known* is not its question: an Instruction carries its opcode
and modifiers as written.
"""

from kernelwright.gpu.ptx.nodes import (
    Address,
    Function,
    Immediate,
    Instruction,
    Label,
    Location,
    Module,
    Operand,
    Parameter,
    Register,
    Special,
    Symbol,
    Variable,
    Vector,
)
from kernelwright.gpu.ptx.parse import parse
from kernelwright.gpu.ptx.types import TYPE_BYTES, type_bytes

__all__ = [
    "TYPE_BYTES",
    "Address",
    "Function",
    "Immediate",
    "Instruction",
    "Label",
    "Location",
    "Module",
    "Operand",
    "Parameter",
    "Register",
    "Special",
    "Symbol",
    "Variable",
    "Vector",
    "parse",
    "type_bytes",
]
