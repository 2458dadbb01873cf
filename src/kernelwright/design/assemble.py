"""From the captured graph to one sketch: which values are realised, in which kernels, in which order.

1. Values that must be in memory are found: results, contractions up to the end of their epilogue, hand-crafted kernels, partial
   sums of long reductions.
2. Each realised value is traced and scheduled over what is in memory before it. Whatever cannot be inlined there
   (`MustRealise`, `NotFusible`) is realised too, and the work begins anew: graphs are small, so this costs little.
3. Kernels, tensors and views are collected into a `Sketch`.
"""

from __future__ import annotations

import itertools
import json
import time
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from kernelwright.design import partial, schedule
from kernelwright.design import values as v
from kernelwright.design.capture import Captured
from kernelwright.design.contract import lower_contraction
from kernelwright.design.fuse import NotFusible, region_end
from kernelwright.design.hooks import Names
from kernelwright.design.nest import build
from kernelwright.design.scalar import Arena, MustRealise, Tracer
from kernelwright.errors import UnsupportedOperator
from kernelwright.sketch import nodes
from kernelwright.sketch.nodes import At, Int, Sym, Tensor


@dataclass
class Workshop:
    """The sketch in the making. `placed` maps values to the tensors that hold them. `choices` says which of its family's pieces a
    contraction takes, by its problem (the first where it says nothing); `offered` are the costs of all pieces, for each
    contraction with that problem added up."""

    captured: Captured
    cores: int = 2
    choices: dict[str, int] = field(default_factory=dict)
    offered: dict[str, list[float]] = field(default_factory=dict)
    names: Names = field(default_factory=Names)
    tensors: list[Tensor] = field(default_factory=list)
    views: dict[tuple[str, tuple[int, ...]], str] = field(default_factory=dict)
    placed: dict[int, str] = field(default_factory=dict)
    steps: list[nodes.Kernel | nodes.LibraryCall] = field(default_factory=list)
    tunables: list[nodes.Tunable] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    prepared: set[str] = field(default_factory=set)
    cost: float = 0.0
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


@dataclass
class Graph:
    """What is known about the values before any kernel is made."""

    outputs: list[v.Value]
    order: list[v.Value]
    users: dict[int, list[v.Value]]
    realised: dict[int, v.Value]

    @staticmethod
    def of(outputs: list[v.Value], realised: dict[int, v.Value]) -> Graph:
        order = v.topological([*outputs, *realised.values()])
        users: dict[int, list[v.Value]] = {}
        for value in order:
            for source in value.sources():
                users.setdefault(id(source), []).append(value)
        return Graph(outputs, order, users, realised)


def assemble(
    captured: Captured, name: str, doc: str, *, cores: int = 2, limit: int = 1, seconds: float = 60.0
) -> list[tuple[nodes.Sketch, Workshop]]:
    """Sketches of a captured graph: the best guess first, then up to `limit` - 1 others in which the contractions of one problem
    take another choice, cheapest first. Others are only begun while `seconds` last."""
    outputs = [o for o in captured.outputs if isinstance(o, v.Value)]
    forced = partial.split_long_folds(v.topological(outputs), cores)
    workshop = _settle(captured, outputs, forced, cores, {})
    made = [(_sketch(workshop, outputs, name, doc), workshop)]
    dearer = sorted(
        (cost - costs[0], problem, pick)
        for problem, costs in workshop.offered.items()
        for pick, cost in enumerate(costs)
        if pick
    )
    started = time.monotonic()
    for _, problem, pick in dearer:
        if len(made) >= limit or time.monotonic() - started > seconds:
            break
        try:
            other = _settle(captured, outputs, dict(forced), cores, {problem: pick})
        except UnsupportedOperator:  # only this choice: the best guess stands
            continue
        sketch = _sketch(other, outputs, name, doc)
        if all(sketch != known for known, _ in made):
            other.notes.append(f"choice {pick + 1} of {len(workshop.offered[problem])} for {problem.partition('(')[0]}")
            made.append((sketch, other))
    return made


def _settle(
    captured: Captured, outputs: list[v.Value], forced: dict[int, v.Value], cores: int, choices: dict[str, int]
) -> Workshop:
    """Makes all kernels; what turns out to be needed in memory is added to `forced`, so that the next attempt knows."""
    for _ in range(200):
        workshop = Workshop(captured, cores, choices)
        workshop.tensors = list(captured.tensors)
        workshop.names.taken |= {t.name for t in captured.tensors}
        try:
            _make(workshop, outputs, dict(forced))
        except MustRealise as e:
            if id(e.value) in forced:
                raise UnsupportedOperator(e.value.origin or type(e.value).__name__) from e
            forced[id(e.value)] = e.value
            continue
        return workshop
    raise UnsupportedOperator("this graph", "its parts could not be separated into kernels")


