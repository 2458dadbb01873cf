"""The sketch in the making: tensors, views, kernels and notes, collected while the roots of a graph are made one after another.

In: values and kernels from assemble.py, contraction/join.py and custom.py. Out: what `assemble` turns into a Sketch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.captured import Captured
from kernelwright.compiler.graph.symbolic import Extent, size_index
from kernelwright.compiler.schedule.candidate import CandidateCost
from kernelwright.compiler.schedule.scalar import Arena, Tracer
from kernelwright.sketch import nodes
from kernelwright.sketch.index.expressions import symbols
from kernelwright.sketch.names import Names
from kernelwright.sketch.nodes import Tensor
from kernelwright.target import Capabilities


@dataclass
class SketchBuilder:
    """The sketch in the making. `placed` maps values to the tensors that hold them. `choices` says which of its family's pieces a
    contraction takes, by its problem (the first where it says nothing); `candidate_costs` are all pieces' costs, for each
    contraction with that problem added up. `copies_fit` says whether there is memory to keep rearranged weights (memory.py)."""

    captured: Captured
    capabilities: Capabilities
    choices: dict[str, int] = field(default_factory=dict)
    candidate_costs: dict[str, list[CandidateCost]] = field(default_factory=dict)
    names: Names = field(default_factory=Names)
    tensors: list[Tensor] = field(default_factory=list)
    views: dict[tuple[str, tuple[Extent, ...]], str] = field(default_factory=dict)
    placed: dict[int, str] = field(default_factory=dict)
    steps: list[nodes.Kernel | nodes.LibraryCall] = field(default_factory=list)
    tunables: list[nodes.Tunable] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    prepared: set[str] = field(default_factory=set)
    cost: float = 0.0
    copies_fit: bool = True
    arena: Arena = field(default_factory=Arena)

    def declare(self, stem: str, shape: tuple[Extent, ...], dtype: nodes.DType, role: Any) -> str:
        """A new tensor of this sketch."""
        name = self.names.fresh(stem)
        self.tensors.append(Tensor(name, tuple(map(size_index, shape)), dtype, role))
        return name

    def view(self, tensor: str, shape: tuple[Extent, ...]) -> str:
        """The name under which a tensor is seen with this shape."""
        own = next(t for t in self.tensors if t.name == tensor)
        if own.shape == tuple(map(size_index, shape)):
            return tensor
        if (tensor, shape) not in self.views:
            name = self.names.fresh(f"{tensor}_{_readable(shape)}" if shape else f"{tensor}_scalar")
            self.views[tensor, shape] = name
            self.tensors.append(Tensor(name, tuple(map(size_index, shape)), own.dtype, "view", tensor))
        return self.views[tensor, shape]

    def tracer(self, pinned: tuple[v.Value, ...] = (), slots: tuple[v.Value, ...] = ()) -> Tracer:
        """Traces values over what is placed, computing `pinned` ones anew."""
        return Tracer(self.arena, self.placed, frozenset(map(id, slots)), {}, frozenset(map(id, pinned)))

    def kernel(self, stem: str, body: tuple[nodes.Statement, ...], doc: str = "", *, final: bool = True) -> None:
        """Adds a kernel. One that reads only parameters runs once, unless another still changes its result (not `final`) or a size that
        varies has a part in it: a table for all positions of a sequence is another one for the next sequence."""
        if not body:
            return
        views = {t.name: t.source for t in self.tensors if t.role == "view"}
        read, written = ({views.get(n, n) for n in names} for names in tensors_of(body))
        roles = {t.name: t.role for t in self.tensors}
        shapes = {t.name: frozenset[str]().union(*map(symbols, t.shape)) for t in self.tensors}
        sizes = frozenset[str]().union(*shapes.values())
        varying = _names(body) & sizes if sizes else sizes  # only sizes that vary stand in shapes
        varying |= frozenset[str]().union(*(shapes[n] for n in written))
        once = final and not varying and read <= self.fixed and all(roles[n] == "temp" for n in written)
        if once:
            self.prepared |= written
            self.notes.append(f"{', '.join(sorted(written))}: from parameters only, made once")
        self.steps.append(nodes.Kernel(self.names.fresh(stem), body, once, doc))

    # ------------------------------------------------------------ what custom kernels ask for (graph/values.KernelBuilder)

    def sort_rows(self, x: v.Value, axis: int, descending: bool, values: v.Value, places: v.Value) -> None:
        """Sorts along an axis and stores the first elements and their positions, as far as they are wanted."""
        from kernelwright.compiler.schedule import custom

        custom.sort_rows(self, x, axis, descending, values, places)

    def scatter(
        self, made: v.Value, base: v.Value, updates: v.Value, serial: tuple[Extent, ...],
        place: Callable[[v.MultiIndex, Any], v.MultiIndex], combine: str,
    ) -> None:  # fmt: skip
        """Copies `base`, then writes every element of `updates` at `place(coords)`."""
        from kernelwright.compiler.schedule import custom

        custom.scatter(self, made, base, updates, serial, place, combine)  # type: ignore[arg-type]

    def step_through_time(
        self, cell: v.Cell, given: v.Value, again: v.Value, begin: Sequence[v.Value], bias: v.Value | None, history: v.Value,
        kept: Sequence[v.Value],
    ) -> None:  # fmt: skip
        """The kernels of one direction of one recurrent layer."""
        from kernelwright.compiler.schedule.recurrence import step_through_time

        step_through_time(self, cell, given, again, begin, bias, history, kept)

    def library_call(
        self, name: str, inputs: Sequence[v.Value], outputs: Sequence[v.Value], attributes: str, note: str
    ) -> None:
        """A call that is left to torch; its inputs have to be in memory."""
        read = []
        for value in inputs:
            if not isinstance(value, v.Leaf) and id(value) not in self.placed:
                raise v.MustMaterialize(value)
            read.append(value.tensor if isinstance(value, v.Leaf) else self.placed[id(value)])
        written = tuple(self.placed[id(value)] for value in outputs)
        self.steps.append(nodes.LibraryCall(name, tuple(read), written, attributes))
        self.notes.append(note)

    @property
    def fixed(self) -> frozenset[str]:
        """Tensors that change only with the parameters."""
        return frozenset(t.name for t in self.tensors if t.role in ("param", "constant")) | self.prepared


def _readable(shape: tuple[Extent, ...]) -> str:
    """A shape as part of a name; an extent that varies and has no name of its own is "n"."""
    return "x".join(str(e) if isinstance(e, int) or str(e).isidentifier() else "n" for e in shape)


def _names(node: Any) -> frozenset[str]:
    """All names in index expressions."""
    if isinstance(node, nodes.Sym):
        return frozenset({node.name})
    if isinstance(node, tuple):
        return frozenset[str]().union(*map(_names, node))
    if is_dataclass(node):
        return frozenset[str]().union(*(_names(getattr(node, entry.name)) for entry in fields(node)))
    return frozenset()


def tensors_of(body: tuple[nodes.Statement, ...]) -> tuple[set[str], set[str]]:
    """Names of tensors that statements load and store."""
    read: set[str] = set()
    written: set[str] = set()

    def visit(node: Any) -> None:
        if isinstance(node, nodes.Load):
            read.add(node.tensor)
        elif isinstance(node, nodes.Store):
            written.add(node.tensor)
        if isinstance(node, tuple):
            for item in node:
                visit(item)
        elif is_dataclass(node):
            for entry in fields(node):
                visit(getattr(node, entry.name))

    visit(body)
    return read, written
