"""Tile operations: copies, fills, products, reductions and scans of whole regions, and atomic updates.

In: a call of a `tl.tileop…` or an atomic in the PrimFunc. Out: a function that does it on the running block's buffers. Products are
accumulated in the accumulator's dtype; fp32 operands are multiplied in fp32, which the device does in tf32 (the state notes it).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelwright.compiler.backends.tilelang.arrays import Array, Cells, Tile, Unknown, cast, floating
from kernelwright.compiler.backends.tilelang.expressions import REDUCTIONS, Code, Expressions, Run
from kernelwright.compiler.backends.tilelang.races import READ

NOTHING = frozenset({
    "sync_warp", "fence_proxy_async", "set_max_nreg", "no_set_max_nreg", "annotate_producer_reg_dealloc",
    "annotate_consumer_reg_alloc", "warpgroup_arrive", "warpgroup_commit_batch", "warpgroup_wait", "wait_wgmma", "ptx_commit_group",
    "ptx_wait_group", "tma_store_arrive", "tma_store_wait", "warpgroup_fence_operand", "pdl_sync", "pdl_trigger", "conflict_hint", "assume",
    "device_assert", "device_assert_with_msg", "prefetch", "deallocate_tmem", "ptx_init_barrier_thread_count", "create_barriers",
})  # fmt: skip
"""What has no meaning where a block's statements run one after another."""
BARRIERS = frozenset({"tvm_storage_sync", "sync_grid"})
EXCHANGES = frozenset({"reduce", "cumsum", "cummax", "tvm_thread_allreduce"})
"""What threads do together through shared memory, with barriers of their own."""
SPECIALISED = frozenset({"mbarrier_wait_parity", "mbarrier_expect_tx", "ptx_arrive_barrier", "ptx_wait_barrier"})
ATOMIC = {"add": np.add, "max": np.fmax, "min": np.fmin, "or": np.bitwise_or}


@dataclass(frozen=True)
class Region:
    """A box of a buffer; `box` evaluates its start and extents."""

    place: int
    start: tuple[Code, ...]
    extents: tuple[Code, ...]

    def box(self) -> tuple[list[Any], list[int]]:
        return [code.run() for code in self.start], [int(code.run()) for code in self.extents]


