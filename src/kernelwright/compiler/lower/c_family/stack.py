"""Tiles that are put together of others along short axes, written in one pass.

In: the scheduler and such a value (compiler/lower/stacks.py knows them). Out: lines that store it. The short axes are unrolled: with its
position known, each choice is one of its branches, and what the branches have in common is computed once. So a transform
(Winograd's, a butterfly) reads its inputs once and writes all its outputs.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from kernelwright.compiler.lower.c_family.nest import Materialize, Nest, Output
from kernelwright.compiler.lower.tile_values import Value
from kernelwright.sketch.index import poly

if TYPE_CHECKING:
    from kernelwright.compiler.lower.c_family.schedule import Scheduler


def make(scheduler: Scheduler, value: Value, axes: tuple[int, ...]) -> None:
    """Computes the value into storage of its own, all positions along `axes` in one pass."""
    storage = scheduler.declare(value)
    for load in _guarded_loads(scheduler, value):
        scheduler.make(load)
    scheduler.pre_make(value, {value.id})
    value.storage = storage
    domain = tuple(poly(1) if k in axes else extent for k, extent in enumerate(value.shape))
    plain = Nest(scheduler.context, domain, [], set()).index
    outputs: list[Output] = []
    for position in itertools.product(*(range(value.shape[k].constant or 1) for k in axes)):
        places = dict(zip(axes, position, strict=True))
        index = tuple(poly(places[k]) if k in places else plain[k] for k in range(len(value.shape)))
        outputs.append(Materialize(storage, value, index))
    scheduler.emit(Nest(scheduler.context, domain, outputs, {value.id}), domain)


def _guarded_loads(scheduler: Scheduler, value: Value) -> list[Value]:
    """Loads under a value that may leave their tensor: they are copied first, so that one test serves all uses."""
    found: list[Value] = []
    seen: set[int] = set()
    stack = [value]
    while stack:
        at = stack.pop()
        if at.id in seen or at.storage is not None or (at.kept and at is not value):
            continue
        seen.add(at.id)
        if at.op == "load" and at.data.pad is not None:
            nest = Nest(scheduler.context, at.shape, [], set())
            elements = nest.elements(dict.fromkeys(nest.vars.values(), 1))
            elements.of(at, nest.index)
            if elements.borders:
                found.append(at)
        stack += at.operands
    return found
