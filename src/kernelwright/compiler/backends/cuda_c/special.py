"""Scans and sorts by a block of threads. In: the scheduler and a value. Out: lines appended to it, the value's storage set.

A scan runs line by line: a thread for each line where there are many, else the block shares a line in three steps (each thread its
stretch, the stretches' totals, each thread again from what lies before it). A sort counts for each element how many go before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelwright.compiler.lower import c_expressions
from kernelwright.compiler.lower.c_family.elements import Elements
from kernelwright.compiler.lower.c_family.nest import Materialize, Nest
from kernelwright.compiler.lower.c_family.scalars import Lines
from kernelwright.compiler.lower.c_types import COMPUTED, STORED, literal
from kernelwright.compiler.lower.tile_values import Storage, Value
from kernelwright.core.dtypes import FLOATS
from kernelwright.core.operations import neutral
from kernelwright.sketch.index import Poly, poly, to_c

if TYPE_CHECKING:
    from kernelwright.compiler.backends.cuda_c.schedule import BlockScheduler

MANY_LINES = 64


def scan(scheduler: BlockScheduler, value: Value) -> None:
    """Running reductions; the operand is computed on the spot, twice where the block shares a line."""
    op, axis, reverse, exclusive = value.data
    x = value.args[0]
    scheduler.pre_make(value, set())
    storage = scheduler.declare(value)
    nest = Nest(scheduler.context, value.shape, [], set())
    others = [a for a, e in enumerate(value.shape) if e.constant != 1 and a != axis]
    extent = value.shape[axis]
    scanned = nest.vars[axis]
    at = extent - 1 - poly(scanned) if reverse else poly(scanned)
    if extent.constant == 1:
        at = poly(0)
    index = tuple(at if a == axis else p for a, p in enumerate(nest.index))
    elements = nest.elements({nest.vars[a]: 1 for a in [*others, axis]})
    element = elements.of(x, index)
    taken = scheduler.context.taken | set(nest.vars.values()) | {"total", "before", "first", "last", "f", "o", "part"}
    lines = Lines(1, taken)
    lines.count([element])
    text = lines.write(element, 1, False)
    body = lines.lines[1]
    slot = storage.name if storage.scalar else f"{storage.name}[{to_c(Elements.offset_in(storage, index))}]"
    kind, zero = COMPUTED[x.dtype], literal(neutral(op, x.dtype), x.dtype)
    update = f"total = {c_expressions.reduction(op, 'total', text if text.isidentifier() else f'({text})', x.dtype)};"
    write = f"{slot} = {c_expressions.store('total', storage.dtype)};"
    both = [write, update] if exclusive else [update, write]
    count = poly(1)
    for a in others:
        count = count * value.shape[a]
    reads = {place.memory for place in elements.places}
    scheduler.touch(reads, set() if storage.scalar else {storage.name})
    decode = _decode(scheduler, nest, others, "f")
    position, threads = scheduler.position, scheduler.threads
    walk = f"for ({position} {scanned} = 0; {scanned} < {to_c(extent)}; ++{scanned}) {{"
    out = ["{", *lines.lines[0]]
    if count.constant is None or count.constant >= MANY_LINES:
        out += [f"for ({position} f = threadIdx.x; f < {to_c(count)}; f += {threads}) {{", *decode, f"{kind} total = {zero};"]
        out += [walk, *body, *both, "}", "}"]
    else:
        combine = c_expressions.reduction(op, "total", "part[o]", x.dtype)
        long = f"(({to_c(extent)} + {threads - 1}) / {threads})"
        stretch = [
            f"const {position} first = min_of<{position}>(threadIdx.x * {long}, {to_c(extent)});",
            f"const {position} last = min_of<{position}>(first + {long}, {to_c(extent)});",
        ]
        part_walk = f"for ({position} {scanned} = first; {scanned} < last; ++{scanned}) {{"
        scheduler.shared += 8 * threads
        out += [
            f"__shared__ {kind} part[{threads}];",
            f"for ({position} f = 0; f < {to_c(count)}; ++f) {{", *decode, *stretch, f"{kind} total = {zero};",
            part_walk, *body, update, "}",
            "part[threadIdx.x] = total;", "__syncthreads();",
            f"total = {zero};",
            f"for (int o = 0; o < threadIdx.x; ++o) total = {combine};",
            part_walk, *body, *both, "}", "__syncthreads();", "}",
        ]  # fmt: skip
    scheduler.out += [*out, "}"]
    value.storage = storage


def argsort(scheduler: BlockScheduler, value: Value) -> None:
    """Rank of each element among its line: those that are smaller, or equal and earlier; NaN counts as the largest."""
    axis, descending = value.data
    x = value.args[0]
    if x.storage is None:
        copy = Storage(scheduler.builder.fresh("keys"), x.shape, x.dtype)
        scheduler.declare_storage(copy)
        scheduler.emit(Nest(scheduler.context, x.shape, [Materialize(copy, x, ())], set()), x.shape)
        x.storage = copy
    source = x.storage
    storage = scheduler.declare(value)
    scheduler.touch({source.name}, {storage.name})
    nest = Nest(scheduler.context, value.shape, [], set())
    axes = [a for a, e in enumerate(value.shape) if e.constant != 1]
    zero = tuple(poly(0) if a == axis else p for a, p in enumerate(nest.index))
    position, extent = scheduler.position, to_c(value.shape[axis])
    from_, to = (f"{s.name} + {to_c(Elements.offset_in(s, zero))}" if not s.scalar else f"&{s.name}" for s in (source, storage))
    own = c_expressions.load(f"from[{nest.vars[axis]} * ({to_c(_stride(source, axis))})]", x.dtype)
    other = c_expressions.load(f"from[o * ({to_c(_stride(source, axis))})]", x.dtype)
    less = "theirs > mine" if descending else "theirs < mine"
    equal = "theirs == mine"
    if x.dtype in FLOATS:
        nan = "theirs != theirs && mine == mine" if descending else "theirs == theirs && mine != mine"
        less = f"({less}) || ({nan})"
        equal = "(theirs == mine || (theirs != theirs && mine != mine))"
    kind = COMPUTED[x.dtype]
    total = poly(1)
    for a in axes:
        total = total * value.shape[a]
    scheduler.out += [
        "{",
        f"for ({position} f = threadIdx.x; f < {to_c(total)}; f += {scheduler.threads}) {{",
        *_decode(scheduler, nest, axes, "f"),
        *([] if axis in axes else [f"const {position} {nest.vars[axis]} = 0;"]),
        f"const {STORED[x.dtype]}* from = {from_};", f"int64_t* to = {to};",
        f"const {kind} mine = {own};", f"{position} rank = 0;",
        f"for ({position} o = 0; o < {extent}; ++o) {{", f"const {kind} theirs = {other};",
        f"rank += ({less}) || ({equal} && o < {nest.vars[axis]});", "}",
        f"to[rank * ({to_c(_stride(storage, axis))})] = {nest.vars[axis]};", "}", "}",
    ]  # fmt: skip
    value.storage = storage


def _decode(scheduler: BlockScheduler, nest: Nest, axes: list[int], flat: str) -> list[str]:
    lines = []
    rest = flat
    for number, axis in enumerate(reversed(axes)):
        extent = to_c(nest.shape[axis])
        last = number == len(axes) - 1
        lines.append(f"const {scheduler.position} {nest.vars[axis]} = {rest if last else f'{rest} % ({extent})'};")
        rest = f"({rest} / ({extent}))"
    return lines


def _stride(storage: Storage, axis: int) -> Poly:
    stride = poly(1)
    for extent in storage.extents[axis + 1 :]:
        stride = stride * extent
    return stride
