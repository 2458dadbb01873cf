"""An interpreter for TileLang's tile programs: a PrimFunc before lowering in, a function on arrays out.

`Program(prim_func)` compiles the statements once into Python functions; `run(arguments)` executes every block of every kernel in it, one
block after another. A parallel loop is one step on arrays over its iterations. What the program says about layouts, swizzles and
pipelines is not looked at: it must not change the result.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelwright.compiler.backends.tilelang.arrays import Array, Cells, Kind, Unknown, numpy_dtype
from kernelwright.compiler.backends.tilelang.expressions import Code, Lane, Run, State, box_of, tirx
from kernelwright.compiler.backends.tilelang.races import Watched, watched
from kernelwright.compiler.backends.tilelang.tileops import TileOps

PARALLEL, THREAD = 1, 4
"""Kinds of loops that are not walked in order (`tirx.ForKind`)."""
MOST_BLOCKS = 1 << 20


class _Leave(Exception):
    """A break out of the innermost loop."""


class _Next(Exception):
    """The innermost loop's next iteration."""


@dataclass(frozen=True)
class Grid:
    """A launch: the name of the kernel's block variables is of no interest, its extents are."""

    blocks: tuple[int, ...]
    threads: tuple[int, int, int]


class Program(TileOps):
    """One PrimFunc, compiled for interpretation."""

    def __init__(self, function: Any, *, runs: bool = True) -> None:
        """Without `runs` only sizes are known."""
        super().__init__(State())
        self.function = function
        self.grids: list[Grid] = []
        self.thread_axis = {}
        self.parameters = list(function.params)
        self.tensors = {hash(var): buffer for var, buffer in function.buffer_map.items()}
        self.shapes = {key: self._shape(buffer) for key, buffer in self.tensors.items()}
        self.seams = watched(function.body) & set(map(hash, self.tensors.values())) if runs else set()
        for buffer in self.tensors.values():
            self.buffers[hash(buffer)] = len(self.state.slots)
            self.state.slots.append(None)
        self.body: Run = self.statement(function.body) if runs else lambda: None

    def _shape(self, buffer: Any) -> list[tuple[Any, Code]]:
        return [(extent, self.code(extent)) for extent in buffer.shape]

    # ------------------------------------------------------------ a run

    def run(self, arguments: Sequence[Any]) -> None:
        """All kernels of the function on these arguments: arrays for tensors, numbers for scalars."""
        self.bind(arguments)
        self.grids = []
        for var, given in zip(self.parameters, arguments, strict=True):
            buffer = self.tensors.get(hash(var))
            if buffer is not None and given is not None:
                seam = hash(buffer) in self.seams
                self._place(buffer, Watched(str(buffer.name), given) if seam else Array(str(buffer.name), given, guarded=True))
        self.state.watched = [each for each in self.state.slots if isinstance(each, Watched)]
        with np.errstate(all="ignore"):
            self.body()

    def bind(self, arguments: Sequence[Any]) -> None:
        """Values of symbolic sizes from the shapes of what is given (None: an output that is still to be made)."""
        slots = self.state.slots
        for var, given in zip(self.parameters, arguments, strict=True):
            if hash(var) not in self.tensors:
                slots[self.slot(var)] = given
        for var, given in zip(self.parameters, arguments, strict=True):
            if given is None or hash(var) not in self.tensors:
                continue
            buffer = self.tensors[hash(var)]
            if len(given.shape) != len(self.shapes[hash(var)]):
                raise ValueError(f"{buffer.name} has {len(buffer.shape)} axes, a tensor of shape {list(given.shape)} was given")
            for (extent, _), size in zip(self.shapes[hash(var)], given.shape, strict=True):
                if type(extent).__name__ in ("Var", "SizeVar") and slots[self.slot(extent)] is None:
                    slots[self.slot(extent)] = int(size)
        for var, given in zip(self.parameters, arguments, strict=True):
            if given is not None and hash(var) in self.tensors and tuple(given.shape) != self.shape_of(var):
                name = self.tensors[hash(var)].name
                raise ValueError(f"{name} must have the shape {list(self.shape_of(var))}, not {list(given.shape)}")

    def forget(self) -> None:
        """Symbolic sizes and tensors of the last run."""
        self.state.slots[:] = [None] * len(self.state.slots)
        self.state.mask = None

    def shape_of(self, var: Any) -> tuple[int, ...]:
        return tuple(int(code.run()) for _, code in self.shapes[hash(var)])

    def _place(self, buffer: Any, storage: Any) -> None:
        """A buffer gets its memory, and all views of it."""
        slots = self.state.slots
        own = self.buffer(buffer)
        slots[own] = storage
        for place, view in self.views.get(hash(buffer.data), ()):
            if place != own:
                shape = [int(self.code(extent).run()) for extent in view.shape]
                slots[place] = storage.view(str(view.name), shape, numpy_dtype(str(view.dtype)))

    # ------------------------------------------------------------ statements

    def statement(self, node: Any) -> Run:
        """Any statement."""
        kind = type(node).__name__
        makers: dict[str, Callable[[Any], Run]] = {
            "SeqStmt": self._sequence, "For": self._for, "SBlockRealize": self._realize, "BufferStore": self._store, "Bind": self._bind,
            "IfThenElse": self._if, "While": self._while, "AttrStmt": self._attribute, "Evaluate": self._evaluate,
            "AllocBuffer": self._allocate, "AssertStmt": self._assert, "DeclBuffer": self._declare, "LetStmt": self._let_statement,
        }  # fmt: skip
        if kind not in makers:
            raise Unknown(f"the interpreter does not know the statement {kind}")
        return makers[kind](node)

    def _sequence(self, node: Any) -> Run:
        steps = [self.statement(each) for each in node]

        def run() -> None:
            for step in steps:
                step()

        return run

    def _realize(self, node: Any) -> Run:
        block = node.block
        makers = [self._memory(buffer) for buffer in block.alloc_buffers]
        sizes = dict(block.annotations).get("tl.launch_threads") if block.annotations else None
        if sizes is not None:
            x, y, z = (int(size) for size in sizes)
            self.state.threads = (x, y, z)
        body = self.statement(block.body)

        def run() -> None:
            for make in makers:
                make()
            body()

        return run

    def _memory(self, buffer: Any) -> Run:
        """Allocates one buffer of a block."""
        own = self.buffer(buffer)
        self.views.setdefault(hash(buffer.data), [])
        shape, kind = [self.code(extent) for extent in buffer.shape], numpy_dtype_or_none(buffer)
        scope, name = str(buffer.scope()), str(buffer.name)
        private = scope in ("local", "local.var")

        def run() -> None:
            if kind is None:
                return
            extents = [int(code.run()) for code in shape]
            if private and own is not None:
                self._place(buffer, Cells(name, extents, kind))
            else:
                self._place(buffer, Array.fresh(name, extents, kind))

        return run

    def _allocate(self, node: Any) -> Run:
        make = self._memory(node.buffer)
        body = self.statement(node.body) if getattr(node, "body", None) is not None else None

        def run() -> None:
            make()
            if body is not None:
                body()

        return run

    def _declare(self, node: Any) -> Run:
        self.buffer(node.buffer)
        return self.statement(node.body) if getattr(node, "body", None) is not None else lambda: None

    def _assert(self, node: Any) -> Run:
        return self.statement(node.body) if getattr(node, "body", None) is not None else lambda: None

    def _bind(self, node: Any) -> Run:
        value = node.value
        if type(value).__name__ == "Call" and str(value.op.name).endswith("launch_thread_idx"):
            return self._thread(node.var, int(value.args[0]))
        code, place, slots = self.code(value), self.slot(node.var), self.state.slots
        if code.varies:
            self.varying.add(hash(node.var))

        def run() -> None:
            slots[place] = code.run()

        return run

    def _let_statement(self, node: Any) -> Run:
        bind, body = self._bind(node), self.statement(node.body)

        def run() -> None:
            bind()
            body()

        return run

    def _thread(self, var: Any, axis: int) -> Run:
        """A thread's number along an axis of the block, as an array over all threads."""
        place, state = self.slot(var), self.state
        self.varying.add(hash(var))
        self.thread_axis[hash(var)] = axis

        def run() -> None:
            x, y, _ = state.threads
            flat = np.arange(int(np.prod(state.threads)))
            state.slots[place] = (flat % x, flat // x % y, flat // (x * y))[axis]

        return run

    def _evaluate(self, node: Any) -> Run:
        if type(node.value).__name__ != "Call":
            return lambda: None
        name = str(node.value.op.name).rpartition(".")[2]
        if name in ("loop_break", "break_loop", "continue_loop", "thread_return", "ret"):
            return self._jump(_Next if name == "continue_loop" else _Leave, name)
        return self.operation(node.value)

    def _jump(self, kind: type[Exception], name: str) -> Run:
        state = self.state
        if name in ("thread_return", "ret"):
            raise Unknown(f"the interpreter does not know {name}")

        def run() -> None:
            if state.mask is not None and not np.all(state.mask):
                raise Unknown("a break that only some lanes take is not interpreted")
            raise kind

        return run

    def _attribute(self, node: Any) -> Run:
        if str(node.attr_key) == "reduce_scope":
            before, self.reducer = self.reducer, self._combination(node.node)
            body = self.statement(node.body)
            self.reducer = before
            return body
        return self.statement(node.body)

    def _combination(self, reducer: Any) -> Callable[[Any, Any], Any]:
        """A commutative reducer's combine function."""
        left, right = self.slot(reducer.lhs[0]), self.slot(reducer.rhs[0])
        self.varying |= {hash(reducer.lhs[0]), hash(reducer.rhs[0])}
        result, slots = self.code(reducer.result[0]), self.state.slots

        def run(a: Any, b: Any) -> Any:
            slots[left], slots[right] = a, b
            return result.run()

        return run

    # ------------------------------------------------------------ control

    def _for(self, node: Any) -> Run:
        if int(node.kind) == THREAD:
            return self._kernel(node)
        if int(node.kind) == PARALLEL:
            return self._parallel(node)
        start, extent = self.code(node.min), self.code(node.extent)
        step = self.code(node.step) if getattr(node, "step", None) is not None else None
        place, state, slots = self.slot(node.loop_var), self.state, self.state.slots
        varies = extent.varies or start.varies
        if varies:
            self.varying.add(hash(node.loop_var))
        body = self.statement(node.body)

        def run() -> None:
            first, count = start.run(), extent.run()
            stride = int(step.run()) if step is not None else 1
            if isinstance(first, np.ndarray) or isinstance(count, np.ndarray):
                ragged(first, count, stride)
                return
            for at in range(int(first), int(first) + int(count), stride):
                slots[place] = at
                try:
                    body()
                except _Next:
                    continue
                except _Leave:
                    break

        def ragged(first: Any, count: Any, stride: int) -> None:
            """Lanes with different numbers of iterations."""
            before = state.mask
            for number in range(0, int(np.max(count)), stride):
                here = np.broadcast_to(number < count, np.shape(number < count))
                state.mask = here if before is None else before & here
                slots[place] = first + number
                body()
            state.mask = before

        return run

    def _parallel(self, node: Any) -> Run:
        """A nest of parallel loops: all iterations at once."""
        nest = [node]
        while type(nest[-1].body).__name__ == "For" and int(nest[-1].body.kind) == PARALLEL:
            nest.append(nest[-1].body)
        base = self.axes + (1 if self.threaded and not self.axes else 0)
        extents = [self.code(each.extent) for each in nest]
        starts = [self.code(each.min) for each in nest]
        places = [self.slot(each.loop_var) for each in nest]
        outer_axes, outer_lanes = self.axes, dict(self.lanes)
        self.axes = base + len(nest)
        for number, each in enumerate(nest):
            self.lanes[hash(each.loop_var)] = Lane(base + len(nest) - number, extents[number].run)
            self.varying.add(hash(each.loop_var))
        body = self.statement(nest[-1].body)
        self.axes, self.lanes = outer_axes, outer_lanes
        slots = self.state.slots
        known: dict[tuple[int, ...], list[Any]] = {}

        def run() -> None:
            sizes = tuple(int(code.run()) for code in extents)
            if sizes not in known:
                known[sizes] = [
                    np.arange(size).reshape((1,) * number + (size,) + (1,) * (len(sizes) - number - 1 + base))
                    for number, size in enumerate(sizes)
                ]
            for place, lanes, start in zip(places, known[sizes], starts, strict=True):
                first = start.run()
                slots[place] = lanes + first if first else lanes
            body()

        return run

    def _if(self, node: Any) -> Run:
        test, then = self.code(node.condition), self.statement(node.then_case)
        other = self.statement(node.else_case) if node.else_case is not None else None
        state = self.state

        def run() -> None:
            where = test.run()
            if not isinstance(where, np.ndarray):
                if where:
                    then()
                elif other is not None:
                    other()
                return
            before = state.mask
            for branch, chosen in ((then, where), (other, ~where)):
                state.mask = chosen if before is None else before & chosen
                if branch is not None and state.mask.any():
                    branch()
            state.mask = before

        return run

    def _while(self, node: Any) -> Run:
        test, body = self.code(node.condition), self.statement(node.body)
        state = self.state

        def run() -> None:
            before = state.mask
            while True:
                where = test.run()
                if isinstance(where, np.ndarray):
                    state.mask = where if state.mask is None else state.mask & where
                    where = state.mask.any()
                if not where:
                    break
                try:
                    body()
                except _Next:
                    continue
                except _Leave:
                    break
            state.mask = before

        return run

    def _kernel(self, node: Any) -> Run:
        """The nest of block loops: one launch."""
        nest = [node]
        while type(nest[-1].body).__name__ == "For" and int(nest[-1].body.kind) == THREAD:
            nest.append(nest[-1].body)
        extents = [self.code(each.extent) for each in nest]
        places = [self.slot(each.loop_var) for each in nest]
        self.threaded = _uses_threads(nest[-1].body)
        body = self.statement(nest[-1].body)
        threads = self.state.threads
        self.threaded = False
        state = self.state

        def run() -> None:
            sizes = tuple(int(code.run()) for code in extents)
            state.threads = threads
            self.grids.append(Grid(sizes, threads))
            if int(np.prod(sizes)) > MOST_BLOCKS:
                raise Unknown(f"a grid of {list(sizes)} blocks is too large to be interpreted")
            # x is the outermost loop of the nest and the fastest to vary on the device.
            for index in itertools.product(*(range(size) for size in reversed(sizes))):
                for place, at in zip(places, reversed(index), strict=True):
                    state.slots[place] = at
                state.mask = None
                state.barrier()
                body()

        return run

    def _store(self, node: Any) -> Run:
        place, state, slots = self.buffer(node.buffer), self.state, self.state.slots
        index = [self.code(each) for each in node.indices]
        value, runs = self.code(node.value), [each.run for each in index]
        plan = self.slices(node.indices, index)
        lanes = [lane for lane, _ in plan if lane] if plan is not None else []
        base = 1 if self.threaded else 0
        if plan is None or not lanes or len(lanes) != self.axes - base:
            return lambda: slots[place].store([run() for run in runs], value.run(), state.mask)
        # From the order of lanes to the order of the buffer's axes.
        order = [sorted((lane.axis for lane in lanes), reverse=True).index(lane.axis) for lane in lanes]
        transposed = order != sorted(order)

        def run() -> None:
            buffer = slots[place]
            given = value.run()
            whole = isinstance(given, np.ndarray) and given.ndim == len(lanes) + base and base
            if state.mask is None and type(buffer) is Array and not (whole and given.shape[-1] != 1):
                box = box_of(plan, buffer.data.shape)
                if box is not None:
                    part = buffer.data[box]
                    if isinstance(given, np.ndarray) and given.ndim:
                        given = given[..., 0] if whole else given
                        if transposed:
                            sizes = [0] * len(lanes)
                            for axis, size in zip(order, part.shape, strict=True):
                                sizes[axis] = size
                            given = np.broadcast_to(given, sizes).transpose(order)
                    part[...] = given
                    return
            buffer.store([each() for each in runs], given, state.mask)

        return run


def _uses_threads(body: Any) -> bool:
    """Whether a kernel's statements name a thread."""
    bound: set[int] = set()
    for node in body if type(body).__name__ == "SeqStmt" else (body,):
        if type(node).__name__ == "Bind" and "launch_thread_idx" in str(node.value):
            bound.add(hash(node.var))
    found: list[bool] = []

    def look(node: Any) -> None:
        if type(node).__name__ == "Var" and hash(node) in bound:
            found.append(True)

    tirx.stmt_functor.post_order_visit(body, look)
    return bool(found)


def numpy_dtype_or_none(buffer: Any) -> Kind | None:
    """The dtype of a buffer that holds data; barriers and descriptors hold none."""
    if "barrier" in str(buffer.scope()) or "descriptor" in str(buffer.scope()):
        return None
    return numpy_dtype(str(buffer.dtype))
