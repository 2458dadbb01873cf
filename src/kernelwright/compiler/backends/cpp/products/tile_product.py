"""How a tile product of a sketch becomes calls of the micro-kernel (micro_kernel.py): where operands lie, what is copied, what is one call.

In: the scheduler and a `gemm` value, or a loop around one. Out: lines appended to the scheduler, the value's storage set.

* An operand that lies in memory as an affine view of the right dtype is used in place, or copied by a packing function of the
  prelude where its place is bad for the caches; anything else (a fused prologue, a padded border) is computed into a tile first.
* Loops around a product that only add to one accumulator are one call, too (sums.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelwright.compiler.backends.cpp.codegen_options import CodegenOptions
from kernelwright.compiler.backends.cpp.products import bf16, micro_kernel
from kernelwright.compiler.lower.c_family.nest import Materialize, Nest
from kernelwright.compiler.lower.tile_values import VIEWS, Carried, LoopEffect, Storage, Value
from kernelwright.sketch.index import Poly, combine, poly, to_c
from kernelwright.sketch.nodes import DType

if TYPE_CHECKING:
    from kernelwright.compiler.backends.cpp.schedule import Scheduler

FAR_BYTES = 1024
"""Elements of A that follow each other in k this far apart meet in few sets of the cache: then A is copied into blocks."""
WIDEST_STRIP = 256
"""Bytes of the widest strip of columns that any machine's registers hold."""
PLANES_MEET = 1024
"""Several products whose distance is a multiple of this many bytes meet in few sets of the first cache when they are read together."""


@dataclass(frozen=True)
class View:
    """An operand in memory: element (r, c) is `memory[offset + r * row + c * column]`, for r below `rows` and c below `columns`;
    beyond them (the tensor ends inside the last tile) the operand is zero and adds nothing."""

    memory: str
    offset: Poly
    row: Poly
    column: Poly
    storage: Storage | None
    rows: Poly
    columns: Poly
    batch: Poly  # how far one operand of several lies from the next

    def pointer(self, values: dict[str, Poly] | None = None) -> str:
        offset = self.offset.substitute(values or {})
        return self.memory if offset.constant == 0 else f"{self.memory} + {to_c(offset)}"


def view(scheduler: Scheduler, x: Value, dtype: DType) -> View | None:
    """The operand as it lies in a tensor or a kept tile, if it does: affine, inside, of this dtype."""
    if x.dtype is not dtype:
        return None
    leaf = x
    while leaf.storage is None and leaf.op in VIEWS:
        leaf = leaf.args[0]
    if leaf.storage is None and (leaf.op != "load" or leaf.kept):
        return None
    if leaf.storage is not None and leaf.storage.scalar:
        return None
    nest = Nest(scheduler.context, x.shape, [], set())
    elements = nest.elements({var: k + 1 for k, var in nest.vars.items()})
    elements.of(x, tuple(map(poly, nest.vars.values())))
    if len(elements.places) != 1 or elements.picks:
        return None
    zero = leaf.op != "load" or leaf.data.pad in (None, 0)
    limits = _limits(elements.borders, nest, x.shape) if zero or not elements.borders else None
    if limits is None:
        return None
    place = elements.places[0]
    strides = [place.offset.coefficient(var) for var in nest.vars.values()]
    known = [stride for stride in strides if stride is not None and not set(nest.vars.values()) & stride.names]
    if len(known) != len(strides) or limits[:-2] != x.shape[:-2]:
        return None
    base = place.offset.substitute(dict.fromkeys(nest.vars.values(), poly(0)))
    batch = known[0] if len(known) == 3 else poly(0)
    return View(place.memory, base, known[-2], known[-1], leaf.storage, limits[-2], limits[-1], batch)


