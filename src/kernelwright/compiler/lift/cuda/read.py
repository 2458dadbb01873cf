"""CUDA and C++ source → functions as light trees.

In: the author's text with his -D flags. The real preprocessor (g++ -E, without the headers) resolves macros and conditions, a real
parser (tree-sitter) reads the rest. Out: every function by name, its template parameters, and the constants of the file. Lines
are those of the author's text.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from kernelwright.compiler.lift.formulas.refusal import Refused


class Node:
    """One node of the tree: its kind, named children, the children that have a role, its text and line."""

    __slots__ = ("children", "fields", "kind", "line", "text")

    def __init__(self, kind: str, text: str, line: int, children: list[Node], fields: dict[str, Node]) -> None:
        self.kind, self.text, self.line, self.children, self.fields = kind, text, line, children, fields

    def __getitem__(self, name: str) -> Node:
        return self.fields[name]

    def get(self, name: str) -> Node | None:
        """The child of this role, if there is one."""
        return self.fields.get(name)

    def find(self, *kinds: str) -> Node | None:
        """The first child of one of these kinds."""
        return next((child for child in self.children if child.kind in kinds), None)


@dataclass
class Function:
    """A function definition. `templates` are (name, kind of parameter, default), `parameters` are declarations."""

    name: str
    templates: list[tuple[str, str, Node | None]]
    parameters: list[Node]
    result: Node | None
    body: Node
    line: int
    is_kernel: bool = False


@dataclass
class Program:
    """What a source declares: functions by name, constants and types of the file, `extern "C"` included."""

    functions: dict[str, list[Function]] = field(default_factory=dict)
    constants: list[Node] = field(default_factory=list)
    aliases: dict[str, Node] = field(default_factory=dict)


@cache
def parser() -> Any:
    """The parser of CUDA C++."""
    try:
        import tree_sitter
        import tree_sitter_cuda
    except ImportError:
        raise Refused(0, "reading CUDA-C needs tree-sitter: pip install 'kernelwright[lift]'") from None
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cuda.language()))


def preprocessed(source: str, flags: Sequence[str] = ()) -> tuple[str, list[int]]:
    """The text after the preprocessor, and for each of its lines the author's line."""
    text = re.sub(r"^[ \t]*#[ \t]*(include|pragma)[^\n]*(\\\n[^\n]*)*$", "", source, flags=re.MULTILINE)
    command = ["g++", "-E", "-x", "c++", "-std=c++17", "-w", "-D__CUDACC__", "-D__CUDA_ARCH__=800", *flags, "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise Refused(0, f"the preprocessor does not read the source: {done.stderr.strip().splitlines()[0][:200]}")
    lines: list[str] = []
    places: list[int] = []
    place = 1
    for line in done.stdout.splitlines():
        mark = re.match(r'#\s*(?:line\s+)?(\d+)\s+"([^"]*)"', line)
        if mark:
            place = int(mark.group(1))
            continue
        lines.append(line)
        places.append(place)
        place += 1
    return "\n".join(lines), places


def read(source: str, flags: Sequence[str] = ()) -> Program:
    """All functions of a source."""
    text, places = preprocessed(source, flags)
    text = re.sub(r"__launch_bounds__\s*\([^()]*\)", "", text)
    text = re.sub(r"\b(__forceinline__|__noinline__|__restrict__|__restrict|volatile)\b", "", text)
    text = re.sub(r"\b(__align__|alignas)\s*\((?:[^()]|\([^()]*\))*\)", "", text)
    raw = text.encode()
    tree = parser().parse(raw)
    program = Program()
    _collect(_light(tree.root_node, places), program, [])
    return program


def _light(node: Any, places: list[int]) -> Node:
    row = node.start_point[0]
    children: list[Node] = []
    fields: dict[str, Node] = {}
    cursor = node.walk()
    if cursor.goto_first_child():
        while True:
            child = cursor.node
            role = cursor.field_name
            if child.is_named and child.type != "comment":
                light = _light(child, places)
                children.append(light)
                if role and role not in fields:
                    fields[role] = light
            elif role and role not in fields:
                fields[role] = Node(child.type, child.text.decode(), row, [], {})
            if not cursor.goto_next_sibling():
                break
    line = places[row] if row < len(places) else 0
    return Node(node.type, node.text.decode(), line, children, fields)


def _collect(node: Node, program: Program, templates: list[tuple[str, str, Node | None]]) -> None:
    for child in node.children:
        match child.kind:
            case "template_declaration":
                _collect(child, program, _template_parameters(child["parameters"]))
            case "function_definition":
                _function(child, program, templates)
            case "namespace_definition" | "linkage_specification" | "declaration_list":
                _collect(child, program, templates)
            case "declaration":
                program.constants.append(child)
            case "alias_declaration":
                program.aliases[child["name"].text] = child["type"]
            case "type_definition":
                program.aliases[child["declarator"].text] = child["type"]
            case "ERROR":
                _collect(child, program, templates)


def _template_parameters(node: Node) -> list[tuple[str, str, Node | None]]:
    found: list[tuple[str, str, Node | None]] = []
    for child in node.children:
        kind = "type" if child.kind in ("type_parameter_declaration", "optional_type_parameter_declaration") else "value"
        if child.kind == "type_parameter_declaration":
            found.append((child.children[-1].text if child.children else "", kind, None))
        elif child.kind == "optional_type_parameter_declaration":
            found.append((child["name"].text, kind, child.get("default_type")))
        elif child.get("declarator") is not None:
            found.append((child["declarator"].text, kind, child.get("default_value")))
    return found


def _function(node: Node, program: Program, templates: list[tuple[str, str, Node | None]]) -> None:
    declarator = node.get("declarator")
    while declarator is not None and declarator.kind in ("pointer_declarator", "reference_declarator"):
        declarator = declarator.get("declarator") or (declarator.children[-1] if declarator.children else None)
    body = node.get("body")
    if declarator is None or declarator.kind != "function_declarator" or body is None:
        return
    name = declarator["declarator"].text.split("::")[-1]
    parameters = [
        p for p in declarator["parameters"].children if p.kind in ("parameter_declaration", "optional_parameter_declaration")
    ]
    made = Function(name, templates, parameters, node.get("type"), body, node.line, "__global__" in node.text.partition("{")[0])
    program.functions.setdefault(name, []).append(made)
