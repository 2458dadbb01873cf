"""The sketch in the making: tensors, views, kernels and notes, collected while the roots of a graph are made one after another.

In: values and kernels from assemble.py, contract.py and crafts.py. Out: what `assemble` turns into a Sketch.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from kernelwright.compiler.frontend.capture import Captured
from kernelwright.compiler.graph import values as v
from kernelwright.compiler.schedule.candidate import CandidateCost, Names
from kernelwright.compiler.schedule.scalar import Arena, Tracer
from kernelwright.sketch import nodes
from kernelwright.sketch.nodes import Int, Tensor
from kernelwright.target import Capabilities


@dataclass
class SketchBuilder:
    """The sketch in the making. `placed` maps values to the tensors that hold them. `choices` says which of its family's pieces a
    contraction takes, by its problem (the first where it says nothing); `offered` are all pieces' costs, for each
    contraction with that problem added up. `copies_fit` says whether there is memory to keep rearranged weights (memory.py)."""

    captured: Captured
    capabilities: Capabilities
    choices: dict[str, int] = field(default_factory=dict)
    offered: dict[str, list[CandidateCost]] = field(default_factory=dict)
    names: Names = field(default_factory=Names)
    tensors: list[Tensor] = field(default_factory=list)
    views: dict[tuple[str, tuple[int, ...]], str] = field(default_factory=dict)
    placed: dict[int, str] = field(default_factory=dict)
    steps: list[nodes.Kernel | nodes.LibraryCall] = field(default_factory=list)
    tunables: list[nodes.Tunable] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    prepared: set[str] = field(default_factory=set)
    cost: float = 0.0
    copies_fit: bool = True
    arena: Arena = field(default_factory=Arena)

    def declare(self, stem: str, shape: tuple[int, ...], dtype: nodes.DType, role: Any) -> str:
        """A new tensor of this sketch."""
        name = self.names.fresh(stem)
        self.tensors.append(Tensor(name, tuple(map(Int, shape)), dtype, role))
        return name

    def view(self, tensor: str, shape: tuple[int, ...]) -> str:
        """The name under which a tensor is seen with this shape."""
        own = next(t for t in self.tensors if t.name == tensor)
        if own.shape == tuple(map(Int, shape)):
            return tensor
        if (tensor, shape) not in self.views:
            name = self.names.fresh(f"{tensor}_{'x'.join(map(str, shape))}" if shape else f"{tensor}_scalar")
            self.views[tensor, shape] = name
            self.tensors.append(Tensor(name, tuple(map(Int, shape)), own.dtype, "view", tensor))
        return self.views[tensor, shape]

    def tracer(self, pinned: tuple[v.Value, ...] = (), slots: tuple[v.Value, ...] = ()) -> Tracer:
        """Traces values over what is placed, computing `pinned` ones anew."""
        return Tracer(self.arena, self.placed, frozenset(map(id, slots)), {}, frozenset(map(id, pinned)))

    def kernel(self, stem: str, body: tuple[nodes.Statement, ...], doc: str = "", *, final: bool = True) -> None:
        """Adds a kernel. One that reads only parameters runs once, unless another still changes its result (not `final`)."""
        if not body:
            return
        views = {t.name: t.source for t in self.tensors if t.role == "view"}
        read, written = ({views.get(n, n) for n in names} for names in tensors_of(body))
        roles = {t.name: t.role for t in self.tensors}
        once = final and read <= self.fixed and all(roles[n] == "temp" for n in written)
        if once:
            self.prepared |= written
            self.notes.append(f"{', '.join(sorted(written))}: from parameters only, made once")
        self.steps.append(nodes.Kernel(self.names.fresh(stem), body, once, doc))

    @property
    def fixed(self) -> frozenset[str]:
        """Tensors that change only with the parameters."""
        return frozenset(t.name for t in self.tensors if t.role in ("param", "constant")) | self.prepared


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
