"""Operations on whole regions: copies, fills, products, reductions, scans, transposes, atomic updates.

In: a call of a `tl.tileop…` as it stands in the tile program. Out: statements of the sketch. A region is read and written as if a
parallel loop went over its elements, so that tensors and a block's own memory are treated as everywhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kernelwright.compiler.backends.tilelang.tileops import NOTHING
from kernelwright.compiler.lift.access import axis
from kernelwright.compiler.lift.tilelang.elements import Elements
from kernelwright.compiler.lift.triton import elements
from kernelwright.compiler.lift.values import Data, Shape, Value
from kernelwright.core.dtypes import FLOATS
from kernelwright.sketch import nodes
from kernelwright.sketch.index import simplify
from kernelwright.sketch.nodes import DType, Index, IndexOp, Int, Tile

_COMBINE = {"sum": "add", "max": "maximum", "min": "minimum"}


@dataclass(frozen=True)
class Region:
    """A box of a buffer."""

    buffer: Any
    start: tuple[Index, ...]
    extents: Shape


class TileOps(Elements):
    """Reads tile operations."""

    def operation(self, call: Any) -> None:
        """A call that stands as a statement."""
        name = str(call.op.name).rpartition(".")[2]
        if name in NOTHING or "print" in name:
            return
        makers: dict[str, Callable[[Any], None]] = {
            "copy": self._copy, "async_copy": self._copy, "tma_copy": self._copy, "fill": self._fill, "gemm": self._gemm,
            "wgmma_gemm": self._gemm, "tcgen05_gemm": self._gemm, "reduce": self._reduce, "cumsum": self._scan, "cummax": self._scan,
            "transpose": self._transpose, "atomicadd": self._update, "atomicmax": self._update, "atomicmin": self._update,
        }  # fmt: skip
        if name in makers:
            makers[name](call)
        elif name.startswith("atomic_") and name.endswith("_elem_op"):
            self._update_element(call, name.removeprefix("atomic_").removesuffix("_elem_op"))
        else:
            raise self.program.refuse(f"{call.op.name}, which has no counterpart in a sketch")

    # ---- regions

    def region(self, call: Any) -> Region:
        """`tl.region(buffer[start…], access, extents…)`, or one element."""
        if type(call).__name__ == "BufferLoad":
            load, extents = call, [1] * len(call.indices)
        else:
            load, extents = call.args[0], [self.number(extent) for extent in call.args[2:]]
        start = []
        for number, at in enumerate(load.indices):
            if type(at).__name__ == "Ramp":
                start.append(self.index(at.base))
                extents[number] = int(at.lanes)
            else:
                start.append(self.index(at))
        return Region(load.buffer, tuple(start), (*(1,) * (len(start) - len(extents)), *extents))

    @contextmanager
    def over(self, extents: Sequence[int]) -> Iterator[None]:
        """All elements of a box at once."""
        if self.lanes:
            raise self.program.refuse("an operation on whole tiles inside a parallel loop")
        self.lanes = tuple(extents)
        yield
        self.lanes = ()

    def _places(self, region: Region, axes: Sequence[int | None]) -> list[Index]:
        """The positions of a region's elements: `axes` says which lane goes along each of its axes."""
        return [
            at if number is None or self.lanes[number] == 1 else simplify(IndexOp("+", at, axis(number)))
            for at, number in zip(region.start, axes, strict=True)
        ]

    def read(self, region: Region, rank: int | None = None) -> Data:
        """The elements of a region as a tile, its last `rank` axes (all of them) where the others have extent 1."""
        count = len(region.extents)
        lead = count - (count if rank is None else rank)
        if lead < 0 or any(extent != 1 for extent in region.extents[:lead]):
            raise self.program.refuse(f"a region of {list(region.extents)} elements where a matrix is wanted")
        with self.over(region.extents[lead:]):
            found = self.element(region.buffer, self._places(region, [*(None,) * lead, *range(count - lead)]))
        return Data(found.full(), found.shape, found.shape, found.dtype)

    def write(self, region: Region, value: Value, mode: str = "set") -> None:
        """A tile into a region: axes of extent 1 come and go."""
        wide = [extent for extent in value.shape if extent != 1]
        if wide and wide != [extent for extent in region.extents if extent != 1]:
            raise self.program.refuse(f"a tile {list(value.shape)} is written to a region of {list(region.extents)} elements")
        shape = tuple(extent for extent in region.extents if extent != 1)
        if isinstance(value, Data) and value.shape and value.shape != shape:
            value = Data(nodes.Reshape(value.full(), tuple(map(Int, shape))), shape, shape, value.dtype)
        lanes = iter(range(len(shape)))
        axes = [next(lanes) if extent != 1 else None for extent in region.extents]
        with self.over(shape):
            self.put(region.buffer, self._places(region, axes), value, mode)

    # ---- operations

    def _copy(self, call: Any) -> None:
        source, goal = self.region(call.args[0]), self.region(call.args[1])
        shape = [extent for extent in goal.extents if extent != 1]
        if [extent for extent in source.extents if extent != 1] != shape:
            raise self.program.refuse(f"a copy of {list(source.extents)} elements to a region of {list(goal.extents)}")
        with self.over(shape):
            places = []
            for region in (source, goal):
                lanes = iter(range(len(shape)))
                places.append(self._places(region, [next(lanes) if extent != 1 else None for extent in region.extents]))
            self.put(goal.buffer, places[1], self.element(source.buffer, places[0]))

    def _fill(self, call: Any) -> None:
        region = self.region(call.args[0])
        self.write(region, self.cast(self.value(call.args[1]), self.dtype(region.buffer.dtype)))

    def _gemm(self, call: Any) -> None:
        program = self.program
        left, right = (self.read(self.region(arg), 2) for arg in call.args[:2])
        goal = self.region(call.args[2])
        turns = [program.decided(self.mask(arg)) for arg in call.args[3:5]]
        clear = program.decided(self.mask(call.args[9]))
        if clear is None:
            raise program.refuse("a product of which it depends on a loop whether it is added")
        if left.dtype is DType.f32:
            note = "T.gemm multiplies fp32 tiles in tf32 on the device; the sketch keeps fp32"
            program.notes += [note] if note not in program.notes else []
        a, b = (nodes.Permute(x.node, (1, 0)) if turn else x.node for x, turn in zip((left, right), turns, strict=True))
        shape = (left.shape[1] if turns[0] else left.shape[0], right.shape[0] if turns[1] else right.shape[1])
        target = self.dtype(goal.buffer.dtype)
        natural = DType.f64 if left.dtype is DType.f64 else DType.f32 if left.dtype in FLOATS else DType.i32
        acc = None if clear else self.read(goal, 2)
        if acc is not None and target is natural:
            product: Tile = nodes.Gemm(a, b, acc.node, line=program.line)
        else:
            # Made in the natural dtype and rounded once, as the device's tensor cores do.
            product = nodes.Gemm(a, b, line=program.line)
            if acc is not None:
                product = nodes.Binary("add", product, nodes.Cast(acc.node, natural))
        self.write(goal, self.cast(Data(product, shape, shape, natural), target))

    def _reduce(self, call: Any) -> None:
        program = self.program
        source, goal = self.region(call.args[0]), self.region(call.args[1])
        name = str(getattr(call.args[2], "value", call.args[2]))
        number, clear = self.number(call.args[3]), program.decided(self.mask(call.args[4]))
        kind = name.removeprefix("abs")
        if kind not in _COMBINE or clear is None:
            raise program.refuse(f"a reduction by {name}")
        data = self.read(source)
        number %= len(data.shape)
        node = nodes.Unary("abs", data.node) if name.startswith("abs") else data.node
        dtype = DType.f32 if data.dtype in (DType.f16, DType.bf16) and kind == "sum" else data.dtype
        if dtype is not data.dtype:
            node = nodes.Cast(node, dtype)
        shape = (*data.shape[:number], *data.shape[number + 1 :])
        made = Data(nodes.Squeeze(nodes.Reduce(kind, node, (number,)), number), shape, shape, dtype)
        if len(goal.extents) == len(data.shape) and goal.extents[number] == 1:
            shape = (*shape[:number], 1, *shape[number:])
            made = Data(nodes.Unsqueeze(made.node, number), shape, shape, dtype)
        if not shape:
            made = Data(nodes.Reshape(made.node, (Int(1),)), (1,), (1,), dtype)
        if not clear:
            before = self.read(goal)
            if before.shape != made.shape:
                raise program.refuse(f"a reduction to {list(made.shape)} is added to {list(before.shape)} elements")
            made = elements.binary(program, _COMBINE[kind], program.as_data(before, dtype), made)
        self.write(goal, made)

    def _scan(self, call: Any) -> None:
        source, goal = self.region(call.args[0]), self.region(call.args[1])
        data = self.read(source)
        reverse = self.program.decided(self.mask(call.args[3]))
        kind = "sum" if str(call.op.name).endswith("cumsum") else "max"
        short = data.dtype in (DType.f16, DType.bf16)
        node = nodes.Cast(data.node, DType.f32) if short else data.node
        number = self.number(call.args[2]) % len(data.shape)
        scanned = nodes.Scan(kind, node, number, reverse=bool(reverse))
        self.write(goal, Data(scanned, data.shape, data.shape, DType.f32 if short else data.dtype))

    def _transpose(self, call: Any) -> None:
        data = self.read(self.region(call.args[0]), 2)
        shape = (data.shape[1], data.shape[0])
        self.write(self.region(call.args[1]), Data(nodes.Permute(data.node, (1, 0)), shape, shape, data.dtype))

    # ---- atomic updates

    def _update(self, call: Any) -> None:
        goal = self.region(call.args[1])
        first = call.args[0]
        if type(first).__name__ == "Call" and str(first.op.name).endswith("region"):
            value: Value = self.read(self.region(first))
        else:
            value = self.value(first)
        self.write(goal, value, str(call.op.name).rpartition("atomic")[2])

    def _update_element(self, call: Any, what: str) -> None:
        if what not in _COMBINE and what not in ("add", "max", "min"):
            raise self.program.refuse(f"an atomic {what}")
        if not self.lanes:
            raise self.program.refuse("an atomic update that every thread of a block does")
        load = call.args[0].args[0]
        self.put(load.buffer, [self.index(each) for each in load.indices], self.value(call.args[1]), what)