def _make(workshop: Workshop, outputs: list[v.Value], forced: dict[int, v.Value]) -> None:
    graph = Graph.of(outputs, forced)
    realised: dict[int, v.Value] = {id(o): o for o in outputs if not isinstance(o, v.Leaf)} | forced
    ends: dict[int, v.Contraction] = {}  # end of an epilogue → its contraction
    keep = set(realised)
    for value in graph.order:
        if isinstance(value, v.Contraction):
            end = region_end(value, graph.order, graph.users, keep)
            if id(end) in ends:  # two products meet here: the later one takes the epilogue, the other is stored by itself
                other = ends[id(end)]
                realised[id(other)] = other
                ends[id(other)] = other
            ends[id(end)] = value
            realised[id(end)] = end
        elif isinstance(value, v.Crafted):
            realised[id(value)] = value
    roots = [x for x in graph.order if id(x) in realised]
    stems = {id(o): "out" if len(outputs) == 1 else f"out{i}" for i, o in enumerate(outputs)}
    for root in roots:
        role = "output" if id(root) in stems else "temp"
        workshop.placed[id(root)] = workshop.declare(stems.get(id(root), _stem(root)), root.shape, root.dtype, role)
    done: set[int] = set()
    for i, root in enumerate(roots):
        if id(root) in done:
            continue
        if root.size == 0:
            _empty(workshop, root)
            continue
        if id(root) in ends:
            _contraction(workshop, ends[id(root)], root)
        elif isinstance(root, v.Crafted):
            root.craft(workshop, tuple(root.group) or (root,))
            done |= {id(x) for x in root.group}
        else:
            together = _companions(root, roots[i + 1 :], ends, done)
            _generic(workshop, [root, *together], done)


def _empty(workshop: Workshop, root: v.Value) -> None:
    """A result without elements still has a kernel that writes it: loops that do nothing."""
    names = [f"i{axis}" for axis, extent in enumerate(root.shape) if extent == 0]
    left = list(names)
    region = tuple(At(Sym(left.pop(0)) if extent == 0 else Int(0)) for extent in root.shape)
    value = nodes.Full((), False if root.dtype == nodes.DType.bool else 0, root.dtype)
    body: nodes.Statement = nodes.Store(workshop.placed[id(root)], region, value)
    for var in reversed(names):
        body = nodes.For(var, "range", Int(0), Int(0), Int(1), (body,))
    workshop.kernel("empty", (body,), final=False)


def _stem(value: v.Value) -> str:
    name = value.origin.split(".")[1].strip("_") if value.origin.startswith("aten.") else ""
    return f"{name}_{'part' if value.origin.endswith('partial') else 'kept'}" if name else "kept"


def _contraction(workshop: Workshop, contraction: v.Contraction, end: v.Value) -> None:
    try:
        lower_contraction(workshop, contraction, end)
    except NotFusible as e:
        if end is contraction:
            raise UnsupportedOperator(contraction.origin) from e
        raise MustRealise(contraction) from e
    after = [name for name in _joined(workshop, [end], contraction) if name != _operator(contraction)]
    if after:
        workshop.notes.append(f"{workshop.placed[id(end)]}: {_operator(contraction)} with {', '.join(after)} in its epilogue")


def _operator(value: v.Value) -> str:
    return value.origin.split(".")[1].strip("_") if value.origin.startswith("aten.") else type(value).__name__.lower()


def _joined(workshop: Workshop, roots: list[v.Value], stop: v.Value | None = None) -> list[str]:
    """Operators, in order, that are computed on the way to the roots from what is in memory (or from `stop`)."""
    names: list[str] = []
    seen: set[int] = set()

    def visit(value: v.Value) -> None:
        if id(value) in seen or value is stop or (id(value) in workshop.placed and value not in roots):
            return
        seen.add(id(value))
        for source in value.sources():
            visit(source)
        if value.origin.startswith("aten.") and not isinstance(value, v.View | v.Const) and _operator(value) not in names:
            names.append(_operator(value))

    for root in roots:
        visit(root)
    return names