def _limits(borders: list[Poly], nest: Nest, shape: tuple[Poly, ...]) -> tuple[Poly, ...] | None:
    """How much of each axis lies inside, if each border is the end of one axis; None for any other border."""
    extents = list(shape)
    names = set(nest.vars.values())
    for border in dict.fromkeys(borders):
        axis = next((k for k in nest.vars if names & border.names == {nest.vars[k]}), None)
        step = border.coefficient(nest.vars[axis]) if axis is not None else None
        if axis is None or step is None or step.constant != -1:
            return None
        extents[axis] = combine("min", extents[axis], border.substitute({nest.vars[axis]: poly(0)}) + 1)
    return tuple(extents)


# ---------------------------------------------------------------- one product


@dataclass(frozen=True)
class Left:
    """A as the micro-kernel takes it: C texts of pointer and strides, and how much of it there is; `block` is empty if its rows lie at
    equal distances."""

    pointer: str
    row: str
    step: str
    rows: Poly
    depth: Poly
    block: str = ""


@dataclass(frozen=True)
class Right:
    """B likewise; `panel` is empty if B is used in place. `room` is a buffer for panels where B lies along k, with columns `panel`
    apart, and the product packs it strip by strip."""

    pointer: str
    step: str
    panel: str
    depth: Poly
    columns: Poly
    room: str = ""


def product(scheduler: Scheduler, value: Value) -> None:
    """A tile product: operands in place, packed or computed; sums in the carried tile where there is one."""
    if len(value.shape) == 3:
        several(scheduler, value)
        return
    a, b = value.args[:2]
    element = micro_kernel.ELEMENT[value.dtype]
    for inner in scheduler.pending([a, b]):
        scheduler.make(inner)
    pair = bf16.operands(scheduler, value)
    mark = len(scheduler.out)
    left = left_operand(scheduler, a, value)
    right = right_operand(scheduler, b, value)
    copies = scheduler.out[mark:]
    del scheduler.out[mark:]
    whole = left.rows == value.shape[0] and right.columns == value.shape[1]
    fresh = begin_sum(scheduler, value, whole=whole)
    target = value.storage
    assert target is not None
    depth = combine("min", left.depth, right.depth)
    loop = micro_kernel.Loop(to_c(depth), left.step, right.step)
    call = micro_kernel.call(
        value.dtype, to_c(left.rows), to_c(right.columns), [loop], left.pointer, left.row, left.block, right.pointer,
        right.panel or f"PANEL<{element}>", target.name, to_c(target.extents[-1]), fresh, right.room,
    )  # fmt: skip
    lines = [*copies, call]
    if pair is not None:
        lines = [
            bf16.CONDITION,
            *bf16.lines(scheduler, value, pair, target, fresh),
            "#else",
            *lines,
            "#endif",
        ]
    scheduler.out += lines
    count_work(scheduler, (*value.shape, a.shape[1]))


def several(scheduler: Scheduler, value: Value) -> None:
    """As many products as the leading axis has, one call each; operands in place or computed."""
    a, b = value.args
    panel = 64 // value.dtype.size
    views = []
    for operand, in_place in ((a, True), (b, False)):
        root = root_of(operand)
        if root.storage is None and (root.kept or not in_place):
            for inner in scheduler.pending([root]):
                scheduler.make(inner)
            scheduler.make(root)
        found = view(scheduler, operand, value.dtype)
        if found is None or (not in_place and (found.column.constant != 1 or (found.rows, found.columns) != b.shape[1:])):
            storage = computed(scheduler, operand, value)
            row = storage.extents[-1]
            _, down, along = operand.shape
            found = View(storage.name, Poly(), row, poly(1), storage, down, along, row * down)
        views.append(found)
    left, right = views
    pitch = combine("//", value.shape[2] + panel - 1, poly(panel)) * panel
    rows = value.shape[1]
    if (rows * pitch * value.dtype.size).constant in range(0, 1 << 31, PLANES_MEET):
        rows = rows + 1
    target = Storage(scheduler.builder.fresh(value.name or "products"), value.shape, value.dtype, pitch, rows)
    scheduler.declare_storage(target)
    value.storage = target
    if left.rows != value.shape[1]:  # rows beyond the end of A are zero
        zero = scheduler.builder.number(0, value.dtype, value.shape)
        scheduler.emit(Nest(scheduler.context, value.shape, [Materialize(target, zero, ())], set()), value.shape)
    which = poly(scheduler.builder.fresh("p"))
    loop = micro_kernel.Loop(to_c(combine("min", left.columns, right.rows)), to_c(left.column), to_c(right.row))

    def moved(memory: str, offset: Poly) -> str:
        return f"{memory} + {to_c(offset)}"

    call = micro_kernel.call(
        value.dtype, to_c(left.rows), to_c(value.shape[2]), [loop], moved(left.memory, left.offset + which * left.batch),
        to_c(left.row), "", moved(right.memory, right.offset + which * right.batch), f"PANEL<{micro_kernel.ELEMENT[value.dtype]}>",
        moved(target.name, which * pitch * rows), to_c(pitch), "true",
    )  # fmt: skip
    var = to_c(which)
    scheduler.out += [f"for (int64_t {var} = 0; {var} < {to_c(value.shape[0])}; ++{var})", f"  {call}"]
    count_work(scheduler, (*value.shape, a.shape[2]))


