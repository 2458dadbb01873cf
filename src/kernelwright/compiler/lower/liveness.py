"""Which names a piece of a kernel reads before it binds them: what a loop has to carry.

In: statements. Out: sets of names. A loop may run zero times, so what it binds never hides an earlier binding.

What is alive before a body is what the body reads before binding it, and what is alive after it less what it binds. Both halves
are the body's own, whatever comes after, so `Liveness` finds them once a statement: a long body that is unrolled many times over
(a whole network's) is asked thousands of times.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass

from kernelwright.sketch import nodes


def names_read(thing: object) -> set[str]:
    """All tile names that an expression (or region, or tuple of them) mentions."""
    if isinstance(thing, nodes.Var):
        return {thing.name}
    if isinstance(thing, tuple):
        return set().union(*(names_read(item) for item in thing)) if thing else set()
    if is_dataclass(thing):
        return set().union(*(names_read(getattr(thing, f.name)) for f in fields(thing)))
    return set()


def names_bound(body: Iterable[nodes.Statement]) -> set[str]:
    """All names that a body binds, at any depth."""
    bound: set[str] = set()
    for statement in body:
        if isinstance(statement, nodes.Assign):
            bound.add(statement.name)
        elif isinstance(statement, nodes.For):
            bound |= names_bound(statement.body)
    return bound


class Liveness:
    """Of one kernel's statements, which it knows by identity: to be used only as long as that kernel exists."""

    def __init__(self) -> None:
        self._reads: dict[int, set[str]] = {}
        self._loops: dict[int, tuple[set[str], set[str]]] = {}

    def before(self, body: tuple[nodes.Statement, ...], live_after: set[str]) -> set[str]:
        """Names whose value at the start of `body` may still be read, in it or later."""
        read, bound = self._summary(body)
        return read | (live_after - bound)

    def entering(self, loop: nodes.For, live_after: set[str]) -> set[str]:
        """Names alive at the start of a loop's body: read there, or in a later iteration, or after the loop."""
        read, bound = self._loop(loop)
        return read | (live_after - bound)

    def _summary(self, body: tuple[nodes.Statement, ...]) -> tuple[set[str], set[str]]:
        """What a body reads before it binds it, and what it surely binds."""
        read: set[str] = set()
        bound: set[str] = set()
        for statement in reversed(body):
            if isinstance(statement, nodes.Assign):
                read.discard(statement.name)
                bound.add(statement.name)
            read |= self._read_by(statement)
        return read, bound

    def _read_by(self, statement: nodes.Statement) -> set[str]:
        if isinstance(statement, nodes.For):
            return self._loop(statement)[0]
        found = self._reads.get(id(statement))
        if found is None:
            found = set()
            if isinstance(statement, nodes.Assign):
                found = names_read(statement.value)
            elif isinstance(statement, nodes.Store):
                found = names_read((statement.region, statement.value))
            self._reads[id(statement)] = found
        return found

    def _loop(self, loop: nodes.For) -> tuple[set[str], set[str]]:
        found = self._loops.get(id(loop))
        if found is None:
            found = self._loops[id(loop)] = self._summary(loop.body)
        return found
