"""Loops that do nothing but add products of views to one accumulator (the taps of a convolution) as loops of the contraction itself: one
call of the micro-kernel, sums in registers throughout.

In: the scheduler and the outermost of such loops. Out: lines appended to the scheduler. Up to two loops of fixed length are steps of the
call. More of them, or loops whose length depends on one another (taps of a strided convolution, phase by phase), are written as a list
of places first.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kernelwright.compiler.backends.cpp.products import micro_kernel
from kernelwright.compiler.backends.cpp.products.tile_product import View, count_work, root_of, view
from kernelwright.compiler.lower.tile_values import VIEWS, CommentEffect, LoopEffect, Value
from kernelwright.sketch.index import Poly, combine, to_c

if TYPE_CHECKING:
    from kernelwright.compiler.backends.cpp.schedule import Scheduler

SHORT = 8
"""A contraction loop shorter than this does not keep the pipeline full; it goes outside the loops over taps."""
MOST_LOOPS = 4
MOST_PLACES = 8192
"""Places of a list, which lies on the stack: 64 KiB."""


def nest(scheduler: Scheduler, loop: LoopEffect) -> bool:
    """Writes loops that only add products of views to one tile as a single call; False if they are something else."""
    loops = _chain(loop)
    if loops is None:
        return False
    value = loops[-1].carried[0].final
    assert value is not None
    a, b = value.args[:2]
    for operand, root, always in ((a, root_of(a), False), (b, _laid_out(b, loops), True)):
        if root.storage is None and (always or view(scheduler, operand, value.dtype) is None):
            if _within(root, loops) or root.op == "gemm":
                return False
            for inner in scheduler.pending([root]):
                scheduler.make(inner)
            scheduler.make(root)
    left, right = view(scheduler, a, value.dtype), view(scheduler, b, value.dtype)
    if left is None or right is None or right.column.constant != 1:
        return False
    variables = {item.var for item in loops}
    if (left.rows.names | left.columns.names | right.rows.names | right.columns.names) & variables:
        return False
    trips = [combine("//", item.stop - item.start + item.step - 1, item.step) for item in loops]
    most = [scheduler.most(count) for count in trips]
    strides = [(left.offset.coefficient(item.var), right.offset.coefficient(item.var)) for item in loops]
    depth = combine("min", left.columns, right.rows)
    steps = []
    for item, count, (a_step, b_step) in zip(loops, trips, strides, strict=True):
        if a_step is None or b_step is None or (a_step.names | b_step.names) & variables:
            return False
        steps.append(micro_kernel.Loop(to_c(count), to_c(a_step * item.step), to_c(b_step * item.step)))
    channel = micro_kernel.Loop(to_c(depth), to_c(left.column), to_c(right.row))
    short = a.shape[1].constant is not None and a.shape[1].constant < SHORT
    steps = [channel, *steps] if short else [*steps, channel]
    listed = len(steps) > 3 or any(count.names & variables for count in trips)
    places = a.shape[1]
    for count in most:
        places = places * count
    if listed and (places.constant is None or places.constant > MOST_PLACES):
        return False
    carried = loop.carried[0]
    initial = carried.initial
    whole = left.rows == value.shape[0] and right.columns == value.shape[1]
    fresh = whole and initial is not None and initial.op == "const" and initial.data == 0
    if fresh:
        scheduler.declare_storage(carried.storage)
    else:
        scheduler.begin_carried(loop)
    target = carried.storage
    starts = {item.var: item.start for item in loops}
    listing = _listing(scheduler, loops, steps, short, places) if listed else ""
    call = micro_kernel.call(
        value.dtype, to_c(left.rows), to_c(right.columns), listing or steps, _start(left, starts), to_c(left.row), "",
        _start(right, starts), f"PANEL<{micro_kernel.ELEMENT[value.dtype]}>", target.name, to_c(target.extents[-1]), str(fresh).lower(),
    )  # fmt: skip
    scheduler.out.append(call)
    scheduler.trips += most
    count_work(scheduler, (*value.shape, a.shape[1]))
    del scheduler.trips[-len(loops) :]
    for item in loops[1:]:
        item.carried[0].storage.name, item.carried[0].storage.pitch = target.name, target.pitch
    storages = [item.carried[0].storage for item in loops]
    scheduler.ready |= {v for v in scheduler.usage.values if v.op == "stored" and any(v.storage is s for s in storages)}
    return True


def _start(found: View, starts: dict[str, Poly]) -> str:
    """Where a view lies in the first iteration; an inner loop may start where an outer one says."""
    for _ in starts:
        found = replace(found, offset=found.offset.substitute(starts))
    return found.pointer()


def _listing(scheduler: Scheduler, loops: list[LoopEffect], steps: list[micro_kernel.Loop], short: bool, places: Poly) -> str:
    """Writes where in A and in B every term of a sum lies, in the order of the loops; the C text of such a contraction."""
    name, count, channel = (scheduler.builder.fresh(stem) for stem in ("places", "terms", "term"))
    heads: list[str] = []
    moves: tuple[list[str], list[str]] = ([], [])
    for item, step in zip(loops, steps[1:] if short else steps[:-1], strict=True):
        counter = f"{item.var}_step"
        begin, move = f"{item.var} = {to_c(item.start)}", f"{item.var} += {to_c(item.step)}"
        heads.append(f"for (int {counter} = 0, {begin}; {counter} < {step.count}; ++{counter}, {move})")
        moves[0].append(f"{counter} * {step.a}")
        moves[1].append(f"{counter} * {step.b}")
    last = steps[0] if short else steps[-1]
    heads.insert(0 if short else len(heads), f"for (int {channel} = 0; {channel} < {last.count}; ++{channel})")
    moves[0].append(f"{channel} * {last.a}")
    moves[1].append(f"{channel} * {last.b}")
    out = scheduler.out
    out += [f"int {name}[{to_c(places * 2)}];  // of each term of a sum: where in A, where in B", f"int {count} = 0;"]
    out += heads[:-1]
    out += [
        f"{heads[-1]} {{",
        f"  {name}[{count}++] = {' + '.join(moves[0])};",
        f"  {name}[{count}++] = {' + '.join(moves[1])};",
        "}",
    ]
    return f"Listed{{{count} / 2, {name}}}"


def _laid_out(x: Value, loops: list[LoopEffect]) -> Value:
    """The operand as it is before the loops, in the order in which it was asked for; inside them only views of it are taken."""
    while x.storage is None and x.op in VIEWS and _within(x, loops):
        x = x.args[0]
    return x


def _within(x: Value, loops: list[LoopEffect]) -> bool:
    return any(x.home is item.body for item in loops)


def _chain(loop: LoopEffect) -> list[LoopEffect] | None:
    """A few nested range loops that carry one tile, the innermost adding one product to it; else None."""
    loops = [loop]
    while True:
        item = loops[-1]
        if item.kind != "range" or len(item.carried) != 1 or len(loops) > MOST_LOOPS:
            return None
        effects = [e for e in item.body.effects if not isinstance(e, CommentEffect)]
        if not effects:
            break
        if len(effects) != 1 or not isinstance(effects[0], LoopEffect):
            return None
        inner = effects[0]
        if len(inner.carried) != 1 or inner.carried[0].initial is not item.carried[0].inside:
            return None
        final = item.carried[0].final
        if final is None or final.op != "stored" or final.storage is not inner.carried[0].storage:
            return None
        loops.append(inner)
    value = loops[-1].carried[0].final
    if value is None or value.op != "gemm" or len(value.args) != 3 or value.args[2] is not loops[-1].carried[0].inside:
        return None
    return loops
