"""A kernel that is one large product with what comes after it: blocks of the output in registers, operands staged in shared memory.

In: the body of a kernel's parallel loops. Out: a `Launch`, or None where the body is something else. The body must be loops that do
nothing but add tile products to one accumulator (a matrix product, the taps of a convolution), then stores that read each element
of the accumulator for itself. The sketch's own tile is cut into blocks of BM x BN: threads follow the *stored* elements, so that
columns which a convolution computes but never stores cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kernelwright.compiler.backends.cuda_c import cooperate, tensor_cores
from kernelwright.compiler.lower.c_family.elements import Elements
from kernelwright.compiler.lower.c_family.nest import KernelContext, Nest, Store
from kernelwright.compiler.lower.c_family.scalars import Lines, Scalar
from kernelwright.compiler.lower.c_family.schedule import loop_head, region_shape
from kernelwright.compiler.lower.c_types import COMPUTED, literal
from kernelwright.compiler.lower.element_index import Index
from kernelwright.compiler.lower.element_index import offset as offset_of
from kernelwright.compiler.lower.tile_values import (
    MATERIALIZED,
    Block,
    Carried,
    CommentEffect,
    LoopEffect,
    PickAccess,
    Storage,
    StoreEffect,
    Value,
)
from kernelwright.sketch.index import Poly, Ranges, poly, to_c
from kernelwright.sketch.nodes import DType

SIDE = 16
"""Threads stand in a square of 16 x 16."""
THREADS = SIDE * SIDE


@dataclass
class Body:
    """A product as found: the loops around the tile product, outermost first, and the stores after it."""

    loops: list[LoopEffect]
    product: Value
    initial: Value | None
    storages: list[Storage]
    stores: list[StoreEffect]
    comments: list[str]


@dataclass
class Cut:
    """How a product's output is cut: the stored axes that are rows and columns, and the accumulator's position in terms of them."""

    rows: list[int]
    columns: list[int]
    row: Poly
    column: Poly


class _Capturing(Elements):
    """Elements in which the accumulator is an array of registers; remembers at which positions it is read."""

    def of_accumulator(self, body: Body) -> _Capturing:
        self.accumulators = body.storages
        self.product = body.product
        self.seen: list[Index] = []
        return self

    def of(self, value: Value, index: Index) -> Scalar:
        if value is self.product:
            self.seen.append(index)
            return Scalar("sum[i][j]", (), value.dtype, 1)
        return super().of(value, index)

    def stored(self, storage: Storage, index: Index, *, flat: bool = False) -> Scalar:
        if any(storage is known for known in self.accumulators):
            if flat:
                width = storage.shape[1]
                row, column = self.ranges.divide(index[0], width)
                index = (row, column)
            self.seen.append(index)
            return Scalar("sum[i][j]", (), storage.dtype, 1)
        return super().stored(storage, index, flat=flat)


def find(block: Block) -> Body | None:
    """The product of a block, if that is all the block is."""
    effects = [e for e in block.effects if not isinstance(e, CommentEffect)]
    comments = [e.text for e in block.effects if isinstance(e, CommentEffect)]
    if effects and all(isinstance(e, StoreEffect) for e in effects):
        return _without_loops(effects, comments)
    if len(effects) < 2 or not isinstance(effects[0], LoopEffect):
        return None
    stores = [e for e in effects[1:] if isinstance(e, StoreEffect) and e.mode == "set"]
    if len(stores) != len(effects) - 1 or any(isinstance(a, PickAccess) for s in stores for a in s.axes):
        return None
    loops: list[LoopEffect] = []
    at: LoopEffect = effects[0]
    items: list[Carried] = []
    while True:
        if at.kind != "range" or len(at.carried) != 1:
            return None
        item = at.carried[0]
        if items and (item.initial is not items[-1].inside):
            return None
        loops.append(at)
        items.append(item)
        inside = [e for e in at.body.effects if not isinstance(e, CommentEffect)]
        if not inside:
            break
        if len(inside) != 1 or not isinstance(inside[0], LoopEffect):
            return None
        nested = inside[0]
        if item.final is None or item.final.op != "stored" or len(nested.carried) != 1:
            return None
        if item.final.storage is not nested.carried[0].storage:
            return None
        at = nested
    final = items[-1].final
    if (
        final is None
        or final.op != "gemm"
        or len(final.args) != 3
        or final.args[2] is not items[-1].inside
        or len(final.shape) != 2
    ):
        return None
    if items[0].initial is None or not _light(items[0].initial) or not all(_light(x) for x in final.args[:2]):
        return None
    storages = [item.storage for item in items]
    if any(not _light(store.value, storages) for store in stores):
        return None
    return Body(loops, final, items[0].initial, storages, stores, comments)


def _without_loops(effects: list[Any], comments: list[str]) -> Body | None:
    """A product whose whole depth is one tile: the only reduction or product that the stores need."""
    if any(e.mode != "set" or any(isinstance(a, PickAccess) for a in e.axes) for e in effects):
        return None
    materialized: list[Value] = []
    seen: set[int] = set()
    stack = [e.value for e in effects]
    while stack:
        at = stack.pop()
        if at.id in seen:
            continue
        seen.add(at.id)
        if at.op == "stored":
            return None
        if at.op in MATERIALIZED:
            materialized.append(at)
            continue
        stack += at.operands
    if len(materialized) != 1:
        return None
    product = materialized[0]
    if product.op != "gemm" or len(product.shape) != 2 or not all(_light(x) for x in product.args):
        return None
    return Body([], product, product.args[2] if len(product.args) == 3 else None, [], effects, comments)


def _light(value: Value, storages: list[Storage] | None = None) -> bool:
    """True if an element of it can be computed on the spot from tensors (and the accumulator)."""
    seen: set[int] = set()
    stack = [value]
    while stack:
        at = stack.pop()
        if at.id in seen:
            continue
        seen.add(at.id)
        if at.op == "stored":
            if storages is None or not any(at.storage is known for known in storages):
                return False
            continue
        if at.op in MATERIALIZED or at.storage is not None:
            return False
        stack += at.operands
    return True


@dataclass
class Writer:
    """Writes the body of a product kernel."""

    context: KernelContext
    body: Body
    position: str
    fresh: Any
    out: list[str] = field(default_factory=list)

    def write(self) -> tuple[int, int] | None:
        """Fills `out`; gives the number of blocks along rows and columns, or None if the stores do not fit the scheme."""
        body = self.body
        shapes = {tuple(e.constant for e in region_shape(store)) for store in body.stores}
        if len(shapes) != 1 or any(None in shape for shape in shapes):
            return None
        shape = region_shape(body.stores[0])
        if any(e.constant is None for e in (*body.product.shape, body.product.args[0].shape[1])):
            return None
        nest = Nest(self.context, shape, [], set())
        cut = self.cut(nest)
        if cut is None:
            return None
        rows, columns = (_size(nest, axes) for axes in (cut.rows, cut.columns))
        high, wide = self.per_thread(rows, columns)
        depth = body.product.args[0].shape[1].constant or 1
        step = 16 if depth > 8 else 8 if depth > 4 else 4
        narrow = self.narrow(rows, columns, depth)
        if narrow is not None:
            high = wide = 4
        block_rows, block_columns = SIDE * high, SIDE * wide
        self.kernel(nest, cut, rows, columns, high, wide, depth, step, narrow)
        return -(-rows // block_rows), -(-columns // block_columns)

    def narrow(self, rows: int, columns: int, depth: int) -> DType | None:
        """The element type on tensor cores, where the product is one for them."""
        return tensor_cores.element_type(self.body.product) if min(rows, columns) >= 32 and depth >= 16 else None

    @staticmethod
    def per_thread(rows: int, columns: int) -> tuple[int, int]:
        """Elements of a thread along rows and columns: as many as the output has use for."""
        high = 4 if rows >= 48 else 2 if rows >= 24 else 1
        wide = 4 if columns >= 48 else 2 if columns >= 24 else 1
        if rows >= 1024 and columns >= 1024:
            high = wide = 8
        return high, wide

    def cut(self, nest: Nest) -> Cut | None:
        """Which stored axes move the accumulator's row and which its column; None if one moves both or neither."""
        seen: set[Index] = set()
        for store in self.body.stores:
            elements = _Capturing(self.context.tensors, nest.ranges, {}).of_accumulator(self.body)
            elements.of(store.value, _own(store.value, nest.index))
            seen |= set(elements.seen)
        if len(seen) != 1:
            return None
        row, column = seen.pop()
        axes = [a for a, e in enumerate(nest.shape) if e.constant != 1]
        rows = [a for a in axes if nest.vars[a] in row.names]
        columns = [a for a in axes if nest.vars[a] in column.names]
        if set(rows) & set(columns) or set(rows) | set(columns) != set(axes):
            return None
        return Cut(rows, columns, row, column)

    # ------------------------------------------------------------ writing

    def decode(self, nest: Nest, axes: list[int], flat: str) -> list[str]:
        lines = []
        rest = flat
        for number, axis in enumerate(reversed(axes)):
            extent = to_c(nest.shape[axis])
            last = number == len(axes) - 1
            lines.append(f"const {self.position} {nest.vars[axis]} = {rest if last else f'{rest} % ({extent})'};")
            rest = f"({rest} / ({extent}))"
        return lines

    def kernel(
        self, nest: Nest, cut: Cut, rows: int, columns: int, high: int, wide: int, depth: int, step: int, narrow: DType | None
    ) -> None:
        value = self.body.product
        kind = COMPUTED[value.dtype]
        block_rows, block_columns = SIDE * high, SIDE * wide
        pad = 4 if kind == "float" else 2
        out = self.out
        out += [f"// {line}" for text in self.body.comments for line in text.splitlines()]
        if narrow is None:
            out += [
                f"__shared__ {kind} left[{step}][{block_rows + pad}];",
                f"__shared__ {kind} right[{step}][{block_columns + pad}];",
            ]
        else:
            out += tensor_cores.BEGIN.format(kind=tensor_cores.NARROW[narrow][0]).splitlines()
        out += [
            "const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;",
            f"const int row0 = row_block * {block_rows}, column0 = column_block * {block_columns};",
            f"{kind} sum[{high}][{wide}];",
        ]
        self.begin(nest, cut, rows, columns, high, wide)
        for loop in self.body.loops:
            out.append(loop_head(loop).replace("int64_t", self.position, 1) + " {")
        out.append(f"for (int k0 = 0; k0 < {depth}; k0 += {step}) {{")
        a, b = value.args[:2]
        k = self.fresh("k")
        known = {**nest.ranges.known, k: (poly(0), poly(depth - 1))}
        # registers read columns of the left slice, so it lies transposed; tensor cores read both as they are
        slots = ("left[deep][at]", "right[deep][at]") if narrow is None else ("left[at][deep]", "right[deep][at]")
        convert = "{}" if narrow is None else tensor_cores.NARROW[narrow][1]
        self.stage(nest, known, a, (cut.row, poly(k)), k, cut.rows, slots[0], block_rows, "row0", rows, depth, step, convert)
        self.stage(
            nest,
            known,
            b,
            (poly(k), cut.column),
            k,
            cut.columns,
            slots[1],
            block_columns,
            "column0",
            columns,
            depth,
            step,
            convert,
        )
        out.append("__syncthreads();")
        out += self.multiply(kind, high, wide, step) if narrow is None else tensor_cores.STEP.splitlines()
        out += ["__syncthreads();", "}", *("}" for _ in self.body.loops)]
        if narrow is not None:
            out += tensor_cores.END.splitlines()
        self.finish(nest, cut, rows, columns, high, wide)

    @staticmethod
    def multiply(kind: str, high: int, wide: int, step: int) -> list[str]:
        """A slice of the depth, each thread its own elements."""
        return [
            "#pragma unroll",
            f"for (int k = 0; k < {step}; ++k) {{",
            f"{kind} x[{high}], y[{wide}];",
            "#pragma unroll",
            f"for (int i = 0; i < {high}; ++i) x[i] = left[k][ty * {high} + i];",
            "#pragma unroll",
            f"for (int j = 0; j < {wide}; ++j) y[j] = right[k][tx + 16 * j];",
            "#pragma unroll",
            f"for (int i = 0; i < {high}; ++i) {{",
            "#pragma unroll",
            f"for (int j = 0; j < {wide}; ++j) sum[i][j] += x[i] * y[j];",
            "}",
            "}",
        ]

    def each(self, nest: Nest, cut: Cut, rows: int, columns: int, high: int, wide: int, body: list[str]) -> list[str]:
        """Something for each element that a thread owns."""
        return [
            "#pragma unroll",
            f"for (int i = 0; i < {high}; ++i) {{",
            f"const {self.position} row_at = row0 + ty * {high} + i;",
            *self.decode(nest, cut.rows, "row_at"),
            "#pragma unroll",
            f"for (int j = 0; j < {wide}; ++j) {{",
            f"const {self.position} column_at = column0 + tx + 16 * j;",
            f"if (row_at < {rows} && column_at < {columns}) {{",
            *self.decode(nest, cut.columns, "column_at"),
            *body,
            "}",
            "}",
            "}",
        ]

    def begin(self, nest: Nest, cut: Cut, rows: int, columns: int, high: int, wide: int) -> None:
        """What the sums start from."""
        initial = self.body.initial
        dtype = self.body.product.dtype
        self.out += ["#pragma unroll", f"for (int i = 0; i < {high}; ++i) {{", "#pragma unroll"]
        start = literal(initial.data if initial is not None and initial.op == "const" else 0, dtype)
        self.out += [f"for (int j = 0; j < {wide}; ++j) sum[i][j] = {start};", "}"]
        if initial is not None and initial.op != "const":
            elements = Elements(self.context.tensors, nest.ranges, dict.fromkeys(nest.vars.values(), 1))
            lines, text = self.lines(nest, elements, elements.of(initial, _own(initial, (cut.row, cut.column))))
            self.out += self.each(nest, cut, rows, columns, high, wide, [*lines, f"sum[i][j] = {text};"])

    def lines(self, nest: Nest, elements: Elements, scalar: Scalar) -> tuple[list[str], str]:
        taken = self.context.taken | set(nest.vars.values()) | _TAKEN
        lines = Lines(1, taken)
        lines.count([scalar])
        text = lines.write(scalar, 1, False)
        return [*lines.lines[0], *lines.lines[1]], text

    def stage(
        self, nest: Nest, known: dict[str, Any], operand: Value, index: Index, k: str, axes: list[int], slot: str, width: int,
        origin: str, size: int, depth: int, step: int, convert: str,
    ) -> None:  # fmt: skip
        """Copies (computes) a slice of an operand into shared memory; neighbouring threads follow memory."""
        elements = Elements(self.context.tensors, Ranges(known), dict.fromkeys([k, *nest.vars.values()], 1))
        lines, text = self.lines(nest, elements, elements.of(operand, _own(operand, index)))
        along_k = any((stride := place.offset.coefficient(k)) is not None and stride.constant == 1 for place in elements.places)
        flat, deep = (f"e / {step}", f"e % {step}") if along_k else (f"e % {width}", f"e / {width}")
        zero = literal(0, self.body.product.dtype)
        self.out += [
            "#pragma unroll",
            f"for (int e = threadIdx.x; e < {width * step}; e += {THREADS}) {{",
            f"const int at = {flat}, deep = {deep};",
            f"const {self.position} row_at = {origin} + at;",
            f"const {self.position} {k} = k0 + deep;",
            f"{COMPUTED[self.body.product.dtype]} element = {zero};",
            f"if (row_at < {size} && {k} < {depth}) {{",
            *self.decode(nest, axes, "row_at"),
            *lines,
            f"element = {text};",
            "}",
            f"{slot} = {convert.format('element')};",
            "}",
        ]

    def finish(self, nest: Nest, cut: Cut, rows: int, columns: int, high: int, wide: int) -> None:
        """The stores, each element from its register."""
        for store in self.body.stores:
            elements = _Capturing(self.context.tensors, nest.ranges, dict.fromkeys(nest.vars.values(), 1)).of_accumulator(
                self.body
            )
            tensor = self.context.tensors[store.tensor]
            value = elements.of(store.value, _own(store.value, nest.index))
            positions = elements.positions(store.axes, nest.index)
            tests = [elements.condition(p) for p in elements.outside(tensor.shape, positions)]
            place = elements.text(offset_of(tensor.strides, positions))
            lines = Lines(1, self.context.taken | set(nest.vars.values()) | _TAKEN)
            lines.count([value, place, *tests])
            # what depends on the place only is known before the test, the value is computed behind it
            tested = [lines.write(t, 1, False) for t in tests]
            before, lines.lines[1] = [*lines.lines[0], *lines.lines[1]], []
            lines.lines[0] = []
            text, at = lines.write(value, 1, False), lines.write(place, 1, False)
            inside = [*lines.lines[0], *lines.lines[1]]
            line = cooperate.put(
                Store(store.tensor, store.axes, store.value, store.mode), tensor.pointer, at, text, tensor.dtype
            )
            body = [*before, *([f"if ({' && '.join(f'({t})' for t in tested)}) {{"] if tested else []), *inside, line]
            self.out += self.each(nest, cut, rows, columns, high, wide, [*body, *(["}"] if tested else [])])


_WORDS = """
sum i j k k0 e at deep element row_at column_at row0 column0 tx ty left right x y row_block column_block products cores core_left
core_right core_row core_column half_tile
"""
_TAKEN = frozenset(_WORDS.split())
"""C names of a product kernel that no tile may have."""


def _own(value: Value, index: Index) -> Index:
    own = index[len(index) - len(value.shape) :] if value.shape else ()
    return tuple(poly(0) if extent.constant == 1 else p for extent, p in zip(value.shape, own, strict=True))


def _size(nest: Nest, axes: list[int]) -> int:
    size = 1
    for axis in axes:
        size *= nest.shape[axis].constant or 1
    return size
