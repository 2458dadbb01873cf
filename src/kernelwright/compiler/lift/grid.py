"""Program numbers: what a kernel computes from its position in the grid, and the parallel loops that come of it.

Kernels fold several coordinates into one program number and take them apart again (`pid // n`, `pid % n`, grouped orders, batch and
head in one). Since the grid is concrete, each such scalar is a table over the grid; a scalar whose values are 0, s, 2s … becomes a
name of its own. When all that a kernel uses of a program number are such names, and together they go through every combination
exactly once, then they are the loops (in whatever order the GPU would have gone through them).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from math import prod
from typing import Any

import numpy as np

from kernelwright.sketch import nodes
from kernelwright.sketch.index import Interval, polynomial, simplify, substitute, symbols
from kernelwright.sketch.index.exhaustive import evaluate_all
from kernelwright.sketch.nodes import Index, IndexOp, Int, Sym

MOST_PROGRAMS = 1 << 20
PROGRAM = ("pid_x", "pid_y", "pid_z")


@dataclass(frozen=True)
class Let:
    """A scalar by name: `definition` over program numbers and earlier names, its value for each program, and how many it has."""

    name: str
    definition: Index
    table: Any
    count: int
    programs: frozenset[str]


class Grid:
    """The grid of one launch."""

    def __init__(self, extents: Sequence[int]) -> None:
        self.sizes = (*extents, 1, 1, 1)[:3]
        self.extents = {name: extent for name, extent in zip(PROGRAM, [*extents, 1, 1, 1], strict=False) if extent > 1}
        self.lets: dict[str, Let] = {}
        self._tables: dict[str, Any] = {}
        for position, (name, extent) in enumerate(self.extents.items()):
            shape = [1] * len(self.extents)
            shape[position] = extent
            self._tables[name] = np.arange(extent, dtype=np.int64).reshape(shape)

    def program(self, number: int) -> Index:
        """The program number along an axis of the grid."""
        name = PROGRAM[number]
        return Sym(name) if name in self.extents else Int(0)

    def size(self, number: int) -> int:
        """How many programs there are along an axis of the grid."""
        return self.sizes[number]

    def ranges(self) -> dict[str, Interval]:
        """The ranges of program numbers and of the names made of them."""
        found: dict[str, Interval] = {name: (0, extent - 1) for name, extent in self.extents.items()}
        return {**found, **{let.name: (0, let.count - 1) for let in self.lets.values()}}

    def _programs(self, index: Index) -> frozenset[str] | None:
        """The program numbers behind an expression; None when there is something else in it."""
        found: set[str] = set()
        for name in symbols(index):
            if name in self.lets:
                found |= self.lets[name].programs
            elif name in self.extents:
                found.add(name)
            else:
                return None
        return frozenset(found)

    def settled(self, index: Index, named: Callable[[], str]) -> Index:
        """A scalar in its simplest form: a number, an even function of one program number, or a name; itself if it is neither."""
        programs = self._programs(index)
        poly = polynomial(index)
        involved = [m for m, _ in poly.terms if m]
        plain = len(involved) <= 1 and all(isinstance(a, str) for m in involved for a in m)
        if not programs or plain or prod(self.extents[p] for p in programs) > MOST_PROGRAMS:
            return index
        try:
            with np.errstate(all="raise"):
                table = np.asarray(evaluate_all(index, self._tables))
        except FloatingPointError:
            return index
        values = np.unique(table)
        if len(values) == 1:
            return Int(int(values[0]))
        if len(programs) == 1:
            flat = table.reshape(-1)
            (program,) = programs
            if np.array_equal(flat, flat[0] + np.arange(len(flat)) * (flat[1] - flat[0])):
                return simplify(IndexOp("+", Int(int(flat[0])), IndexOp("*", Sym(program), Int(int(flat[1] - flat[0])))))
        if len(involved) == 1 and len(involved[0]) == 1 and isinstance(involved[0][0], str):
            return index
        steps = np.unique(np.diff(values))
        if len(steps) != 1:
            return index
        base, step = int(values[0]), int(steps[0])
        table = (table - base) // step
        for known in self.lets.values():
            if known.table.shape == table.shape and np.array_equal(known.table, table):
                return _scaled(Sym(known.name), step, base)
        name = named()
        definition = simplify(IndexOp("//", IndexOp("-", index, Int(base)), Int(step)))
        self.lets[name] = Let(name, definition, table, len(values), programs)
        self._tables[name] = table
        return _scaled(Sym(name), step, base)

    # ---- the loops

    def loops(self, body: tuple[nodes.Statement, ...]) -> tuple[tuple[nodes.Statement, ...], list[str]]:
        """The body inside parallel loops over all programs, and notes about them."""
        notes: list[str] = []
        used = names_in(body)
        order: list[tuple[str, int]] = []
        for group in self._groups(used):
            lets = [let for let in self.lets.values() if let.name in used and let.programs <= group]
            if lets and not used & group and self._covers(lets, group):
                order += [(let.name, let.count) for let in lets]
                notes.append(f"programs are numbered by {', '.join(let.name for let in lets)} directly")
                continue
            body = self._written_out(body, lets)
            again = names_in(body)
            order += [
                (name, self.extents[name]) for name in reversed(PROGRAM) if name in group and (name in again or _updates(body))
            ]
        for name, extent in reversed(order):
            body = (nodes.For(name, "parallel", Int(0), Int(extent), Int(1), body),)
        return body, notes

    def _groups(self, used: frozenset[str]) -> list[frozenset[str]]:
        """Program numbers that names in use have in common."""
        groups: list[frozenset[str]] = [frozenset({name}) for name in reversed(PROGRAM) if name in self.extents]
        for let in self.lets.values():
            if let.name in used:
                touched = [group for group in groups if group & let.programs]
                groups = [group for group in groups if group not in touched] + [frozenset().union(*touched)]
        return groups

    def _covers(self, lets: list[Let], group: frozenset[str]) -> bool:
        """Whether the names go through all their combinations exactly once."""
        total = prod(self.extents[name] for name in group)
        if prod(let.count for let in lets) != total:
            return False
        shape = np.broadcast_shapes(*(let.table.shape for let in lets))
        number = np.zeros(shape, dtype=np.int64)
        for let in lets:
            number = number * let.count + let.table
        return number.size == total and len(np.unique(number)) == total

    def _written_out(self, body: tuple[nodes.Statement, ...], lets: list[Let]) -> tuple[nodes.Statement, ...]:
        """Names replaced by what they are made of, the last ones first."""
        for let in reversed(self.lets.values()):
            if let.name in names_in(body):
                body = replaced(body, {let.name: let.definition})
        return body


def _scaled(name: Sym, step: int, base: int) -> Index:
    return simplify(IndexOp("+", IndexOp("*", name, Int(step)), Int(base)))


def _updates(body: tuple[nodes.Statement, ...]) -> bool:
    """Whether something is updated atomically: then it matters how often the body runs."""
    return any(
        (isinstance(s, nodes.Store) and s.mode != "set") or (isinstance(s, nodes.For) and _updates(s.body)) for s in body
    )


def names_in(node: Any) -> frozenset[str]:
    """All names of integers in statements or tiles."""
    found: set[str] = set()
    seen: set[int] = set()
    stack = [node]
    while stack:
        item = stack.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, Sym):
            found.add(item.name)
        elif isinstance(item, tuple):
            stack.extend(item)
        elif is_dataclass(item):
            stack.extend(getattr(item, f.name) for f in fields(item))
    return frozenset(found)


def replaced(node: Any, env: Mapping[str, Index | int]) -> Any:
    """Statements or tiles with names of integers replaced; parts that are shared stay shared."""
    known: dict[int, Any] = {}

    def walk(item: Any) -> Any:
        if isinstance(item, Int | Sym | IndexOp):
            return substitute(item, env) if symbols(item) & env.keys() else item
        if isinstance(item, tuple):
            return tuple(map(walk, item))
        if not is_dataclass(item) or isinstance(item, type):
            return item
        if id(item) not in known:
            new = {f.name: walk(getattr(item, f.name)) for f in fields(item)}
            same = all(new[f.name] is getattr(item, f.name) or new[f.name] == getattr(item, f.name) for f in fields(item))
            known[id(item)] = (item, item if same else replace(item, **new))
        return known[id(item)][1]

    return walk(node)
