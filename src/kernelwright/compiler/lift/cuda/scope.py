"""Names and types of a running function: scopes, template arguments, C++ type names."""

from __future__ import annotations

import re
from typing import Any

from kernelwright.compiler.lift.cuda.allocations import PointerType, VectorType
from kernelwright.compiler.lift.cuda.read import Node, Program
from kernelwright.compiler.lift.formulas.refusal import Refused

SCALARS = {
    "float": "f32", "double": "f64", "int": "i32", "unsigned": "u32", "unsigned int": "u32", "uint": "u32", "long": "i64",
    "long long": "i64", "unsigned long": "u64", "unsigned long long": "u64", "long int": "i64", "long long int": "i64",
    "unsigned long long int": "u64", "size_t": "u64", "int64_t": "i64", "int32_t": "i32", "uint32_t": "u32",
    "uint64_t": "u64", "int16_t": "i16", "uint16_t": "u16", "int8_t": "i8", "uint8_t": "u8", "char": "i8",
    "signed char": "i8", "unsigned char": "u8", "short": "i16", "unsigned short": "u16", "bool": "bool", "half": "f16",
    "__half": "f16", "Half": "f16", "__nv_bfloat16": "bf16", "nv_bfloat16": "bf16", "BFloat16": "bf16", "ptrdiff_t": "i64",
    "ssize_t": "i64", "signed": "i32", "signed int": "i32", "uintptr_t": "u64", "long unsigned int": "u64", "opmath_t": "f32",
    "uint8": "u8", "clock_t": "i64",
}  # fmt: skip
VECTORS = {
    f"{name}{count}": VectorType(base, count)
    for name, base in (("float", "f32"), ("double", "f64"), ("int", "i32"), ("uint", "u32"))
    for count in (1, 2, 3, 4)
}


class Scope:
    """The names of one block of statements; the outermost of a function also has its template arguments."""

    __slots__ = ("names", "outer")

    def __init__(self, outer: Scope | None) -> None:
        self.outer = outer
        self.names: dict[str, Any] = {}

    def find(self, name: str) -> Any:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None


def named_type(text: str, scope: Scope | None, program: Program, line: int) -> Any:
    """A type by its text, without declarators."""
    words = re.sub(r"\b(const|static|constexpr|struct|typename|inline|register|__shared__|extern|mutable)\b", " ", text)
    plain = " ".join(words.split())
    if plain in SCALARS:
        return SCALARS[plain]
    if plain in VECTORS:
        return VECTORS[plain]
    if plain in ("auto", "void"):
        return plain
    if re.match(r"(\w+::)*(Generic)?(Packed)?TensorAccessor(32|64)?\s*<", plain):
        return "auto"  # what it holds comes with it
    found = scope.find(plain) if scope is not None else None
    if isinstance(found, str | VectorType | PointerType):
        return found
    if plain.endswith("*"):
        return PointerType(named_type(plain[:-1], scope, program, line))
    if plain.endswith("&"):
        return named_type(plain[:-1], scope, program, line)
    if plain in program.aliases:
        return named_type(program.aliases[plain].text, scope, program, line)
    tail = plain.rpartition("::")[2]
    if tail != plain and "<" not in plain:
        return named_type(tail, scope, program, line)
    raise Refused(line, f"the type {plain} is not read")


def declared(node: Node, base: Any) -> tuple[str, Any, list[Node], bool]:
    """A declarator: the name, the type with its pointers, the extents of an array, whether it is a reference."""
    extents: list[Node] = []
    reference = False
    type = base
    while True:
        match node.kind:
            case "pointer_declarator" | "abstract_pointer_declarator":
                type = PointerType(type)
            case "reference_declarator" | "abstract_reference_declarator":
                reference = True
            case "array_declarator" | "abstract_array_declarator":
                size = node.get("size")
                extents.insert(0, size if size is not None else Node("none", "", node.line, [], {}))
            case "init_declarator" | "parenthesized_declarator":
                pass
            case _:
                return node.text, type, extents, reference
        inner = node.get("declarator")
        if inner is None:
            inner = next((c for c in node.children if c.kind == "identifier" or c.kind.endswith("declarator")), None)
        if inner is None:
            return "", type, extents, reference
        node = inner
