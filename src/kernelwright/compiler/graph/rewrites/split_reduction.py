"""Long reductions with few results are cut into partial ones, so that all cores have work.

A fold of a million elements to one becomes a fold to some dozens of partial results, which are materialized, and a fold of those.
Done on the graph in place, before anything is traced.
"""

from __future__ import annotations

import math

from kernelwright.compiler.graph import build as b
from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.index_maps import divides
from kernelwright.compiler.graph.symbolic import Extent, Size, largest, likely, size_poly
from kernelwright.core.operations import neutral
from kernelwright.target import Capabilities

PARTS = 64
LEAST_PART = 1024
"""Elements that a block should have to add, at least."""
COLUMNS = 256
"""Neighbours that one task reduces along a strided axis."""
PIECE, MOST_PARTS = 2048, 4096
"""Elements of a contiguous part where threads take them: short enough that a core reads several places in turn
(compiler/backends/cpp/streams.py)."""


def split_long_reductions(order: list[v.Value], machine: Capabilities) -> tuple[dict[int, v.Value], list[str]]:
    """Cuts reductions in place; returns what must be materialized (the partial results, and values that ask for it) and notes that say
    why. Threads take many short parts in turn; where each part is a block of its own, there are as few as keep the device busy."""
    notes: list[str] = []
    parts: dict[int, v.Value] = {}
    for value in order:
        if value.stored:
            parts[id(value)] = value
        if not isinstance(value, v.Reduce) or not _starves(value, machine):
            continue
        rows, length = likely(value.size), likely(value.source.size) // max(1, likely(value.size))
        made = _split(value, machine)
        if made is not None:
            parts[id(made)] = made
            notes.append(
                f"{value.op} of {length:,} elements for {rows:,} results: in {likely(made.size) // max(1, rows):,} parts each, "
                f"so that {machine.units} {'cores' if machine.vectors else 'units'} have work"
            )
    return parts, notes


def _starves(value: v.Reduce, machine: Capabilities) -> bool:
    """Whether too few tasks share this reduction, and it is long enough to be worth a kernel more."""
    if machine.vectors:
        tasks = likely(value.size) if _contiguous(value) else likely(value.size) // (COLUMNS // 4)
        return likely(value.source.size) >= machine.alone and not machine.busy(tasks)
    tasks = likely(value.size) if _contiguous(value) else -(-likely(value.size) // COLUMNS)
    return not machine.busy(tasks) and machine.worth_sharing(likely(value.source.size), tasks)


def _parts(value: v.Reduce, length: int, last: bool, machine: Capabilities) -> int:
    """Into how many parts at most a run of so many elements is cut."""
    if machine.vectors:
        short = _contiguous(value) and _plain(value.source) and last
        return max(PARTS, min(MOST_PARTS, length // PIECE) if short else 0)
    tasks = likely(value.size) if _contiguous(value) else -(-likely(value.size) // COLUMNS)
    return max(2, min(-(-2 * machine.units // max(1, tasks)), length // (LEAST_PART if last else 16)))


def _contiguous(fold: v.Reduce) -> bool:
    return len(fold.source.shape) - 1 in fold.axes


def _plain(source: v.Value) -> bool:
    """Whether nothing else is folded on the way to it. A part that begins inside a row of another fold (a norm's statistics)
    would need that row's result anew for every element."""
    return not any(isinstance(value, v.Reduce) for value in v.topological([source]))


def _split(fold: v.Reduce, machine: Capabilities) -> v.Value | None:
    """The partial reduction that now feeds this one, or None if nothing can be cut."""
    runs: list[list[int]] = []
    for axis in fold.axes:
        if runs and runs[-1][-1] == axis - 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    x = fold.source
    run = max(runs, key=lambda r: likely(math.prod(x.shape[a] for a in r)))
    length = math.prod(x.shape[a] for a in run)
    lead, rest = x.shape[: run[0]], x.shape[run[-1] + 1 :]
    if likely(length) < 16:
        return None
    most = _parts(fold, likely(length), run[-1] == len(x.shape) - 1, machine)
    count: Extent
    each: Extent
    if isinstance(length, Size):
        each = max(16, likely(length) // most // 16 * 16)
        count = length // each if divides(each, length) else 0
        most = largest((length + each - 1) // each, 1)  # one part of nothing, where there is nothing to add
    else:
        count = next((p for p in range(most, max(1, most // 8 - 1), -1) if length % p == 0), 0)
    flat = b.reshape(x, (*lead, length, *rest))
    if count != 0:
        cut = b.reshape(flat, (*lead, count, length // count, *rest))
    else:  # no divisor: the last part is filled up with what changes nothing
        count = most
        each = each if isinstance(length, Size) else -(-length // count)
        at = len(lead)

        def move(coords: v.MultiIndex) -> v.MultiIndex:
            return (*coords[:at], coords[at] * size_poly(each) + coords[at + 1], *coords[at + 2 :])

        cut = v.View((*lead, count, each, *rest), x.dtype, flat, move, fill=neutral(fold.op, x.dtype), kind="windows")
    shift = len(run) - 1  # axes behind the run move by one less than its length, and by one more for the new axis
    axes = [a if a < run[0] else a - shift + 1 for a in fold.axes if a not in run]
    inner_axes = tuple(sorted([*axes, run[0] + 1]))
    shape = tuple(e for i, e in enumerate(cut.shape) if i not in inner_axes)
    made = v.Reduce(shape, fold.dtype, fold.op, cut, inner_axes, origin=f"{fold.origin}.partial")
    fold.source = made
    fold.axes = (run[0] - sum(a < run[0] for a in axes),)
    return made
