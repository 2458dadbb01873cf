"""A tile product inside a block's work (attention's scores, a small layer): each thread sums a few rows by a few columns in registers.

In: the scheduler and a `gemm` value. Out: lines appended to it, the value's storage set. Operands that are dear to compute are kept
in shared memory first; plain loads are read where they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelwright.compiler.lower import c_expressions
from kernelwright.compiler.lower.c_family.elements import Elements
from kernelwright.compiler.lower.c_family.materialize import cost_of
from kernelwright.compiler.lower.c_family.nest import Materialize, Nest
from kernelwright.compiler.lower.c_family.scalars import Lines
from kernelwright.compiler.lower.c_types import COMPUTED, literal
from kernelwright.compiler.lower.element_index import Index
from kernelwright.compiler.lower.tile_values import VIEWS, Value
from kernelwright.sketch.index import Poly, poly, to_c

if TYPE_CHECKING:
    from kernelwright.compiler.backends.cuda_c.schedule import BlockScheduler

DEAR = 2.5
"""An operand whose element costs more than this is computed once, not once for each row or column of the product."""


def product(scheduler: BlockScheduler, value: Value) -> None:
    """`a @ b (+ acc)`; leading axes are walked one by one."""
    a, b = value.args[:2]
    for operand in (a, b):
        settle(scheduler, operand)
    fresh = _begin(scheduler, value)
    storage = value.storage
    assert storage is not None
    rows, columns, depth = value.shape[-2], value.shape[-1], a.shape[-1]
    high, wide = _factor(rows), _factor(columns)
    nest = Nest(scheduler.context, value.shape, [], set())
    batch = list(range(len(value.shape) - 2))
    known = dict(nest.ranges.known)
    names = {"row": rows, "column": columns, "k": depth}
    fresh_names = {stem: scheduler.builder.fresh(stem) for stem in names}
    r, c, k = (fresh_names[stem] for stem in ("row", "column", "k"))
    known |= {r: (poly(0), _over(rows, high) - 1), c: (poly(0), _over(columns, wide) - 1), k: (poly(0), depth - 1)}
    elements = Elements(scheduler.context.tensors, type(nest.ranges)(known), dict.fromkeys([r, c, k, *nest.vars.values()], 1))
    lead: Index = tuple(nest.index[d] for d in batch)
    left = [elements.of(a, _index(a, (*lead, poly(r) * high + i, poly(k)))) for i in range(high)]
    right = [elements.of(b, _index(b, (*lead, poly(k), poly(c) * wide + j))) for j in range(wide)]
    taken = scheduler.context.taken | set(nest.vars.values()) | {r, c, k, "f", "sum"}
    lines = Lines(1, taken)
    lines.count([*left, *right])
    left_texts = [lines.write(s, 1, False) for s in left]
    right_texts = [lines.write(s, 1, False) for s in right]
    kind = COMPUTED[value.dtype]
    body = [
        *lines.lines[1],
        *(f"const {kind} x{i} = {text};" for i, text in enumerate(left_texts)),
        *(f"const {kind} y{j} = {text};" for j, text in enumerate(right_texts)),
        *(f"sum[{i}][{j}] += x{i} * y{j};" for i in range(high) for j in range(wide)),
    ]
    slots = {
        (i, j): f"{storage.name}[{to_c(Elements.offset_in(storage, (*lead, poly(r) * high + i, poly(c) * wide + j)))}]"
        if not storage.scalar
        else storage.name
        for i in range(high)
        for j in range(wide)
    }
    zero = literal(0, value.dtype)
    begin = [
        f"sum[{i}][{j}] = {zero if fresh else c_expressions.load(slots[i, j], storage.dtype)};"
        for i in range(high)
        for j in range(wide)
    ]
    end = [f"{slots[i, j]} = {c_expressions.store(f'sum[{i}][{j}]', storage.dtype)};" for i in range(high) for j in range(wide)]
    reads = {place.memory for place in elements.places}
    scheduler.touch(reads | {storage.name}, set() if storage.scalar else {storage.name})
    total = _over(rows, high) * _over(columns, wide)
    for d in batch:
        total = total * value.shape[d]
    position = scheduler.position
    decode = [f"const {position} {c} = f % ({to_c(_over(columns, wide))});"]
    rest = f"(f / ({to_c(_over(columns, wide))}))"
    decode.append(f"const {position} {r} = {rest} % ({to_c(_over(rows, high))});")
    rest = f"({rest} / ({to_c(_over(rows, high))}))"
    for d in reversed(batch):
        decode.append(f"const {position} {nest.vars[d]} = {rest} % ({to_c(value.shape[d])});")
        rest = f"({rest} / ({to_c(value.shape[d])}))"
    # a single number is held by every thread alike, so every thread computes it
    head = f"for ({position} f = threadIdx.x; f < {to_c(total)}; f += {scheduler.threads}) {{"
    head = "{ const int f = 0;" if storage.scalar else head
    scheduler.out += [
        "{", *lines.lines[0], head, *decode, f"{kind} sum[{high}][{wide}];", *begin,
        f"for ({position} {k} = 0; {k} < {to_c(depth)}; ++{k}) {{", *body, "}", *end, "}", "}",
    ]  # fmt: skip


def settle(scheduler: BlockScheduler, operand: Value) -> None:
    """Makes what an operand needs; a dear one is kept as a whole."""
    leaf = operand
    while leaf.storage is None and leaf.op in VIEWS and leaf.op != "reshape":
        leaf = leaf.args[0]
    if leaf.storage is None and leaf.op not in ("const", "load", "stored") and cost_of(leaf) > DEAR:
        scheduler.make(leaf)
    for inner in scheduler.pending([operand]):
        scheduler.make(inner)


def _begin(scheduler: BlockScheduler, value: Value) -> bool:
    """Gives the product its storage: the carried tile itself if nobody else reads it. True if the sums start from zero."""
    acc = value.args[2] if len(value.args) == 3 else None
    if acc is None or (acc.op == "const" and acc.data == 0):
        value.storage = scheduler.declare(value)
        return True
    for inner in scheduler.pending([acc]):
        scheduler.make(inner)
    if acc.op == "stored" and scheduler.usage.consumers.get(acc) == 1 and acc.home is value.home:
        value.storage = acc.storage
        return False
    storage = scheduler.declare(value)
    scheduler.emit(Nest(scheduler.context, value.shape, [Materialize(storage, acc, ())], set()), value.shape)
    value.storage = storage
    return False


def _index(operand: Value, index: Index) -> Index:
    own = index[len(index) - len(operand.shape) :]
    return tuple(poly(0) if extent.constant == 1 else p for extent, p in zip(operand.shape, own, strict=True))


def _factor(extent: Poly) -> int:
    size = extent.constant or 1
    return 4 if size % 4 == 0 and size >= 16 else 2 if size % 2 == 0 and size >= 8 else 1


def _over(extent: Poly, by: int) -> Poly:
    return extent if by == 1 else poly((extent.constant or by) // by)
