"""What a nest must not do: compute a reduction again for every element, or run on too few units.

In: a nest and capabilities. Out: nothing, or `MustMaterialize` with the value that has to be in memory first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.index_maps import LoopAxis, linear
from kernelwright.compiler.graph.symbolic import likely
from kernelwright.compiler.graph.values import MustMaterialize
from kernelwright.compiler.schedule.nest import Nest
from kernelwright.compiler.schedule.scalar import Expr, walk_all
from kernelwright.core.operations import QUOTIENT
from kernelwright.core.operations import cost as operation_cost
from kernelwright.target import Capabilities

SHORT_WALK = 64  # steps that a reduction may take one element at a time
WINDOW_WORK = 65536  # elements below which a window and another reduction may share a nest
ROOTS = ("sqrt", "rsqrt", "reciprocal")  # one instruction each: cheap enough to do again


def expensive(e: Expr) -> bool:
    """Whether an expression is an operation that one would not do twice."""
    return e.kind == "apply" and e.data not in ROOTS and operation_cost(e.data) >= QUOTIENT


def reductions(nest: Nest) -> list[Expr]:
    """All reductions and arg-reductions, inner ones first."""
    return [e for e in walk_all([value for _, value in nest.stores]) if e.kind in ("reduce", "arg")]


def bound_axes(e: Expr) -> tuple[LoopAxis, ...]:
    """The axes that a reduction binds."""
    return tuple(e.data[1]) if e.kind == "reduce" else (e.data[1],)


def points(loop_axes: Iterable[LoopAxis]) -> int:
    """Points of a space with these axes (where sizes vary: in the example)."""
    return math.prod(likely(a.extent) for a in loop_axes)


def work(e: Expr) -> int:
    """Elements that a reduction reads."""
    return points(e.args[0].free)


def refuse_waste(nest: Nest, machine: Capabilities) -> None:
    """Raises MustMaterialize for what this nest would compute repeatedly or on too few units."""
    domain = set(nest.domain)
    found = reductions(nest)
    _refuse_mixed_windows(found)
    nested: list[tuple[Expr, Expr]] = []
    for outer in found:
        below = walk_all([outer.args[0]])
        for e in below:
            again = e.kind in ("reduce", "arg", "scan") or expensive(e)
            if again and _overlapping(outer, e, domain) and outer.value is not None:
                raise MustMaterialize(compact(outer.value.sources()[0]))
            if e.kind in ("reduce", "arg", "scan") and e.free & set(bound_axes(outer)) and e.value is not None:
                nested.append((outer, e))
    repeated = [e for e in found if domain - e.free and e.value is not None]
    rows = set().union(*(domain - e.free for e in repeated)) if repeated else set()
    lanes = points(domain - rows)
    if machine.busy(lanes):
        return
    for outer, inner in nested:
        if machine.worth_sharing(work(inner), lanes) and outer.value is not None and inner.value is not None:
            body = compact(outer.value.sources()[0])
            raise MustMaterialize(
                body if likely(body.size) * 8 <= work(inner) and not isinstance(body, v.Leaf) else inner.value
            )
    if repeated:
        worst = max(repeated, key=lambda e: (points(domain - e.free), work(e)))
        heavy = max(points(domain), work(worst))
        if machine.worth_sharing(heavy, lanes):
            raise MustMaterialize(worst.value)  # type: ignore[arg-type]


def _refuse_mixed_windows(found: list[Expr]) -> None:
    """Raises MustMaterialize where a pooling window and another reduction (a norm's statistics, a softmax, a mean) share a nest. The
    window cuts the contiguous axis into short pieces: all that walks along it, the other reduction too, would go by strided elements."""
    if not any(_window(e) and work(e) > WINDOW_WORK for e in found):
        return
    for outer in found:
        for e in walk_all([outer.args[0]]):
            if e.kind not in ("reduce", "arg") or e.value is None or outer.value is None or _window(e) == _window(outer):
                continue
            if _window(e):  # what is pooled is reduced further
                raise MustMaterialize(compact(outer.value.sources()[0]))
            # what is pooled was reduced before: for every place, or once for many
            raise MustMaterialize(compact(outer.value.sources()[0]) if e.free & set(bound_axes(outer)) else e.value)


def _window(e: Expr) -> bool:
    """Whether a reduction is over the short windows of a pooling."""
    return (
        isinstance(e.value, v.Reduce)
        and not e.value.origin.endswith("partial")
        and any(isinstance(x, v.View) and x.kind == "windows" for x in (e.value.source, *e.value.source.sources()))
        and points(bound_axes(e)) <= SHORT_WALK
    )


def compact(value: v.Value) -> v.Value:
    """What to materialize in place of a value that shows the same elements many times (windows): the value behind the views."""
    while True:
        if isinstance(value, v.View):
            value = value.source
        elif isinstance(value, v.Map) and any(isinstance(a, v.View) and a.kind == "windows" for a in value.args):
            value = next(a for a in value.args if isinstance(a, v.View) and a.kind == "windows")
        else:
            return value


def _overlapping(outer: Expr, e: Expr, domain: set[LoopAxis]) -> bool:
    """Whether windows of the reduction overlap, so that `e` would be computed several times for one place."""
    bound = set(bound_axes(outer))
    for access in walk_all([e]):
        if access.kind in ("access", "slot"):
            for c in access.data[-1]:
                terms = {t: k for t, k in linear(c) if isinstance(t, LoopAxis)}
                inner = [t for t in terms if t in bound]
                others = [t for t in terms if t in domain and t not in bound]
                if inner and others and min(likely(terms[t]) for t in others) < max(likely(terms[t] * t.extent) for t in inner):
                    return True
    return False