def begin_sum(scheduler: Scheduler, value: Value, *, whole: bool) -> str:
    """Gives the product its storage: the carried tile itself if nobody else reads it. Returns the C text of "starts from zero"; a
    product that does not cover the `whole` tile adds to one that was set to zero."""
    acc = value.args[2] if len(value.args) == 3 else None
    if acc is not None:
        for inner in scheduler.pending([acc]):
            scheduler.make(inner)
    if acc is not None and acc.op == "stored" and scheduler.usage.consumers.get(acc) == 1 and acc.home is value.home:
        value.storage = acc.storage
        return scheduler.first_sums.get(acc, "false")
    carried = _rescaled(scheduler, acc, value) if acc is not None else None
    if acc is not None and carried is not None:
        scheduler.emit(Nest(scheduler.context, value.shape, [Materialize(carried, acc, ())], set()), value.shape)
        value.storage = carried
        return "false"
    storage = scheduler.declare(value)
    value.storage = storage
    if acc is None or (acc.op == "const" and acc.data == 0):
        if whole:
            return "true"
        acc = scheduler.builder.number(0, value.dtype, value.shape)
    scheduler.emit(Nest(scheduler.context, value.shape, [Materialize(storage, acc, ())], set()), value.shape)
    return "false"


def first_sum(scheduler: Scheduler, loop: LoopEffect, item: Carried) -> str | None:
    """The C text of "this is the first iteration" for a carried tile of zeros that the body only adds one product to, which covers all
    of it: that product then overwrites the tile, and nobody has to set it to zero. None if the tile must be."""
    value, zero = item.final, item.initial
    trips = loop.stop - loop.start
    if value is None or value.op != "gemm" or len(value.shape) != 2 or value.home is not loop.body:
        return None
    if zero is None or zero.op != "const" or zero.data != 0 or value.args[2:] != (item.inside,):
        return None
    if scheduler.usage.consumers.get(item.inside) != 1 or trips.constant is None or trips.constant <= 0:
        return None
    for operand, axis in zip(value.args[:2], (0, 1), strict=True):
        extent = _covered(scheduler, operand, value, axis)
        if extent is not None and extent != value.shape[axis]:
            return None
    return f"{loop.var} == {to_c(loop.start)}"


