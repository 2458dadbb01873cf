"""Which values are materialized, and in which order they are made.

1. Values that must be in memory are found: results, contractions up to the end of their epilogue, custom kernels, and what
   earlier attempts found to be needed (`forced`).
2. Each of these roots is made over what is in memory before it. Whatever cannot be inlined there (`MustMaterialize`) is materialized too,
   and the plan is drawn anew. What rests on none of the changes is kept, so a network of hundreds of layers is made about once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.captured import Captured
from kernelwright.compiler.graph.memory_budget import copies_fit
from kernelwright.compiler.graph.symbolic import likely
from kernelwright.compiler.graph.values import MustMaterialize
from kernelwright.compiler.schedule.candidate import CandidateCost
from kernelwright.compiler.schedule.fusion import region_end
from kernelwright.compiler.schedule.sketch_builder import SketchBuilder
from kernelwright.core.errors import UnsupportedOperator
from kernelwright.sketch import nodes
from kernelwright.target import Capabilities

ATTEMPTS = 400
"""Plans that are drawn before a graph is given up; each materializes at least one more value."""

DEEP = 120
"""Operations that one kernel may do in a chain; a longer one (a loop over time, unrolled) is stored on its way."""

SHOWN = 4
"""Operations from which a value that is both collected and used further is stored rather than computed twice."""

MakeRoot = Callable[[SketchBuilder, v.Value, v.Contraction | None, list[v.Value]], set[int]]


@dataclass(frozen=True)
class Plan:
    """Roots in the order in which they are made. `ends` says which contraction a root ends the epilogue of; `light` are the
    values that no contraction and no custom kernel comes before."""

    roots: list[v.Value]
    ends: dict[int, v.Contraction]
    light: set[int]


@dataclass(frozen=True)
class Finished:
    """What making a root gave, and what that rested on: which values of its cone were in memory (and made from parameters only),
    its contraction, what was made with it, and the choices of its problems."""

    cone: dict[int, str | None]
    prepared: frozenset[str]
    contraction: v.Contraction | None
    together: tuple[int, ...]
    picks: dict[str, int]
    made: set[int]
    steps: list[nodes.Kernel | nodes.LibraryCall]
    tunables: list[nodes.Tunable]
    notes: list[str]
    candidate_costs: dict[str, list[CandidateCost]]
    newly_prepared: set[str]
    cost: float


@dataclass
class Partitioner:
    """Makes builders of one captured graph; names, views and finished roots are kept from one to the next."""

    captured: Captured
    outputs: list[v.Value]
    forced: dict[int, v.Value]
    capabilities: Capabilities
    make_root: MakeRoot
    finished: dict[int, Finished] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.base = SketchBuilder(self.captured, self.capabilities, copies_fit=copies_fit(self.captured))
        self.base.tensors = list(self.captured.tensors)
        self.base.names.taken |= {t.name for t in self.captured.tensors} | self.captured.region.sizes.keys()
        self.forced |= _waypoints(self.outputs)

    def partition(self, choices: dict[str, int]) -> SketchBuilder:
        """All kernels of the graph, with these choices for its contractions."""
        before = dict(self.forced)
        try:
            return self._partitioned(choices)
        finally:
            if choices:  # what only this choice needs in memory
                self.forced = before

    def _partitioned(self, choices: dict[str, int]) -> SketchBuilder:
        for _ in range(ATTEMPTS):
            builder = replace(
                self.base,
                choices=choices,
                candidate_costs={},
                placed={},
                steps=[],
                tunables=[],
                notes=[],
                prepared=set(),
                cost=0.0,
            )
            missing = self._attempt(builder)
            if not missing:
                return builder
            for value in missing:
                if id(value) in self.forced:
                    raise UnsupportedOperator(value.origin or type(value).__name__)
                self.forced[id(value)] = value
        raise UnsupportedOperator("this graph", "its parts could not be separated into kernels")

    def _attempt(self, builder: SketchBuilder) -> list[v.Value]:
        """Makes what can be made; returns what must be materialized before the rest can."""
        plan = self._plan()
        results = {id(o): "out" if len(self.outputs) == 1 else f"out{i}" for i, o in enumerate(self.outputs)}
        for root in plan.roots:
            if id(root) not in self.names:
                role = "output" if id(root) in results else "temp"
                stem = results.get(id(root), _stem(root))
                self.names[id(root)] = builder.declare(stem, root.shape, root.dtype, role)
            builder.placed[id(root)] = self.names[id(root)]
        missing: dict[int, v.Value] = {}
        done: set[int] = set()
        for i, root in enumerate(plan.roots):
            if id(root) in done:
                continue
            contraction = plan.ends.get(id(root))
            alone = contraction is not None or isinstance(root, v.CustomKernel) or root.stored
            together = [] if alone else _companions(root, plan, i, done)
            cone = _cone([root, *together], builder.placed)
            if any(key in cone for key in missing):  # it may look different once these are in memory
                continue
            kept = self.finished.get(id(root))
            if kept is None or not _holds(kept, builder, cone, contraction, together):
                try:
                    kept = self._make(builder, root, contraction, together, cone)
                except MustMaterialize as e:
                    missing[id(e.value)] = e.value
                    continue
                self.finished[id(root)] = kept
            done |= kept.made
            _add(builder, kept)
        return list(missing.values())

    def _make(
        self, builder: SketchBuilder, root: v.Value, contraction: v.Contraction | None, together: list[v.Value], cone: dict[int, str | None]
    ) -> Finished:  # fmt: skip
        own = replace(builder, candidate_costs={}, steps=[], tunables=[], notes=[], prepared=set(builder.prepared), cost=0.0)
        made = self.make_root(own, root, contraction, together)
        return Finished(
            cone, frozenset(_prepared(builder, cone)), contraction, tuple(map(id, together)),
            {key: builder.choices.get(key, 0) for key in own.candidate_costs}, made, own.steps, own.tunables, own.notes,
            own.candidate_costs, own.prepared - builder.prepared, own.cost,
        )  # fmt: skip

    def _plan(self) -> Plan:
        order = v.topological([*self.outputs, *self.forced.values()])
        place = {id(value): i for i, value in enumerate(order)}
        users: dict[int, list[v.Value]] = {}
        light: set[int] = set()
        for value in order:
            for source in value.sources():
                users.setdefault(id(source), []).append(value)
            if not isinstance(value, v.Contraction | v.CustomKernel) and all(id(s) in light for s in value.sources()):
                light.add(id(value))
        materialized: dict[int, v.Value] = {id(o): o for o in self.outputs if not isinstance(o, v.Leaf)} | self.forced
        ends: dict[int, v.Contraction] = {}  # end of an epilogue → its contraction
        keep = set(materialized)
        for value in order:
            if isinstance(value, v.Contraction):
                end = region_end(value, order, users, keep, place[id(value)], folds=self.capabilities.vectors)
                if id(end) in ends:  # two products meet here: the later one takes the epilogue, the other is stored by itself
                    other = ends[id(end)]
                    materialized[id(other)] = other
                    ends[id(other)] = other
                ends[id(end)] = value
                materialized[id(end)] = end
            elif isinstance(value, v.CustomKernel):
                materialized[id(value)] = value
        return Plan([x for x in order if id(x) in materialized], ends, light)


def _waypoints(outputs: list[v.Value]) -> dict[int, v.Value]:
    """Values on the way of long chains of operations that are materialized, so that no expression grows without end; and steps of a loop
    that both go on and are collected in one result, which would else be computed from the start for each part of it."""
    order = v.topological(outputs)
    users: dict[int, int] = {}
    collected: set[int] = set()
    for value in order:
        for source in value.sources():
            users[id(source)] = users.get(id(source), 0) + 1
        if isinstance(value, v.Concat):
            collected |= {id(_behind_views(part)) for part in value.parts}
    found: dict[int, v.Value] = {}
    depth: dict[int, int] = {}
    for value in order:
        below = max((depth[id(source)] for source in value.sources()), default=0)
        works = isinstance(value, v.Map | v.Reduce | v.ArgReduce | v.Scan)
        depth[id(value)] = 0 if isinstance(value, v.Contraction | v.CustomKernel) else below + works
        shown = id(value) in collected and users.get(id(value), 0) > 1 and depth[id(value)] >= SHOWN
        if works and (shown or depth[id(value)] > DEEP):
            found[id(value)] = value
            depth[id(value)] = 0
    return found


def _behind_views(value: v.Value) -> v.Value:
    while isinstance(value, v.View):
        value = value.source
    return value


def _add(builder: SketchBuilder, part: Finished) -> None:
    builder.steps += part.steps
    builder.tunables += part.tunables
    builder.notes += part.notes
    builder.prepared |= part.newly_prepared
    builder.cost += part.cost
    for key, candidates in part.candidate_costs.items():
        before = builder.candidate_costs.get(key, [CandidateCost(0.0, candidate.spends) for candidate in candidates])
        builder.candidate_costs[key] = [a.joined(b.cost) for a, b in zip(before, candidates, strict=False)]


def _cone(roots: list[v.Value], placed: dict[int, str]) -> dict[int, str | None]:
    """Every value between the roots and what is in memory, with the tensor of those that are."""
    cone: dict[int, str | None] = {}
    stack = list(roots)
    while stack:
        value = stack.pop()
        if id(value) in cone:
            continue
        cone[id(value)] = placed.get(id(value))
        if id(value) not in placed or value in roots:
            stack.extend(value.sources())
        if isinstance(value, v.CustomKernel):
            cone |= {id(x): placed.get(id(x)) for x in value.group}
    return cone


def _prepared(builder: SketchBuilder, cone: dict[int, str | None]) -> set[str]:
    return {name for name in cone.values() if name is not None and name in builder.prepared}


def _holds(
    part: Finished,
    builder: SketchBuilder,
    cone: dict[int, str | None],
    contraction: v.Contraction | None,
    together: list[v.Value],
) -> bool:
    """Whether all that a finished root rested on is still so."""
    return (
        part.contraction is contraction
        and part.together == tuple(map(id, together))
        and part.cone == cone
        and part.prepared == _prepared(builder, cone)
        and all(builder.choices.get(key, 0) == pick for key, pick in part.picks.items())
    )


def _stem(value: v.Value) -> str:
    name = value.origin.split(".")[1].strip("_") if value.origin.startswith("aten.") else ""
    return f"{name}_{'part' if value.origin.endswith('partial') else 'kept'}" if name else "kept"


def _companions(root: v.Value, plan: Plan, at: int, done: set[int]) -> list[v.Value]:
    """Other materialized values of the same shape that read the same data and do not need this one: made in the same kernel. What is stored
    on the way to one result is made for itself, when it is needed."""
    light = (x for x in plan.roots[at + 1 :] if id(x) in plan.light and id(x) not in done and not x.stored)
    later = [x for x in light if x.shape == root.shape]
    if not later:
        return []
    mine = _reads(root)
    waiting = {id(x) for x in plan.roots[at + 1 :]}
    found: list[v.Value] = []
    for other in later:
        below = v.topological([other])
        if any(x is root or (x is not other and id(x) in waiting) for x in below):
            continue
        if mine & _reads(other):
            found.append(other)
    return found[:7]


def _reads(value: v.Value) -> set[int]:
    return {
        id(x) for x in v.topological([value]) if (isinstance(x, v.Leaf) and likely(x.size) >= 64) or isinstance(x, v.Reduce)
    }