def _companions(root: v.Value, later: list[v.Value], ends: dict[int, v.Contraction], done: set[int]) -> list[v.Value]:
    """Other realised values of the same shape that read the same data and do not need this one: made in the same kernel."""
    mine = _reads(root)
    found: list[v.Value] = []
    for other in later:
        if other.shape != root.shape or id(other) in ends or id(other) in done or isinstance(other, v.Crafted):
            continue
        below = v.topological([other])
        if any(x is root or id(x) in ends or isinstance(x, v.Crafted) for x in below):
            continue
        if any(x is not other and any(x is y for y in later) for x in below):
            continue
        if mine & _reads(other):
            found.append(other)
    return found[:7]


def _reads(value: v.Value) -> set[int]:
    return {id(x) for x in v.topological([value]) if (isinstance(x, v.Leaf) and x.size >= 64) or isinstance(x, v.Fold)}


def _generic(workshop: Workshop, roots: list[v.Value], done: set[int]) -> None:
    """One kernel for roots of one shape, or one for each if together they would waste work."""
    if len(roots) > 1:
        try:
            _kernel(workshop, roots)
        except MustRealise:
            roots = roots[:1]
        else:
            done |= {id(r) for r in roots}
            return
    _kernel(workshop, roots)
    done.add(id(roots[0]))


def _kernel(workshop: Workshop, roots: list[v.Value]) -> None:
    sections = _sections(roots[0]) if len(roots) == 1 else [None]
    bodies = []
    for section in sections:
        tracer = workshop.tracer(pinned=tuple(roots))
        nest = build(tracer, [(r, workshop.placed[id(r)]) for r in roots], section)
        schedule.refuse_waste(nest, workshop.cores)
        chosen = schedule.plan(nest)
        bodies.append((chosen.form, schedule.write(nest, chosen, workshop.view, {t.name for t in workshop.tensors})))
        workshop.cost += schedule.cost(nest)
    together = _joined(workshop, roots)
    if len(together) > 1:
        workshop.notes.append(f"{', '.join(workshop.placed[id(r)] for r in roots)}: {', '.join(together)} in one kernel")
    stem = roots[0].origin.split(".")[1].strip("_") if roots[0].origin.startswith("aten.") else "kernel"
    for form, body in bodies:
        workshop.kernel(f"{stem}_{form}", body)


def _sections(root: v.Value) -> list[tuple[int, int, int] | None]:
    """Where a concatenation cuts the root's range: each part gets a kernel in which the choice is already made."""
    value: v.Value = root
    seen = [root]
    while seen:
        value = seen.pop()
        if isinstance(value, v.Join) and value.shape == root.shape and len(value.parts) <= 16:
            cuts = [0]
            for part in value.parts:
                cuts.append(cuts[-1] + part.shape[value.axis])
            return [(value.axis, a, b) for a, b in itertools.pairwise(cuts) if a < b]
        if isinstance(value, v.Map):
            seen += [a for a in value.args if a.shape == root.shape]
    return [None]


def _sketch(workshop: Workshop, outputs: list[v.Value], name: str, doc: str) -> nodes.Sketch:
    def leaf(value: Any) -> Any:
        if isinstance(value, v.Leaf):
            return value.tensor
        return workshop.placed[id(value)] if isinstance(value, v.Value) else value

    def fill(tree: Any) -> Any:
        if isinstance(tree, str) and tree.startswith("#"):
            return leaf(workshop.captured.outputs[int(tree[1:])])
        if isinstance(tree, list):
            return [fill(t) for t in tree]
        return {k: fill(t) for k, t in tree.items()} if isinstance(tree, dict) else tree

    steps = tuple(workshop.steps)
    tensors = _used(workshop, steps)
    return nodes.Sketch(
        name,
        doc,
        (),
        tuple(workshop.tunables),
        tensors,
        steps,
        json.dumps(fill(workshop.captured.structure)),
        tuple(workshop.captured.constants),
    )


def _used(workshop: Workshop, steps: tuple[nodes.Kernel | nodes.LibraryCall, ...]) -> tuple[Tensor, ...]:
    """Tensors that something reads or writes; inputs stay, because forward takes them."""
    text = repr(steps)
    used = {t.name for t in workshop.tensors if f"'{t.name}'" in text}
    used |= {t.source for t in workshop.tensors if t.role == "view" and t.name in used}
    return tuple(t for t in workshop.tensors if t.name in used or t.role in ("input", "output", "constant"))
