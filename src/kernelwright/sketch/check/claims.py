"""What must hold for every size and was not shown by the algebra: claims, for whoever can say more.

In: a claim and values of all names in it. Out: whether the values break it, which is exact arithmetic and settles every doubt about a
counterexample, whoever found it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kernelwright.core.errors import SketchError
from kernelwright.sketch import nodes
from kernelwright.sketch.check.races import Meeting
from kernelwright.sketch.index import evaluate
from kernelwright.sketch.nodes import For, Index, IndexOp, Sym

SECOND = "'"
"""Marks loop variables of the second of two iterations; no name of a sketch contains it."""


@dataclass(frozen=True)
class Claim:
    """`goals` are never negative wherever the loops run and `given` are not negative; or, with `meeting`, two accesses are apart.
    `fault` is what is said where nobody shows it."""

    kind: Literal["bounds", "extent", "divisor", "race"]
    line: int
    fault: SketchError
    loops: tuple[For, ...] = ()
    goals: tuple[Index, ...] = ()
    given: tuple[Index, ...] = ()
    meeting: Meeting | None = None
    names: Mapping[str, nodes.Tile] | None = None
    """Tiles by name, for a meeting whose positions are computed."""


def runs(loops: Sequence[For], env: Mapping[str, int]) -> bool:
    """Whether the loops have this iteration."""
    for loop in loops:
        start, stop, step = (evaluate(bound, env) for bound in (loop.start, loop.stop, loop.step))
        value = env[loop.var]
        if step <= 0 or not start <= value < stop or (value - start) % step:
            return False
    return True


def broken(claim: Claim, env: Mapping[str, int]) -> bool:
    """Whether these values break a claim about bounds; a division by zero on the way breaks it, too."""
    try:
        if not runs(claim.loops, env) or any(evaluate(known, env) < 0 for known in claim.given):
            return False
    except ZeroDivisionError:
        return False  # a claim of its own
    try:
        return any(evaluate(goal, env) < 0 for goal in claim.goals)
    except ZeroDivisionError:
        return True


def met(meeting: Meeting, env: Mapping[str, int], shapes: Mapping[str, Sequence[Index]]) -> bool:
    """Whether the two accesses touch one element in these two iterations, which are different ones of one execution of a loop. Only for
    accesses of one tensor whose positions are not computed."""
    store, other = meeting.store, meeting.other
    if store.tensor != other.tensor or any(isinstance(axis, nodes.Pick) for axis in (*store.region, *other.region)):
        return False
    mine = {name: value for name, value in env.items() if not name.endswith(SECOND)}
    theirs = mine | {name.removesuffix(SECOND): value for name, value in env.items() if name.endswith(SECOND)}
    try:
        if not runs(store.loops, mine) or not runs(other.loops, theirs) or not racing(meeting, mine, theirs):
            return False
        for a, b, extent in zip(store.region, other.region, shapes[store.tensor], strict=True):
            reach = range(evaluate(extent, env))
            if not any(place in reach for place in _common(_places(a, mine), _places(b, theirs))):
                return False
    except ZeroDivisionError:
        return False
    return True


def racing(meeting: Meeting, mine: Mapping[str, int], theirs: Mapping[str, int]) -> bool:
    """Whether the first loop in which the two iterations differ is a parallel one around both."""
    for one, other in zip(meeting.store.loops, meeting.other.loops, strict=False):
        if one is not other:
            break
        if mine[one.var] != theirs[one.var]:
            return one.kind == "parallel"
    return False


def _places(axis: nodes.Axis, env: Mapping[str, int]) -> range:
    match axis:
        case nodes.At(index):
            at = evaluate(index, env)
            return range(at, at + 1)
        case nodes.Span(start, extent, step):
            first, count, by = (evaluate(part, env) for part in (start, extent, step))
            return range(first, first + count * by, by) if by else range(0)
    raise TypeError(f"not a fixed axis: {axis!r}")


def _common(one: range, other: range) -> Iterator[int]:
    small, large = (one, other) if len(one) <= len(other) else (other, one)
    return (place for place in small if place in large)


def marked(index: Index, variables: frozenset[str]) -> Index:
    """An expression of the second iteration."""
    match index:
        case Sym(name) if name in variables:
            return Sym(name + SECOND)
        case IndexOp(op, left, right):
            return IndexOp(op, marked(left, variables), marked(right, variables))
    return index
