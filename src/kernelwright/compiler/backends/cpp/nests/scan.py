"""Running reductions: cumulative sums, products, maxima.

In: the scheduler and a scan value. Out: lines appended to the scheduler, the value's storage set. Along contiguous rows, pieces of a
row are computed into a buffer in the first cache and scanned in registers; across columns, a row of running values takes
one row after another. Sums and products of floats run in double, as torch's do: thousands of roundings would add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelwright.compiler.lower import c_expressions
from kernelwright.compiler.lower.c_family.elements import Elements
from kernelwright.compiler.lower.c_family.nest import Nest
from kernelwright.compiler.lower.c_family.reach import reads
from kernelwright.compiler.lower.c_family.scalars import Lines, Scalar
from kernelwright.compiler.lower.c_types import COMPUTED, literal
from kernelwright.compiler.lower.element_index import Index
from kernelwright.compiler.lower.element_index import offset as offset_of
from kernelwright.compiler.lower.tile_values import MATERIALIZED, PickAccess, SpanAccess, Storage, StoreEffect, Value
from kernelwright.core.dtypes import FLOATS
from kernelwright.core.operations import neutral
from kernelwright.sketch.index import Poly, combine, poly, to_c
from kernelwright.sketch.nodes import DType

if TYPE_CHECKING:
    from kernelwright.compiler.backends.cpp.schedule import Scheduler

PIECE = 512
"""Elements of a row that are computed before they are scanned."""
RUNNING = {"sum": "RunningSum", "prod": "RunningProduct", "max": "RunningMaximum", "min": "RunningMinimum"}


def scan(scheduler: Scheduler, value: Value) -> None:
    """The last other axis is a SIMD loop where there is one and it lies inside the scanned one; else rows are scanned in registers."""
    scheduler.pre_make(value, set())
    storage = scheduler.declare(value)
    _write(scheduler, value, storage, None)
    value.storage = storage


def into_tensor(scheduler: Scheduler, effect: StoreEffect) -> bool:
    """Writes a scan that only this store needs straight into the tensor, with what is done to each element on the way, if its
    every element has a place there."""
    value = _under(scheduler, effect)
    if value is None or value.storage is not None or effect.mode != "set" or scheduler.usage.consumers.get(value) != 1:
        return False
    if any(isinstance(axis, PickAccess) for axis in effect.axes):
        return False
    tensor = scheduler.context.tensors[effect.tensor]
    nest = Nest(scheduler.context, value.shape, [], set())
    trial = nest.elements({})
    spans = sum(isinstance(axis, SpanAccess) for axis in effect.axes)
    if spans != len(value.shape) or trial.outside(tensor.shape, trial.positions(effect.axes, nest.index)):
        return False
    scheduler.pre_make(value, set())
    for other in scheduler.pending([effect.value]):
        if other is not value:
            scheduler.make(other)
    _write(scheduler, value, None, effect)
    return True


def _under(scheduler: Scheduler, effect: StoreEffect) -> Value | None:
    """The one scan of rows that a store is made of, if each of its elements goes into the element at its own place."""
    if effect.value.op == "scan":
        return effect.value
    materialized = [v for v in scheduler.pending([effect.value]) if v.op in MATERIALIZED]
    if len(materialized) != 1 or materialized[0].op != "scan":
        return None
    found = materialized[0]
    alike = effect.value.dtype is found.dtype is DType.f32 and effect.value.shape == found.shape
    inside = effect.value
    while inside is not found:
        above = [v for v in inside.operands if reads(v, found)]
        if inside.op not in ("unary", "binary", "where", "cast") or inside.kept or len(above) != 1:
            return None
        (inside,) = above
        alike = alike and inside.shape == found.shape
    return found if alike and _in_registers(found) else None


def _in_registers(value: Value) -> bool:
    """Whether rows are scanned in registers: those of floats along the last axis."""
    op, axis, _, _ = value.data
    last = all(extent.constant == 1 for extent in value.shape[axis + 1 :])
    return last and op in RUNNING and value.args[0].dtype in FLOATS


def _write(scheduler: Scheduler, value: Value, storage: Storage | None, effect: StoreEffect | None) -> None:
    job = _Job.of(scheduler, value, storage, effect)
    if job.registers:
        scheduler.out += _rows(scheduler, job)
    else:
        scheduler.out += _steps(job)
    scheduler.count_work(value.shape, 4)


@dataclass
class _Job:
    """One scan with its loops: `outer` axes, the scanned one, and `inner`, the SIMD axis (None: rows)."""

    value: Value
    storage: Storage | None  # where the result goes, or
    effect: StoreEffect | None  # the store that it is for
    nest: Nest
    outer: list[int]
    inner: int | None
    registers: bool  # whether rows are scanned in registers, piece by piece
    index: Index  # of the element, the scanned axis in scan order; where rows are scanned in registers, in the order of memory
    elements: Elements
    lines: Lines
    text: str  # the element as C
    body: list[str]  # lines it needs
    piece: str  # the buffer of a piece of a row, and
    at: str  # the place in it
    done: str = ""  # what is stored for an element, if that is not the scanned one itself
    doing: tuple[str, ...] = ()  # lines it needs

    @staticmethod
    def of(scheduler: Scheduler, value: Value, storage: Storage | None, effect: StoreEffect | None) -> _Job:
        _, axis, reverse, _ = value.data
        nest = Nest(scheduler.context, value.shape, [], set())
        others = [a for a, e in enumerate(value.shape) if e.constant != 1 and a != axis]
        inner = others[-1] if others and others[-1] > axis else None
        outer = [a for a in others if a != inner]
        order = [*outer, axis, *([inner] if inner is not None else [])]
        extent = value.shape[axis]
        registers = _in_registers(value)
        at = extent - 1 - poly(nest.vars[axis]) if reverse and not registers else poly(nest.vars[axis])
        if extent.constant == 1:
            at = poly(0)
        index = tuple(at if a == axis else p for a, p in enumerate(nest.index))
        elements = nest.elements({nest.vars[a]: k + 1 for k, a in enumerate(order)})
        element = elements.of(value.args[0], index)
        lines = Lines(len(order), scheduler.context.taken | set(nest.vars.values()))
        lines.count([element])
        text = lines.write(element, len(order), False)
        piece, at_ = (scheduler.builder.fresh(stem) for stem in ("piece", "at"))
        job = _Job(
            value,
            storage,
            effect,
            nest,
            outer,
            inner,
            registers,
            index,
            elements,
            lines,
            text,
            lines.forget_inner(),
            piece,
            at_,
        )
        if effect is not None and effect.value is not value:
            elements.known(value, index, Scalar(f"{piece}[{at_}]", (), value.dtype, len(order)))
            final = elements.of(effect.value, index)
            lines.count([final])
            job.done = lines.write(final, len(order), False)
            job.doing = tuple(lines.forget_inner())
        return job

    def opened(self) -> list[str]:
        """The outer loops, with the lines that belong into each."""
        out = ["{", *self.lines.lines[0]]
        for k, a in enumerate(self.outer):
            name = self.nest.vars[a]
            out += [f"for (int64_t {name} = 0; {name} < {to_c(self.value.shape[a])}; ++{name}) {{", *self.lines.lines[k + 1]]
        return out

    def closed(self) -> list[str]:
        return ["}" for _ in self.outer] + ["}"]

    def place(self) -> tuple[str, Poly]:
        """Where an element of the result goes: memory and offset."""
        if self.storage is not None:
            return self.storage.name, Elements.offset_in(self.storage, self.index)
        assert self.effect is not None
        tensor = self.elements.tensors[self.effect.tensor]
        return tensor.pointer, offset_of(tensor.strides, self.elements.positions(self.effect.axes, self.index))

    def slot(self) -> str:
        memory, offset = self.place()
        return memory if self.storage is not None and self.storage.scalar else f"{memory}[{to_c(offset)}]"


def _rows(scheduler: Scheduler, job: _Job) -> list[str]:
    """Pieces of a row, each computed by a SIMD loop and then scanned in registers, four doubles at a time; a scan from the end takes
    the last piece first, and each piece from its end."""
    op, axis, reverse, exclusive = job.value.data
    dtype = job.value.args[0].dtype
    extent = job.value.shape[axis]
    var, whole = job.nest.vars[axis], to_c(extent)
    carry, begin, count = (scheduler.builder.fresh(stem) for stem in ("carry", "begin", "count"))
    piece, at = job.piece, job.at
    scheduler.context.taken.update((carry, begin, piece, count, at))
    memory, offset = job.place()
    step = offset.coefficient(var)
    put = [f"{job.slot()} = {c_expressions.store(f'{piece}[{at}]', job.value.dtype)};", "}"]
    if memory in scheduler.context.streamed and step is not None and step.constant == 1:
        first = to_c(offset.substitute({var: poly(begin)}))
        leave = [f"stream(&{memory}[{first}], {piece}, {count});"]
    else:
        leave = []
    simd = f"#pragma omp simd\nfor (int64_t {at} = 0; {at} < {count}; ++{at}) {{"
    here = f"const int64_t {var} = {begin} + {at};"
    last = to_c(combine("//", extent - 1, poly(PIECE)) * PIECE)
    pieces = (
        f"{begin} = {last}; {begin} >= 0; {begin} -= {PIECE}"
        if reverse
        else f"{begin} = 0; {begin} < {whole}; {begin} += {PIECE}"
    )
    how = f"{RUNNING[op]}, {'true' if exclusive else 'false'}{', true' if reverse else ''}"
    return [
        *job.opened(),
        f"double {carry} = {RUNNING[op]}::start;",
        f"for (int64_t {pieces}) {{",
        f"alignas(64) {COMPUTED[dtype]} {piece}[{PIECE}];",
        f"const int64_t {count} = min_of<int64_t>({whole} - {begin}, {PIECE});",
        *[simd, here, *job.body, f"{piece}[{at}] = {job.text};", "}"],
        *_fetches(job, begin),
        f"{carry} = running<{how}>({piece}, {count}, {carry});",
        *([simd, here, *job.doing, f"{piece}[{at}] = {job.done};", "}"] if job.done else []),
        *(leave or [simd, here, *put]),
        "}",
        *job.closed(),
    ]


def _fetches(job: _Job, begin: str) -> list[str]:
    """What the next piece reads is asked for while this one is scanned: the scan itself asks for nothing."""
    var = job.nest.vars[job.value.data[1]]
    ahead = -PIECE if job.value.data[2] else PIECE
    tensors = {tensor.pointer for tensor in job.elements.tensors.values()}
    out = []
    for place in dict.fromkeys(job.elements.places):
        step = place.offset.coefficient(var)
        if place.memory in tensors and not place.writes and step is not None and step.constant in (1, -1):
            line = 64 // place.width.size
            following = place.offset.substitute({var: poly(begin) + ahead + poly("next")})
            loop = f"for (int64_t next = 0; next < {PIECE}; next += {line})"
            out.append(f"{loop} __builtin_prefetch(&{place.memory}[{to_c(following)}]);")
    return out


def _steps(job: _Job) -> list[str]:
    """One position after another; a SIMD loop takes all columns of it."""
    op, axis, _, exclusive = job.value.data
    dtype = job.value.args[0].dtype
    wide = DType.f64 if op in ("sum", "prod") and dtype in FLOATS else dtype
    kind = COMPUTED[wide]
    start = literal(neutral(op, wide), wide)
    scanned, extent = job.nest.vars[axis], to_c(job.value.shape[axis])
    running = f"running[{job.nest.vars[job.inner]}]" if job.inner is not None else "running"
    update = f"{running} = {c_expressions.reduction(op, running, f'({job.text})', wide)};"
    result = c_expressions.cast(running, wide, dtype)
    write = f"{job.slot()} = {c_expressions.store(result, dtype)};"
    body = [*job.body, *([write, update] if exclusive else [update, write])]
    out = job.opened()
    if job.inner is None:
        out += [f"{kind} running = {start};", f"for (int64_t {scanned} = 0; {scanned} < {extent}; ++{scanned}) {{", *body, "}"]
        return [*out, *job.closed()]
    width = job.value.shape[job.inner]
    fits = width.constant is not None and width.constant <= 8192
    holder = f"{kind} running[{width.constant}];" if fits else f"{kind}* running = scratch<{kind}, 31>({to_c(width)});"
    name = job.nest.vars[job.inner]
    out += [holder, f"for (int64_t k = 0; k < {to_c(width)}; ++k) running[k] = {start};"]
    out += [f"for (int64_t {scanned} = 0; {scanned} < {extent}; ++{scanned}) {{", *job.lines.lines[len(job.outer) + 1]]
    out += [f"#pragma omp simd\nfor (int64_t {name} = 0; {name} < {to_c(width)}; ++{name}) {{", *body, "}", "}"]
    return [*out, *job.closed()]
