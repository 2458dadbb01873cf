"""Tile operations that are more than a loop nest over elements: scans and sorts (matrix products: product.py).

In: the scheduler and a value. Out: lines appended to the scheduler, the value's storage set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelwright.dsl.cfamily import expressions
from kernelwright.dsl.cfamily.polynomial import Poly, poly, to_c
from kernelwright.dsl.cfamily.types import COMPUTED, FLOATS, literal, neutral
from kernelwright.dsl.cfamily.values import Storage, Value
from kernelwright.dsl.cpp.elements import Elements, Lines
from kernelwright.dsl.cpp.nest import Nest

if TYPE_CHECKING:
    from kernelwright.dsl.cpp.schedule import Scheduler


def scan(scheduler: Scheduler, value: Value) -> None:
    """Runs along the axis; the last other axis is a SIMD loop where there is one and it lies inside the scanned one."""
    op, axis, reverse, exclusive = value.data
    x = value.args[0]
    scheduler.pre_make(value, set())
    storage = scheduler.declare(value)
    nest = Nest(scheduler.around, value.shape, [], set())
    axes = [a for a, e in enumerate(value.shape) if e.constant != 1]
    others = [a for a in axes if a != axis]
    inner = others[-1] if others and others[-1] > axis else None
    outer = [a for a in others if a != inner]
    order = [*outer, axis, *([inner] if inner is not None else [])]
    forward = nest.index
    scanned = nest.vars[axis]
    extent = value.shape[axis]
    at = poly(scanned) if not reverse else extent - 1 - poly(scanned)
    if extent.constant == 1:
        at = poly(0)
    index = tuple(at if a == axis else p for a, p in enumerate(forward))
    elements = nest.elements({nest.vars[a]: k + 1 for k, a in enumerate(order)})
    element = elements.of(x, index)
    lines = Lines(elements, len(order), scheduler.around.taken | set(nest.vars.values()))
    lines.count([element])
    text = lines.write(element, len(order), False)
    body = lines.forget_inner()
    running = f"running[{nest.vars[inner]}]" if inner is not None else "running"
    slot = f"{storage.name}[{to_c(Elements.offset_in(storage, index))}]" if not storage.scalar else storage.name
    update = f"{running} = {expressions.reduction(op, running, f'({text})', x.dtype)};"
    write = f"{slot} = {expressions.store(running, storage.dtype)};"
    body += [write, update] if exclusive else [update, write]
    start = literal(neutral(op, x.dtype), x.dtype)
    kind = COMPUTED[x.dtype]
    out = ["{", *lines.lines[0]]
    for k, a in enumerate(outer):
        out += [
            f"for (int64_t {nest.vars[a]} = 0; {nest.vars[a]} < {to_c(value.shape[a])}; ++{nest.vars[a]}) {{",
            *lines.lines[k + 1],
        ]
    if inner is not None:
        width = value.shape[inner]
        count = str(width.constant) if width.constant is not None and width.constant <= 16384 else None
        holder = f"{kind} running[{count}];" if count else f"{kind}* running = scratch<{kind}, {31}>({to_c(width)});"
        out += [holder, f"for (int64_t k = 0; k < {to_c(width)}; ++k) running[k] = {start};"]
    else:
        out.append(f"{kind} running = {start};")
    out += [f"for (int64_t {scanned} = 0; {scanned} < {to_c(extent)}; ++{scanned}) {{"]
    if inner is not None:
        name = nest.vars[inner]
        out += lines.lines[len(outer) + 1]
        out += [f"#pragma omp simd\nfor (int64_t {name} = 0; {name} < {to_c(value.shape[inner])}; ++{name}) {{", *body, "}"]
    else:
        out += body
    out += ["}", *["}" for _ in outer], "}"]
    scheduler.out += out
    value.storage = storage
    _count_work(scheduler, value.shape, 4)


def argsort(scheduler: Scheduler, value: Value) -> None:
    """Sorts positions line by line; NaN counts as the largest."""
    axis, descending = value.data
    x = value.args[0]
    for inner in scheduler.pending([x]):
        scheduler.make(inner)
    if x.storage is None:
        scheduler.make(x)
    storage = scheduler.declare(value)
    source = x.storage
    assert source is not None
    nest = Nest(scheduler.around, value.shape, [], set())
    others = [a for a, e in enumerate(value.shape) if a != axis and e.constant != 1]
    zero = tuple(poly(0) if a == axis else p for a, p in enumerate(nest.index))
    stride = _stride(source, axis)
    step = _stride(storage, axis)
    load = expressions.load(f"from[k * {to_c(stride)}]", x.dtype)
    first, second = load.replace("k *", "int64_t(a) *"), load.replace("k *", "int64_t(b) *")
    less = f"{second} < {first}" if descending else f"{first} < {second}"
    if x.dtype in FLOATS:
        nan_a, nan_b = f"({first} != {first})", f"({second} != {second})"
        less = f"({less}) || ({nan_a} && !{nan_b})" if descending else f"({less}) || (!{nan_a} && {nan_b})"
    extent = to_c(value.shape[axis])
    out = ["{"]
    for a in others:
        out.append(f"for (int64_t {nest.vars[a]} = 0; {nest.vars[a]} < {to_c(value.shape[a])}; ++{nest.vars[a]}) {{")
    pointer = f"&{source.name}" if source.scalar else f"{source.name} + {to_c(Elements.offset_in(source, zero))}"
    target = f"&{storage.name}" if storage.scalar else f"{storage.name} + {to_c(Elements.offset_in(storage, zero))}"
    out += [
        f"const auto* from = {pointer};",
        f"int64_t* to = {target};",
        f"int64_t* order = scratch<int64_t, 30>({extent});",
        f"for (int64_t k = 0; k < {extent}; ++k) order[k] = k;",
        f"std::stable_sort(order, order + {extent}, [&](int64_t a, int64_t b) {{ return {less}; }});",
        f"for (int64_t k = 0; k < {extent}; ++k) to[k * {to_c(step)}] = order[k];",
    ]
    scheduler.out += [*out, *["}" for _ in others], "}"]
    value.storage = storage
    _count_work(scheduler, value.shape, 40)


def _stride(storage: Storage, axis: int) -> Poly:
    stride = poly(1)
    for extent in storage.extents[axis + 1 :]:
        stride = stride * extent
    return stride


def _count_work(scheduler: Scheduler, shape: tuple[Poly, ...], cost: int) -> None:
    size = poly(cost)
    for extent in (*shape, *scheduler.trips):
        size = size * extent
    scheduler.work = scheduler.work + size