class TileOps(Expressions):
    """Compiles tile operations."""

    def operation(self, call: Any) -> Run:
        """A call that stands as a statement."""
        name = str(call.op.name).rpartition(".")[2]
        if name in NOTHING:
            return lambda: None
        if name in BARRIERS:
            return self.state.barrier
        if name in SPECIALISED:
            raise Unknown(f"{name}: programs that order their warps by barriers of their own are not interpreted")
        makers: dict[str, Callable[[Any], Run]] = {
            "copy": self._copy, "async_copy": self._copy, "tma_copy": self._copy, "fill": self._fill, "gemm": self._gemm,
            "wgmma_gemm": self._gemm, "tcgen05_gemm": self._gemm, "reduce": self._reduce, "cumsum": self._scan, "cummax": self._scan,
            "transpose": self._transpose, "im2col": self._im2col, "c2d_im2col": self._im2col, "atomicadd": self._atomic_tile,
            "atomicmax": self._atomic_tile, "atomicmin": self._atomic_tile, "tvm_thread_allreduce": self._allreduce,
        }  # fmt: skip
        if name in makers:
            run = makers[name](call)
            return self._behind_barrier(run) if self.seams and (name in EXCHANGES or _reads_shared(call)) else run
        if name.startswith("call_extern"):
            code = self.call(call)
            return lambda: code.run()
        if "print" in name:
            return lambda: None
        code = self.call(call)
        return lambda: code.run()

    def _behind_barrier(self, run: Run) -> Run:
        """TileLang puts a barrier before what reads shared memory: it orders global memory, too."""

        def both() -> None:
            self.state.barrier()
            run()

        return both

    # ------------------------------------------------------------ regions

    def region(self, call: Any) -> Region:
        """`tl.region(buffer[start…], access, extents…)`, a load, or a buffer's access pointer."""
        if type(call).__name__ == "BufferLoad":
            load, extents = call, [1] * len(call.indices)
        else:
            load, extents = call.args[0], list(call.args[2:])
        start = []
        for number, at in enumerate(load.indices):
            if type(at).__name__ == "Ramp":
                start.append(self.code(at.base))
                extents[number] = at.lanes
            else:
                start.append(self.code(at))
        lead = len(start) - len(extents)
        return Region(self.buffer(load.buffer), tuple(start), tuple(self.code(e) for e in [1] * lead + extents))

    def _read(self, region: Region) -> Tile:
        buffer = self.state.slots[region.place]
        start, extents = region.box()
        if isinstance(buffer, Cells):
            cells = [buffer.load([at + i for at, i in zip(start, index, strict=True)], None) for index in np.ndindex(*extents)]
            if any(np.ndim(cell) for cell in cells):
                raise Unknown(f"{buffer.name} differs between threads and is used as a tile")
            return np.array(cells, buffer.kind).reshape(extents)
        return buffer.region([int(at) for at in start], extents)

    def _write(self, region: Region, value: Any) -> None:
        buffer = self.state.slots[region.place]
        start, extents = region.box()
        if isinstance(buffer, Cells):
            whole = np.broadcast_to(value, extents)
            for index in np.ndindex(*extents):
                buffer.store([at + i for at, i in zip(start, index, strict=True)], whole[index], self.state.mask)
            return
        if self.state.mask is not None and not np.all(self.state.mask):
            raise Unknown("a tile operation stands where only some threads take part")
        buffer.put([int(at) for at in start], extents, value)

    @staticmethod
    def _fitted(value: Tile, extents: list[int]) -> Tile:
        """A tile under the shape of another: axes of extent 1 come and go."""
        if list(value.shape) == extents:
            return value
        if value.size == int(np.prod(extents)):
            return value.reshape(extents)
        return np.broadcast_to(value.reshape([e for e in value.shape if e != 1] or [1]), [e for e in extents if e != 1] or [1]).reshape(
            extents
        )  # fmt: skip

    # ------------------------------------------------------------ operations

    def _copy(self, call: Any) -> Run:
        source, goal = self.region(call.args[0]), self.region(call.args[1])
        slots = self.state.slots
        varies = any(code.varies for code in (*source.start, *goal.start))

        def run() -> None:
            if varies or isinstance(slots[source.place], Cells):
                self._copy_elements(source, goal)
                return
            value = self._read(source)
            if np.shares_memory(value, getattr(slots[goal.place], "data", None)):
                value = value.copy()
            self._write(goal, self._fitted(value, goal.box()[1]))

        return run

    def _copy_elements(self, source: Region, goal: Region) -> None:
        """A copy in which every thread has its own part."""
        slots, mask = self.state.slots, self.state.mask
        (here, extents), (there, others) = source.box(), goal.box()
        pairs = zip(np.ndindex(*extents), np.ndindex(*others), strict=True)
        for index, other in pairs:
            value = slots[source.place].load([at + i for at, i in zip(here, index, strict=True)], mask)
            slots[goal.place].store([at + i for at, i in zip(there, other, strict=True)], value, mask)

    def _fill(self, call: Any) -> Run:
        region, value = self.region(call.args[0]), self.code(call.args[1])
        return lambda: self._write(region, value.run())

    def _gemm(self, call: Any) -> Run:
        a, b, c = (self.region(arg) for arg in call.args[:3])
        turn_a, turn_b, clear = (self.code(call.args[number]) for number in (3, 4, 9))
        state = self.state

        def run() -> None:
            left, right, total = self._read(a), self._read(b), self._read(c)
            left, right = (part.reshape(part.shape[-2:]) for part in (left, right))
            left = left.T if turn_a.run() else left
            right = right.T if turn_b.run() else right
            state.tf32 |= left.dtype == np.float32
            kind = np.dtype(np.float64) if not floating(left.dtype) or left.dtype == np.float64 else np.dtype(np.float32)
            product = (cast(left, kind) @ cast(right, kind)).reshape(total.shape)
            if not clear.run():
                product = product + cast(total, kind)
            self._write(c, cast(product, total.dtype))

        return run

    def _reduce(self, call: Any) -> Run:
        source, goal = self.region(call.args[0]), self.region(call.args[1])
        name = str(getattr(call.args[2], "value", call.args[2]))
        axis, clear = self.code(call.args[3]), self.code(call.args[4])
        function = REDUCTIONS[name.removeprefix("abs")]
        nan = bool(dict(call.annotations or {}).get("nan_propagate", False)) if hasattr(call, "annotations") else False
        if nan:
            function = {np.fmax: np.maximum, np.fmin: np.minimum}.get(function, function)

        def run() -> None:
            value = self._read(source)
            kind = value.dtype
            wide = cast(value, np.dtype(np.float32)) if floating(kind) and kind.itemsize < 4 else value
            if name.startswith("abs"):
                wide = np.abs(wide)
            extents = goal.box()[1]
            result = function.reduce(wide, axis=int(axis.run())).reshape(extents)
            if not clear.run():
                result = function(result, cast(self._read(goal), result.dtype))
            self._write(goal, result)

        return run

    def _scan(self, call: Any) -> Run:
        source, goal = self.region(call.args[0]), self.region(call.args[1])
        axis, reverse = self.code(call.args[2]), self.code(call.args[3])
        function: Any = np.add if str(call.op.name).endswith("cumsum") else np.fmax

        def run() -> None:
            value, along = self._read(source), int(axis.run())
            kind = value.dtype
            value = cast(value, np.dtype(np.float32)) if floating(kind) and kind.itemsize < 4 else value
            value = np.flip(value, along) if reverse.run() else value
            value = function.accumulate(value, axis=along, dtype=value.dtype)
            self._write(goal, np.flip(value, along) if reverse.run() else value)

        return run

    def _transpose(self, call: Any) -> Run:
        source, goal = self.region(call.args[0]), self.region(call.args[1])
        return lambda: self._write(goal, np.swapaxes(self._read(source), -1, -2).copy())

    def _im2col(self, call: Any) -> Run:
        """Rows of pixels (n, oh, ow) by columns (kh, kw, c) of an image [n, h, w, c]."""
        image, goal = self.region(call.args[0]), self.region(call.args[1])
        step, channel, kernel, stride, dilation, pad = (self.code(arg) for arg in call.args[2:8])

        def run() -> None:
            _, extents = goal.box()
            rows, columns = extents[-2:]
            data = self.state.slots[image.place].data
            size, high, wide, deep = data.shape
            taps, steps, gap, edge = (int(code.run()) for code in (kernel, stride, dilation, pad))
            out_h, out_w = ((n + 2 * edge - gap * (taps - 1) - 1) // steps + 1 for n in (high, wide))
            row: Any = int(step.run()) * rows + np.arange(rows)[:, None]
            column: Any = int(channel.run()) * columns + np.arange(columns)[None, :]
            tap, c = column // deep, column % deep
            y = row // out_w % out_h * steps + tap // taps * gap - edge
            x = row % out_w * steps + tap % taps * gap - edge
            n = row // (out_h * out_w)
            good = (y >= 0) & (y < high) & (x >= 0) & (x < wide) & (n < size) & (tap < taps * taps)
            picked = data[np.where(good, n, 0), np.where(good, y, 0), np.where(good, x, 0), c]
            self._write(goal, np.where(good, picked, data.dtype.type(0)).reshape(extents))

        return run

    # ------------------------------------------------------------ between threads

    def _atomic_tile(self, call: Any) -> Run:
        function = ATOMIC[str(call.op.name).rpartition("atomic")[2]]
        goal = self.region(call.args[1])
        is_region = type(call.args[0]).__name__ == "Call" and str(call.args[0].op.name).endswith("region")
        source = self.region(call.args[0]) if is_region else None
        scalar = None if is_region else self.code(call.args[0])

        def run() -> None:
            start, extents = goal.box()
            value = self._fitted(self._read(source), extents) if source else np.broadcast_to(scalar.run(), extents)  # type: ignore[union-attr]
            grid = np.meshgrid(*(at + np.arange(e) for at, e in zip(start, extents, strict=True)), indexing="ij", sparse=True)
            self.state.slots[goal.place].update(function, grid, value, None)

        return run

    def effect(self, expr: Any, name: str) -> Code | None:
        if not name.startswith("atomic_") or not name.endswith("_elem_op"):
            return None
        what = name.removeprefix("atomic_").removesuffix("_elem_op")
        load = expr.args[0].args[0]
        place, index = self.buffer(load.buffer), [self.code(each) for each in load.indices]
        state, slots = self.state, self.state.slots
        width = {"x2": 2, "x4": 4}.get(what.removesuffix("_ret")[-2:], 1)
        if width > 1:
            return self._wide_atomic(expr, place, index, width)
        value = self.code(expr.args[1]) if what not in ("load",) else None
        alone = not (self.lanes or any(each.varies for each in index) or (value is not None and value.varies))
        if what == "load":
            return Code(
                lambda: slots[place].load([each.run() for each in index], state.mask), any(each.varies for each in index)
            )
        assert value is not None
        if what == "store":
            return Code(lambda: slots[place].store([each.run() for each in index], value.run(), state.mask))
        function, gives = ATOMIC[what.removesuffix("_ret")], what.endswith("_ret")

        def run() -> Any:
            at = [each.run() for each in index]
            if gives:
                return self._exchange(slots[place], function, at, value.run())
            # Outside of a parallel loop every thread of the block does it.
            times = int(np.prod(state.threads)) if alone and state.mask is None else 1
            amount = value.run()
            slots[place].update(function, at, np.broadcast_to(amount, (times,)) if times > 1 else amount, state.mask)
            return None

        return Code(run, gives)

    def _exchange(self, buffer: Any, function: Any, index: list[Any], value: Any) -> Any:
        """An update that gives what was there before, lane by lane."""
        mask = self.state.mask
        shape = np.broadcast_shapes(
            np.shape(value), *(np.shape(at) for at in index), np.shape(mask) if mask is not None else ()
        )
        before = np.zeros(shape, buffer.data.dtype)
        for lane in np.ndindex(*shape):
            if mask is not None and not np.broadcast_to(mask, shape)[lane]:
                continue
            at = [np.broadcast_to(np.asarray(each), shape)[lane] for each in index]
            before[lane] = buffer.load(at, None)
            buffer.update(function, at, np.broadcast_to(value, shape)[lane], None)
        return before[()]

    def _wide_atomic(self, expr: Any, place: int, index: list[Code], width: int) -> Code:
        """Additions of two or four neighbours along the last axis."""
        source = expr.args[1].args[0]
        other, there = self.buffer(source.buffer), [self.code(each) for each in source.indices]
        slots, state = self.state.slots, self.state

        def run() -> None:
            at, from_ = [each.run() for each in index], [each.run() for each in there]
            for step in range(width):
                value = slots[other].load([*from_[:-1], from_[-1] + step], state.mask)
                slots[place].update(np.add, [*at[:-1], at[-1] + step], value, state.mask)

        return Code(run)

    def _allreduce(self, call: Any) -> Run:
        """A sum (or another reduction) over threads; `reducer` is the combine function around it."""
        reducer = self.reducer
        value, condition = self.code(call.args[1]), self.code(call.args[2])
        goal = call.args[3]
        place, index = self.buffer(goal.buffer), [self.code(each) for each in goal.indices]
        names = [self.thread_axis.get(hash(var)) for var in call.args[4:]]
        state = self.state

        def run() -> None:
            sizes = state.threads
            given = np.broadcast_to(value.run(), (int(np.prod(sizes)),))
            test = np.broadcast_to(condition.run(), given.shape)
            # x is the fastest of the block's axes.
            cube, chosen = given.reshape(sizes[::-1]), test.reshape(sizes[::-1])
            for name in names:
                axis = 2 - int(name or 0)
                parts, flags = np.moveaxis(cube, axis, 0), np.moveaxis(chosen, axis, 0)
                total: Any = None
                for part, flag in zip(parts, flags, strict=True):
                    total = part if total is None else np.where(flag, reducer(total, part), total)
                cube = np.broadcast_to(np.expand_dims(total, axis), cube.shape)
            state.slots[place].store([each.run() for each in index], cube.reshape(-1), None)

        return run

    reducer: Callable[..., Any] = staticmethod(np.add)
    thread_axis: dict[int, int]


__all__ = ["Array", "Region", "TileOps"]


def _reads_shared(call: Any) -> bool:
    """Whether a tile operation has an operand in shared memory that it reads."""
    regions = [arg for arg in call.args if type(arg).__name__ == "Call" and str(arg.op.name).endswith("region")]
    return any(int(arg.args[1]) & READ and str(arg.args[0].buffer.scope()).startswith("shared") for arg in regions)
