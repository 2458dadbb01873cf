"""From the captured graph to sketches: partition.py decides which values are materialized, `make_root` makes the kernels of one.

A materialized value is traced and scheduled over what is in memory before it; what cannot be inlined there is told by `MustMaterialize`
(a contraction's epilogue: `NotFusible`). Kernels, tensors and views are collected in a SketchBuilder and become a `Sketch`.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from typing import Any

from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.captured import Captured
from kernelwright.compiler.graph.rewrites import split_reduction
from kernelwright.compiler.graph.symbolic import Extent
from kernelwright.compiler.graph.values import MustMaterialize
from kernelwright.compiler.schedule import loops
from kernelwright.compiler.schedule.candidate import CandidateCost
from kernelwright.compiler.schedule.contraction.join import lower_contraction
from kernelwright.compiler.schedule.fusion import NotFusible, before_folds
from kernelwright.compiler.schedule.nest import build
from kernelwright.compiler.schedule.partition import Partitioner
from kernelwright.compiler.schedule.sketch_builder import SketchBuilder, tensors_of
from kernelwright.compiler.schedule.waste import refuse_waste
from kernelwright.core.errors import UnsupportedOperator
from kernelwright.sketch import nodes
from kernelwright.sketch.nodes import At, Int, Sym, Tensor
from kernelwright.sketch.structure import StructuralKeys
from kernelwright.target import Capabilities

SPARE = 3
"""Designs that take the place of the best if that turns out wrong; more of them are there to be measured."""
MOST_SECTIONS = 512
"""Parts of a concatenation that get a kernel each; choosing among the parts for every element would cost more."""


def assemble(
    captured: Captured, name: str, doc: str, *, capabilities: Capabilities, limit: int = 1, seconds: float = 60.0
) -> list[tuple[nodes.Sketch, SketchBuilder]]:
    """Sketches of a captured graph: the best guess first, then up to `limit` - 1 others. If these are more than `SPARE`, all contractions
    spend memory or rounding for speed in the first of them; in the rest those of one problem take another choice, cheapest first. Others
    are only begun in the first `seconds`: a large network has one design."""
    started = time.monotonic()
    outputs = [o for o in captured.outputs if isinstance(o, v.Value)]
    forced, notes = split_reduction.split_long_reductions(v.topological(outputs), capabilities)
    partitioner = Partitioner(captured, outputs, forced, capabilities, make_root)
    best = partitioner.partition({})
    best.notes[:0] = notes
    made = [(_sketch(best, name, doc), best)]
    numbers: dict[Any, int] = {}
    known = {_structure(made[0][0], numbers)}
    for choices, what in [*(_spending(best.candidate_costs) if limit > SPARE else ()), *_others(best.candidate_costs)]:
        if len(made) >= limit or time.monotonic() - started > seconds:
            break
        try:
            other = partitioner.partition(choices)
        except UnsupportedOperator:  # only this choice: the best guess stands
            continue
        sketch = _sketch(other, name, doc)
        structure = _structure(sketch, numbers)
        if structure not in known:
            known.add(structure)
            other.notes[:0] = notes
            other.notes.append(what)
            made.append((sketch, other))
    return made


def _spending(candidate_costs: dict[str, list[CandidateCost]]) -> Iterator[tuple[dict[str, int], str]]:
    """The choices that spend something for speed, in all problems that have one: each kind of spending for itself, then all."""
    kinds = sorted({candidate.spends for candidates in candidate_costs.values() for candidate in candidates} - {""})
    for spent in [[kind] for kind in kinds] + ([kinds] if len(kinds) > 1 else []):
        picks = {
            problem: next((at for kind in spent for at, candidate in enumerate(candidates) if candidate.spends == kind), 0)
            for problem, candidates in candidate_costs.items()
        }
        yield {problem: pick for problem, pick in picks.items() if pick}, f"spends {' and '.join(spent)} for speed"


def _others(candidate_costs: dict[str, list[CandidateCost]]) -> Iterator[tuple[dict[str, int], str]]:
    """Every choice but the first of each problem, cheapest first."""
    dearer = sorted(
        (candidate.cost - candidates[0].cost, problem, pick)
        for problem, candidates in candidate_costs.items()
        for pick, candidate in enumerate(candidates)
        if pick
    )
    for _, problem, pick in dearer:
        yield {problem: pick}, f"choice {pick + 1} of {len(candidate_costs[problem])} for {problem.partition('(')[0]}"


def _structure(sketch: nodes.Sketch, numbers: dict[Any, int]) -> tuple[Any, ...]:
    """Equal for sketches whose steps are the same but for names."""
    table = StructuralKeys(sketch, numbers=numbers)
    return tuple(repr(step) if isinstance(step, nodes.LibraryCall) else table.of(step)[0] for step in sketch.steps)


def make_root(builder: SketchBuilder, root: v.Value, contraction: v.Contraction | None, together: list[v.Value]) -> set[int]:
    """Adds the kernels of one materialized value, and of those made `together` with it where that wastes nothing. Returns the ids of
    the values that are now made."""
    if root.size == 0:
        _empty(builder, root)
        return {id(root)}
    if contraction is not None:
        _contraction(builder, contraction, root)
        return {id(root)}
    if isinstance(root, v.CustomKernel):
        root.write(builder, tuple(root.group) or (root,))
        return {id(root), *(id(x) for x in root.group)}
    return _generic(builder, [root, *together])


def _empty(builder: SketchBuilder, root: v.Value) -> None:
    """A result without elements still has a kernel that writes it: loops that do nothing."""
    names = [f"i{axis}" for axis, extent in enumerate(root.shape) if extent == 0]
    left = list(names)
    region = tuple(At(Sym(left.pop(0)) if extent == 0 else Int(0)) for extent in root.shape)
    value = nodes.Full((), False if root.dtype == nodes.DType.bool else 0, root.dtype)
    body: nodes.Statement = nodes.Store(builder.placed[id(root)], region, value)
    for var in reversed(names):
        body = nodes.For(var, "range", Int(0), Int(0), Int(1), (body,))
    builder.kernel("empty", (body,), final=False)


def _contraction(builder: SketchBuilder, contraction: v.Contraction, end: v.Value) -> None:
    try:
        lower_contraction(builder, contraction, end)
    except NotFusible as e:
        if end is contraction:
            raise UnsupportedOperator(contraction.origin) from e
        raise MustMaterialize(before_folds(contraction, end)) from e
    after = [name for name in _joined(builder, [end], contraction) if name != _operator(contraction)]
    if after:
        builder.notes.append(f"{builder.placed[id(end)]}: {_operator(contraction)} with {', '.join(after)} in its epilogue")


def _operator(value: v.Value) -> str:
    return value.origin.split(".")[1].strip("_") if value.origin.startswith("aten.") else type(value).__name__.lower()


def _joined(builder: SketchBuilder, roots: list[v.Value], stop: v.Value | None = None) -> list[str]:
    """Operators, in order, that are computed on the way to the roots from what is in memory (or from `stop`)."""
    names: list[str] = []
    seen: set[int] = set()

    def visit(value: v.Value) -> None:
        if id(value) in seen or value is stop or (id(value) in builder.placed and value not in roots):
            return
        seen.add(id(value))
        for source in value.sources():
            visit(source)
        if value.origin.startswith("aten.") and not isinstance(value, v.View | v.Const) and _operator(value) not in names:
            names.append(_operator(value))

    for root in roots:
        visit(root)
    return names


def _generic(builder: SketchBuilder, roots: list[v.Value]) -> set[int]:
    """One kernel for roots of one shape, or only the first if together they would waste work."""
    if len(roots) > 1:
        try:
            _kernel(builder, roots)
            return {id(r) for r in roots}
        except MustMaterialize:
            pass
    _kernel(builder, roots[:1])
    return {id(roots[0])}


def _kernel(builder: SketchBuilder, roots: list[v.Value]) -> None:
    sections = _sections(roots[0]) if len(roots) == 1 else [None]
    bodies, machine = [], builder.capabilities
    for section in sections:
        tracer = builder.tracer(pinned=tuple(roots))
        nest = build(tracer, [(r, builder.placed[id(r)]) for r in roots], section)
        refuse_waste(nest, machine)
        chosen = loops.plan(nest, machine)
        why = f"{builder.placed[id(roots[0])]}: {loops.reason(nest, chosen, machine)}"
        taken = {t.name for t in builder.tensors} | builder.captured.region.sizes.keys()
        bodies.append((chosen.form, loops.write(nest, chosen, builder.view, taken, lines=machine.vectors)))
        builder.cost += loops.cost(nest, machine)
    builder.notes.append(why)
    together = _joined(builder, roots)
    if len(together) > 1:
        builder.notes.append(f"{', '.join(builder.placed[id(r)] for r in roots)}: {', '.join(together)} in one kernel")
    stem = roots[0].origin.split(".")[1].strip("_") if roots[0].origin.startswith("aten.") else "kernel"
    for form, body in bodies:
        builder.kernel(f"{stem}_{form}", body)


def _sections(root: v.Value) -> list[tuple[int, Extent, Extent] | None]:
    """Where a concatenation cuts the root's range: each part gets a kernel in which the choice is already made."""
    value: v.Value = root
    waiting, seen = [root], {id(root)}
    while waiting:
        value = waiting.pop()
        if isinstance(value, v.Concat) and value.shape == root.shape and len(value.parts) <= MOST_SECTIONS:
            cuts: list[Extent] = [0]
            for part in value.parts:
                cuts.append(cuts[-1] + part.shape[value.axis])
            return [(value.axis, a, b) for a, b in itertools.pairwise(cuts) if a != b]
        if isinstance(value, v.Map):
            fresh = [a for a in value.args if a.shape == root.shape and id(a) not in seen]
            waiting += fresh
            seen |= {id(a) for a in fresh}
    return [None]