def _covered(scheduler: Scheduler, operand: Value, value: Value, axis: int) -> Poly | None:
    """How much of a product's axis an operand reaches where it is read in place; None: it is computed, and reaches all of it."""
    panels = panels_in_memory(scheduler, operand, value, 64 // value.dtype.size) if axis else None
    if panels is not None:
        return panels.columns
    found = view(scheduler, operand, value.dtype)
    return None if found is None else (found.columns if axis else found.rows)


def _rescaled(scheduler: Scheduler, acc: Value, value: Value) -> Storage | None:
    """The carried tile behind an accumulator that is elementwise in it (attention's rescaled output), if it may be changed in place:
    nobody else reads it, and each element is read only for itself."""
    at = acc
    while at.storage is None and at.op in ("unary", "binary", "cast"):
        inner = [arg for arg in at.args if arg.shape == value.shape and arg.op in ("stored", "unary", "binary", "cast")]
        if len(inner) != 1:
            return None
        at = inner[0]
    alone = at.op == "stored" and at is not acc and scheduler.usage.consumers.get(at) == 1
    if not alone or at.shape != value.shape or at.dtype is not value.dtype or at.home is not value.home:
        return None
    return at.storage


def left_operand(scheduler: Scheduler, a: Value, gemm_value: Value) -> Left:
    """A in place, or a copy of it."""
    found = view(scheduler, a, gemm_value.dtype)
    if found is None:
        storage = computed(scheduler, a, gemm_value)
        name = f"&{storage.name}" if storage.scalar else storage.name
        return Left(name, to_c(storage.extents[-1]), "1", a.shape[0], a.shape[1])
    step = found.column.constant
    rows = a.shape[0].constant
    copying = scheduler.context.options.copy_left
    far = step is None or step * a.dtype.size >= FAR_BYTES or copying == 2
    many = rows is None or rows > CodegenOptions.pack_above_rows
    if copying and found.storage is None and found.row.constant == 1 and far and many:
        # transposed in memory; a block of registers has at most 12 rows
        copy = buffer(scheduler, "a_blocks", (a.shape[1], a.shape[0] + 12), gemm_value)
        pieces = (to_c(found.rows), to_c(found.columns), found.pointer(), to_c(found.column), copy.name)
        scheduler.out.append(f"pack_blocks({', '.join(pieces)});")
        depth = to_c(found.columns)
        return Left(copy.name, "1", "BLOCK_ROWS", found.rows, found.columns, micro_kernel.block_of(depth))
    return Left(found.pointer(), to_c(found.row), to_c(found.column), found.rows, found.columns)


def right_operand(scheduler: Scheduler, b: Value, gemm_value: Value) -> Right:
    """B in place, as panels that a kernel before this one arranged, or copied or computed into panels."""
    panel = 64 // gemm_value.dtype.size
    arranged = panels_in_memory(scheduler, b, gemm_value, panel)
    if arranged is not None:
        return arranged
    found = view(scheduler, b, gemm_value.dtype)
    rows = gemm_value.shape[0].constant
    few = rows is not None and rows < scheduler.context.options.pack_above_rows
    depth, columns = b.shape
    if found is not None and found.column.constant == 1:
        whole = found.columns.constant is not None and found.columns.constant % panel == 0
        if (found.storage is not None) or (few and whole):
            return Right(found.pointer(), to_c(found.row), "", found.rows, found.columns)
    if found is not None and 1 in (found.column.constant, found.row.constant) and not (few and found.column.constant != 1):
        if found.column.constant != 1:
            panels = buffer(scheduler, "panels", (depth, poly(WIDEST_STRIP // gemm_value.dtype.size)), gemm_value)
            return Right(found.pointer(), str(panel), to_c(found.column), found.rows, found.columns, panels.name)
        width = combine("//", columns + panel - 1, poly(panel)) * panel
        panels = buffer(scheduler, "panels", (depth, width), gemm_value)
        pieces = (to_c(found.rows), to_c(found.columns), found.pointer(), to_c(found.row), panels.name)
        scheduler.out.append(f"pack_rows({', '.join(pieces)});")
        return Right(panels.name, str(panel), to_c(found.rows * panel), found.rows, found.columns)
    panels_of = None if few or found is not None else as_panels(scheduler, b, gemm_value, panel)
    if panels_of is not None:
        scheduler.make(panels_of)
        assert panels_of.storage is not None
        return Right(panels_of.storage.name, str(panel), to_c(depth * panel), depth, columns)
    storage = computed(scheduler, b, gemm_value)
    return Right(storage.name, to_c(storage.extents[-1]), "", depth, columns)


def panels_in_memory(scheduler: Scheduler, b: Value, gemm_value: Value, panel: int) -> Right | None:
    """B where the sketch loads it as panels [n / panel, k, panel] and turns them to [k, n]: the micro-kernel reads such panels as they
    are."""
    if b.op != "reshape" or b.kept or b.storage is not None or b.dtype is not gemm_value.dtype:
        return None
    transposed = b.args[0]
    if transposed.op != "permute" or transposed.data != (1, 0, 2):
        return None
    load = transposed.args[0]
    if (
        load.op != "load"
        or load.kept
        or load.storage is not None
        or load.shape[2].constant != panel
        or load.data.pad not in (None, 0)
    ):
        return None
    nest = Nest(scheduler.context, load.shape, [], set())
    elements = nest.elements(dict.fromkeys(nest.vars.values(), 1))
    elements.of(load, nest.index)
    limits = _limits(elements.borders, nest, load.shape)
    offset = elements.places[0].offset
    across, down, along = (offset.coefficient(nest.vars[k]) for k in range(3))
    if limits is None or across is None or down is None or along is None or elements.picks:
        return None
    if along.constant != 1 or down.constant is None:
        return None
    base = offset.substitute(dict.fromkeys(nest.vars.values(), poly(0)))
    pointer = elements.places[0].memory if base.constant == 0 else f"{elements.places[0].memory} + {to_c(base)}"
    return Right(pointer, to_c(down), to_c(across), limits[1], limits[0] * panel)


def as_panels(scheduler: Scheduler, b: Value, gemm_value: Value, panel: int) -> Value | None:
    """B as a tile [n / panel, k, panel], to be computed straight into panels; None where borders or odd widths forbid it."""
    depth, columns = b.shape
    if columns.constant is None or columns.constant % panel or b.kept or b.storage is not None:
        return None
    if b.dtype is not gemm_value.dtype:
        b = scheduler.builder.value("cast", (b,), b.shape, gemm_value.dtype)
    for inner in scheduler.pending([b]):
        scheduler.make(inner)
    cut = scheduler.builder.value("reshape", (b,), (depth, poly(columns.constant // panel), poly(panel)), b.dtype)
    transposed = scheduler.builder.value("permute", (cut,), (cut.shape[1], depth, cut.shape[2]), b.dtype, (1, 0, 2))
    nest = Nest(scheduler.context, transposed.shape, [], set())
    elements = nest.elements(dict.fromkeys(nest.vars.values(), 1))
    elements.of(transposed, nest.index)
    if elements.borders:
        return None
    for made in (b, cut, transposed):
        made.home = gemm_value.home
    transposed.name = "panels"
    return transposed


def computed(scheduler: Scheduler, x: Value, gemm_value: Value) -> Storage:
    """An operand computed element by element into a tile of the accumulator's dtype."""
    if x.dtype is not gemm_value.dtype:
        x = scheduler.builder.value("cast", (x,), x.shape, gemm_value.dtype)
        x.home = gemm_value.home
    for inner in scheduler.pending([x]):
        scheduler.make(inner)
    if x.storage is not None and x.storage.pitch is None and not x.storage.scalar:
        # kept, but not with padded rows: once more into a tile of its own
        x = scheduler.builder.value("reshape", (x,), x.shape, x.dtype)
        x.home = gemm_value.home
    scheduler.make(x)
    assert x.storage is not None
    return x.storage


def buffer(scheduler: Scheduler, stem: str, shape: tuple[Poly, ...], gemm_value: Value) -> Storage:
    storage = Storage(scheduler.builder.fresh(stem), shape, gemm_value.dtype)
    scheduler.declare_storage(storage)
    return storage


def root_of(x: Value) -> Value:
    """What a chain of views shows, or the first of them that is kept."""
    while x.storage is None and x.op in VIEWS:
        x = x.args[0]
    return x


def count_work(scheduler: Scheduler, extents: tuple[Poly, ...]) -> None:
    size = poly(1)
    for extent in (*extents, *scheduler.trips):
        size = size * extent
    scheduler.work = scheduler.work + size
