"""Triton's own intermediate form (TTIR) as plain data: text in, a `Function` of operations with regions out.

Triton's front end has by then resolved Python: helper functions are inlined, constants folded, types decided. What is left is a small
set of operations in static single assignment, each with the place in the source it came from.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Type:
    """A value's type: extents (empty for a scalar), element type (`f32`, `i1`), and whether it is a pointer to that."""

    shape: tuple[int, ...]
    element: str
    pointer: bool = False


@dataclass
class Op:
    """One operation. `text` is what stands between its name and its types: predicates and attributes are read from there."""

    name: str
    results: list[str]
    operands: list[str]
    types: list[Type]
    result_types: list[Type]
    text: str
    line: int
    label: str = ""
    regions: list[list[Block]] = field(default_factory=list)
    successors: list[tuple[str, list[str]]] = field(default_factory=list)

    def attribute(self, name: str) -> int:
        """An integer attribute."""
        found = re.search(rf"\b{name} = (-?\d+)", self.text)
        if found is None:
            raise KeyError(name)
        return int(found[1])


@dataclass
class Block:
    """Operations in order, with the block's arguments (name, type)."""

    label: str
    arguments: list[tuple[str, Type]]
    ops: list[Op]


@dataclass
class Function:
    """A kernel: its parameters that are not constants, and its blocks."""

    name: str
    arguments: list[tuple[str, Type]]
    blocks: list[Block]


_TYPE = re.compile(r"(tensor<(?:\d+x)*(?:!tt\.ptr<[^<>]*>|[^<>]+)>|!tt\.ptr<[^<>]*>|[a-z]+\d+\w*|index|none)")
_VALUE = re.compile(r"%[\w$.\-]+(?:#\d+)?")
_LOC = re.compile(r"\s*loc\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\)")
_HEAD = re.compile(r"^(?:(%[\w$.\-]+)(?::(\d+))? = )?(?:\"([\w.]+)\"|([\w.]+))\s*(.*)$")


def parse(text: str, path: str) -> Function:
    """The one function of a module whose calls have been inlined; lines are those of the file at `path`."""
    return _Parser(text, path).function()


def type_of(text: str) -> Type:
    """A type from its text."""
    text = text.strip()
    if text.startswith("tensor<"):
        inner = text[len("tensor<") : -1]
        extents = re.match(r"(?:\d+x)*", inner)
        dims = extents[0] if extents else ""
        element = inner[len(dims) :]
        pointed = re.match(r"!tt\.ptr<(\w+)", element)
        return Type(tuple(map(int, dims.split("x")[:-1])), pointed[1] if pointed else element, pointed is not None)
    pointed = re.match(r"!tt\.ptr<(\w+)", text)
    return Type((), pointed[1] if pointed else text, pointed is not None)


def types_in(text: str) -> list[Type]:
    """All types in a piece of text, in order."""
    return [type_of(found) for found in _TYPE.findall(text)]


