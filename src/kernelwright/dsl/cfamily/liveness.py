"""Which names a piece of a kernel reads before it binds them: what a loop has to carry.

In: statements. Out: sets of names. A loop may run zero times, so what it binds never hides an earlier binding.
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


def live_before(body: tuple[nodes.Statement, ...], live_after: set[str]) -> set[str]:
    """Names whose value at the start of `body` may still be read, in it or later."""
    live = set(live_after)
    for statement in reversed(body):
        if isinstance(statement, nodes.Assign):
            live = (live - {statement.name}) | names_read(statement.value)
        elif isinstance(statement, nodes.Store):
            live |= names_read((statement.region, statement.value))
        elif isinstance(statement, nodes.For):
            live |= entering(statement, live)
    return live


def entering(loop: nodes.For, live_after: set[str]) -> set[str]:
    """Names alive at the start of a loop's body: read there, or in a later iteration, or after the loop."""
    live = set(live_after)
    while True:
        wider = live | live_before(loop.body, live)
        if wider == live:
            return live_before(loop.body, live)
        live = wider