def _sketch(builder: SketchBuilder, name: str, doc: str) -> nodes.Sketch:
    def leaf(value: Any) -> Any:
        if isinstance(value, v.Leaf):
            return value.tensor
        return builder.placed[id(value)] if isinstance(value, v.Value) else value

    def fill(tree: Any) -> Any:
        if isinstance(tree, str) and tree.startswith("#"):
            return leaf(builder.captured.outputs[int(tree[1:])])
        if isinstance(tree, list):
            return [fill(t) for t in tree]
        return {k: fill(t) for k, t in tree.items()} if isinstance(tree, dict) else tree

    steps = _in_time(builder)
    tensors = _used(builder, steps)
    return nodes.Sketch(
        name,
        doc,
        builder.captured.region.declared(),
        tuple(builder.tunables),
        tensors,
        steps,
        json.dumps(fill(builder.captured.structure)),
        tuple(builder.captured.constants),
    )


def _in_time(builder: SketchBuilder) -> tuple[nodes.Kernel | nodes.LibraryCall, ...]:
    """The steps in their order, except that a temporary which is made of inputs and parameters alone is made right before it is needed:
    it lies in memory for a shorter time, and nothing has to lie there for longer."""
    roots = {t.name: t.source for t in builder.tensors if t.role == "view"}
    roles = {t.name: t.role for t in builder.tensors}

    def touched(step: nodes.Kernel | nodes.LibraryCall) -> tuple[set[str], set[str]]:
        if isinstance(step, nodes.LibraryCall):
            return set(step.inputs), set(step.outputs)
        read, written = tensors_of(step.body)
        return {roots.get(name, name) for name in read}, {roots.get(name, name) for name in written}

    touches = [touched(step) for step in builder.steps]

    def place(number: int) -> float:
        read, written = touches[number]
        if any(roles[name] == "temp" for name in read) or any(roles[name] != "temp" for name in written):
            return number
        others = (k for k, sets in enumerate(touches) if k != number and written & (sets[0] | sets[1]))
        first = next(others, number)
        return first - 0.5 if first > number else number

    order = sorted(range(len(touches)), key=lambda number: (place(number), number))
    return tuple(builder.steps[number] for number in order)


def _used(builder: SketchBuilder, steps: tuple[nodes.Kernel | nodes.LibraryCall, ...]) -> tuple[Tensor, ...]:
    """Tensors that something reads or writes; inputs stay, because forward takes them."""
    text = repr(steps)
    used = {t.name for t in builder.tensors if f"'{t.name}'" in text}
    used |= {t.source for t in builder.tensors if t.role == "view" and t.name in used}
    return tuple(t for t in builder.tensors if t.name in used or t.role in ("input", "output", "constant"))