class _Parser:
    def __init__(self, text: str, path: str) -> None:
        self.path = path
        self.locations = dict(re.findall(r"^#(loc\d*) = loc\((.*)\)$", text, re.MULTILINE))
        self.lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#loc")]
        self.at = 0
        self._known: dict[str, tuple[int, str]] = {}

    # ---- places

    def place(self, reference: str) -> tuple[int, str]:
        """The line of the user's file, and the name of the variable that was assigned there."""
        if reference in self._known:
            return self._known[reference]
        self._known[reference] = (0, "")
        body = self.locations.get(reference, reference)
        found = (0, "")
        if site := re.match(r"^callsite\(#(loc\d*) at #(loc\d*)\)$", body):
            inner, outer = self.place(site[1]), self.place(site[2])
            found = inner if inner[0] else outer
        elif named := re.match(r'^"([^"]*)"\(#(loc\d*)\)$', body):
            line, _ = self.place(named[2])
            found = (line, named[1] if line else "")
        elif plain := re.match(r'^"([^"]*)":(\d+):\d+', body):
            found = (int(plain[2]) if plain[1] == self.path else 0, "")
        self._known[reference] = found
        return found

    def _located(self, line: str) -> tuple[str, tuple[int, str]]:
        tail = re.search(r"loc\(#(loc\d*)\)$", line)
        place = self.place(tail[1]) if tail else (0, "")
        return _LOC.sub("", line), place

    # ---- structure

    def function(self) -> Function:
        while not self.lines[self.at].startswith("tt.func"):
            self.at += 1
        line = _LOC.sub("", self.lines[self.at])
        self.at += 1
        name = re.search(r"@\"?([\w$.\-]+)", line)
        header = line[line.index("(") + 1 :]
        arguments = [(m[1], type_of(m[2])) for m in re.finditer(r"(%[\w$.\-]+): (!tt\.ptr<[^<>]*>|[^\s,){]+)", header)]
        return Function(name[1] if name else "kernel", arguments, self._blocks())

    def _blocks(self) -> list[Block]:
        """Blocks up to the closing brace, which is consumed by the caller's line handling."""
        blocks = [Block("", [], [])]
        while True:
            raw = self.lines[self.at]
            if raw.startswith("}"):
                return blocks
            self.at += 1
            if raw.startswith("^"):
                line = _LOC.sub("", raw)
                line = line.split("//")[0].strip()
                label = re.match(r"\^([\w.]+)", line)
                arguments = [(m[1], type_of(m[2])) for m in re.finditer(r"(%[\w$.\-]+): ((?:tensor<[^:]*>)|[^\s,)]+)", line)]
                block = Block(label[1] if label else "", arguments, [])
                if len(blocks) == 1 and not blocks[0].ops and not blocks[0].arguments:
                    blocks[0] = block
                else:
                    blocks.append(block)
                continue
            blocks[-1].ops.append(self._op(raw))

    def _op(self, raw: str) -> Op:
        line, (number, label) = self._located(raw)
        head = _HEAD.match(line)
        if head is None:
            raise ValueError(f"not an operation: {raw}")
        count = int(head[2] or 1)
        results = [] if head[1] is None else [head[1]] if not head[2] else [f"{head[1]}#{k}" for k in range(count)]
        name, rest = head[3] or head[4], head[5]
        op = Op(name, results, [], [], [], rest, number, label)
        if rest.endswith("{"):
            self._with_regions(op, rest)
            return op
        if name in ("cf.br", "cf.cond_br"):
            op.operands = _VALUE.findall(rest)[:1] if name == "cf.cond_br" else []
            for target in re.finditer(r"\^([\w.]+)(?:\(([^:)]*)[^)]*\))?", rest):
                op.successors.append((target[1], _VALUE.findall(target[2] or "")))
            return op
        if name == "arith.constant":
            value, _, kind = (
                rest.rpartition(" : ") if " : " in rest else (rest, "", "i1")
            )  # true and false have no type behind them
            op.text, op.result_types = value, types_in(kind)
            return op
        left, _, right = rest.rpartition(" : ") if " : " in rest else (rest, "", "")
        if "attributes" in right or "}" in right:  # an attribute dictionary without types behind it
            left, right = rest, ""
        op.text, op.operands = left, _VALUE.findall(left)
        self._types(op, right)
        return op

    def _types(self, op: Op, right: str) -> None:
        for arrow in (" -> ", " to "):
            if arrow in right:
                before, _, after = right.rpartition(arrow)
                op.types, op.result_types = types_in(before), types_in(after)
                return
        op.types = types_in(right)
        op.result_types = op.types[-1:] if op.results else []

    def _with_regions(self, op: Op, rest: str) -> None:
        """scf.for, scf.if, scf.while, tt.reduce, tt.scan and the like."""
        op.operands = _VALUE.findall(rest)
        opening = rest
        while True:
            op.regions.append(self._blocks())
            line, place = self._located(self.lines[self.at])
            self.at += 1
            if place[0] and not op.line:
                op.line, op.label = place
            closing = line[1:].strip()
            if closing.endswith("{"):
                opening += " " + closing
                continue
            break
        if closing.startswith(")"):  # }) : (types) -> types
            before, _, after = closing[1:].partition(" -> ")
            op.types, op.result_types = types_in(before), types_in(after)
        elif "->" in opening:
            tail = opening.rpartition("->")[2]
            op.result_types = types_in(tail.rpartition(" : ")[0] if op.name == "scf.for" and " : " in tail else tail)
        op.text = opening
