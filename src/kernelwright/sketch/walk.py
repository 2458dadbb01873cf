"""Walking over a Sketch: the parts of an expression, and the loops around a statement.

In: nodes. Out: iterators. Shared subexpressions are visited once per walk, so that a designer may build expressions as graphs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelwright.sketch import nodes
from kernelwright.sketch.nodes import Tile


def children(tile: Tile) -> tuple[Tile, ...]:
    """The tiles an expression is made of, including the picks of a region."""
    match tile:
        case nodes.Load(_, region):
            return tuple(axis.indices for axis in region if isinstance(axis, nodes.Pick))
        case nodes.Binary(_, a, b):
            return (a, b)
        case nodes.Where(condition, a, b):
            return (condition, a, b)
        case nodes.Take(x, indices):
            return (x, indices)
        case nodes.Stack(tiles):
            return tiles
        case nodes.Gemm(a, b, acc):
            return (a, b) if acc is None else (a, b, acc)
        case nodes.Var() | nodes.Number() | nodes.FromIndex() | nodes.Iota() | nodes.Full():
            return ()
    return (tile.x,)


def roots(statement: nodes.Statement) -> tuple[Tile, ...]:
    """The tile expressions a statement evaluates itself (not those of a loop's body)."""
    match statement:
        case nodes.Assign(_, value):
            return (value,)
        case nodes.Store(_, region, value):
            return (*(axis.indices for axis in region if isinstance(axis, nodes.Pick)), value)
    return ()


def subtiles(*start: Tile) -> Iterator[Tile]:
    """Every expression inside, each object once, parents first."""
    seen: set[int] = set()
    stack = list(reversed(start))
    while stack:
        tile = stack.pop()
        if id(tile) in seen:
            continue
        seen.add(id(tile))
        yield tile
        stack.extend(reversed(children(tile)))


def statements(
    body: Sequence[nodes.Statement], around: tuple[nodes.For, ...] = ()
) -> Iterator[tuple[nodes.Statement, tuple[nodes.For, ...]]]:
    """All statements in program order, each with the loops around it from the outside in."""
    for statement in body:
        yield statement, around
        if isinstance(statement, nodes.For):
            yield from statements(statement.body, (*around, statement))


def bound_names(body: Sequence[nodes.Statement]) -> frozenset[str]:
    """Names that a body binds anywhere inside."""
    return frozenset(statement.name for statement, _ in statements(body) if isinstance(statement, nodes.Assign))
