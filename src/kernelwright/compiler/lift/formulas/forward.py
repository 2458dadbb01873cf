"""A whole forward: launches followed one after another, torch's operators between them by the designer's own rules.

In: what was seen of a call, and how to follow its launches. Out: a sketch, assembled by the designer of the graph of lazy
values that forward computes, and run on the same inputs: one that computes something else was read wrongly.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from torch.utils import _pytree as pytree

from kernelwright.compiler.frontend.capture import plain_tree
from kernelwright.compiler.frontend.operators import Result, find
from kernelwright.compiler.graph import build as b
from kernelwright.compiler.graph import values as v
from kernelwright.compiler.graph.captured import Captured
from kernelwright.compiler.graph.index_maps import constant_index, unflatten
from kernelwright.compiler.graph.values import Value
from kernelwright.compiler.lift.formulas.affine import Space
from kernelwright.compiler.lift.formulas.general import Form, Generaliser
from kernelwright.compiler.lift.formulas.graph import Builder
from kernelwright.compiler.lift.formulas.memory import Followed, Memory
from kernelwright.compiler.lift.formulas.refusal import Refused
from kernelwright.compiler.lift.formulas.terms import Term, Terms
from kernelwright.compiler.lift.launches import Copy, Fill, Launch, Operation, Seen, View
from kernelwright.compiler.schedule.assemble import assemble
from kernelwright.sketch import nodes
from kernelwright.sketch.check.rules import require
from kernelwright.sketch.interpret import interpreter
from kernelwright.sketch.interpret.compare import difference
from kernelwright.target import Capabilities, Target

SECONDS = 2.5
FEWEST, MOST = 48, 1500
RARE = 0.2
"""The share of samples that may have a form of their own."""
Follow = Callable[[Launch], Followed]
_WHERE = ("device", "layout", "pin_memory", "non_blocking")
"""Keywords of torch's operators that say where a result lies, not what it is."""


def sketch_of(seen: Seen, follow: Follow) -> nodes.Sketch:
    """The sketch of a whole forward, of whose launches `follow` tells what they write. What is refused as a whole is refused at forward's
    line."""
    try:
        return _checked(seen, follow)
    except Refused as refused:
        head = re.search(r"^[ \t]*def forward\b", seen.source, re.MULTILINE)
        if refused.line or head is None:
            raise
        raise Refused(seen.source.count("\n", 0, head.start()) + 1, refused.reason) from None


@cache
def this_machine() -> Capabilities:
    """Where a sketch is held against the kernel; whoever migrates it schedules it anew. Read before the sandbox closes."""
    return Capabilities.of(Target.host())


def _checked(seen: Seen, follow: Follow) -> nodes.Sketch:
    """The sketch, which gives what the kernel gave on the inputs seen, where its launches were run."""
    captured = Forward(seen, follow).captured()
    sketch = require(assemble(captured, re.sub(r"\W", "_", seen.name), seen.doc, capabilities=this_machine())[0][0])
    if not seen.executed:
        return sketch
    found = interpreter.call(sketch, pytree.tree_leaves(seen.inputs), seen.state, strict=True)
    for number, (want, got) in enumerate(zip(seen.results, pytree.tree_leaves(found), strict=True)):
        _, reason = difference(want, got)
        if reason:
            raise Refused(0, f"read wrongly: output {number} of the sketch is not what the kernel computes ({reason})")
    return sketch


class Forward:
    """Walks a trace."""

    def __init__(self, seen: Seen, follow: Follow, *, products: bool = True) -> None:
        self.trace, self.follow, self.products = seen.trace, follow, products
        self.tensors: list[nodes.Tensor] = []
        self.constants: list[tuple[str, tuple[Any, ...]]] = []
        self.held: dict[str, Value] = {}
        self.leaves: dict[str, nodes.Tensor] = {}

    def captured(self) -> Captured:
        """The graph."""
        for step in self.trace.steps:
            self._step(step)
        leaves, tree = pytree.tree_flatten(self.trace.returns)
        outputs = [self.seen(leaf) if isinstance(leaf, View) else leaf for leaf in leaves]
        structure = plain_tree(pytree.tree_unflatten([f"#{k}" for k in range(len(outputs))], tree))
        used = {x.tensor for x in v.topological([o for o in outputs if isinstance(o, Value)]) if isinstance(x, v.Leaf)}
        for name, buffer in self.trace.buffers.items():
            if buffer.role == "input":
                self._leaf(name)
        tensors = [t for t in self.leaves.values() if t.role == "input" or t.name in used]
        tensors.sort(key=lambda t: (t.role != "input", int(t.source) if t.role == "input" else 0))
        constants = [c for c in self.constants if c[0] in used]
        return Captured(tensors, constants, outputs, structure)

    # ------------------------------------------------------------ memory

    def holds(self, name: str) -> Value:
        """What is in a buffer now, under the buffer's shape."""
        if name not in self.held:
            buffer = self.trace.buffers[name]
            if buffer.role in ("input", "param") or (buffer.role == "constant" and buffer.values):
                self.held[name] = self._leaf(name)
            elif buffer.role == "constant":
                raise Refused(0, f"forward reads a tensor of {buffer.elements} numbers that is neither input nor parameter")
            else:
                self.held[name] = b.const(0, buffer.dtype, buffer.shape)  # uninitialised: nobody may look at it
        return self.held[name]

    def _leaf(self, name: str) -> Value:
        buffer = self.trace.buffers[name]
        shape = buffer.shape
        if buffer.order is not None:
            shape = tuple(buffer.shape[buffer.order.index(k)] for k in range(len(buffer.order)))
        source = name if buffer.role == "constant" else buffer.source
        if name not in self.leaves:
            self.leaves[name] = nodes.Tensor(name, tuple(nodes.Int(e) for e in shape), buffer.dtype, buffer.role, source)
            if buffer.role == "constant":
                self.constants.append((name, buffer.values))
            self._leaf_value = v.Leaf(shape, buffer.dtype, name, origin=buffer.role)
            self.held.setdefault(name, self._leaf_value if buffer.order is None else b.permute(self._leaf_value, buffer.order))
        return self.held[name]

    def seen(self, view: View) -> Value:
        """A tensor of forward."""
        buffer = self.trace.buffers[view.buffer]
        base = self.holds(view.buffer)
        if view.whole(buffer):
            return b.reshape(base, view.shape)

        def move(coords: v.MultiIndex) -> v.MultiIndex:
            flat = constant_index(view.offset)
            for c, stride in zip(coords, view.strides, strict=True):
                flat = flat + c * stride
            return unflatten(flat, base.shape)

        return v.View(view.shape, base.dtype, base, move, kind="strided")

    def _put(self, view: View, value: Value, what: str) -> None:
        buffer = self.trace.buffers[view.buffer]
        if not view.whole(buffer):
            order = sorted(range(len(view.shape)), key=lambda k: -view.strides[k])
            dense = View(view.buffer, tuple(view.shape[k] for k in order), tuple(view.strides[k] for k in order), view.offset)
            if not dense.whole(buffer):
                raise Refused(0, f"{what} writes a part of a tensor")
            value = b.permute(b.expand(value, view.shape), order)
        self.held[view.buffer] = b.reshape(b.expand(b.cast(value, buffer.dtype), value.shape), buffer.shape)

    # ------------------------------------------------------------ steps

    def _step(self, step: Any) -> None:
        match step:
            case Fill():
                buffer = self.trace.buffers[step.target.buffer]
                self._put(step.target, b.const(step.value, buffer.dtype, step.target.shape), "a fill")
            case Copy():
                self._put(step.target, b.expand(self.seen(step.source), step.target.shape), "a copy")
            case Operation():
                self._operation(step)
            case Launch():
                self._launch(step)

    def _operation(self, step: Operation) -> None:
        name = step.name
        rule = find(name) or find(name.replace("_.", "."))
        short = name.removeprefix("aten.").split(".")[0]
        if rule is None:
            raise Refused(0, f"forward calls {short} of torch, which has no rule here")

        def known(value: Any) -> Any:
            if isinstance(value, View):
                return self.seen(value)
            return [known(x) for x in value] if isinstance(value, tuple | list) else value

        results = [Result(o.shape, self.trace.buffers[o.buffer].dtype) for o in step.outputs]
        keywords = {k: known(a) for k, a in step.keywords.items() if k not in _WHERE}
        try:
            made = rule(results[0] if len(results) == 1 else tuple(results), *map(known, step.arguments), **keywords)
        except (NotImplementedError, TypeError) as e:
            raise Refused(0, f"forward calls {short} of torch in a way that has no rule here: {e}") from e
        for view, value in zip(step.outputs, made if isinstance(made, tuple) else (made,), strict=False):
            if isinstance(value, Value):
                self._put(view, value, short)

    def _launch(self, launch: Launch) -> None:
        followed = self.follow(launch)
        try:
            self._written(followed)
        except Refused as refused:
            if refused.line:
                raise
            placed = getattr(self.follow, "refused", None)  # about what the kernel computes, not about one of its lines
            raise (Refused(0, f"{launch.name}: {refused.reason}") if placed is None else placed(refused, launch)) from None

    def _written(self, followed: Followed) -> None:
        terms = Terms(followed.tape)
        builder = Builder(self.holds, products=self.products)
        made: dict[str, Value] = {}
        for name, memory in followed.memories.items():
            if memory.written:
                shape = self.trace.buffers[name].shape
                points, formulas = _samples(memory, shape, terms, followed)
                form = _form(Generaliser(self.trace.buffers), Space(points, shape), formulas)
                made[name] = b.expand(b.cast(builder.value(form, shape), self.trace.buffers[name].dtype), shape)
        self.held.update(made)


def _form(general: Generaliser, space: Space, formulas: list[Term]) -> Form:
    """The formula of all samples. Where a few of them have a form of their own (the first row of a triangle has sums of one term), what
    the others say may hold for them too: whether it does is seen when the whole is run."""
    try:
        return general.form(space, formulas)
    except Refused:
        counts: dict[int, int] = {}
        for term in formulas:
            counts[term.shape] = counts.get(term.shape, 0) + 1
        usual = max(counts, key=lambda shape: counts[shape])
        kept = [k for k, term in enumerate(formulas) if term.shape == usual]
        if len(kept) == len(formulas) or len(kept) < (1 - RARE) * len(formulas):
            raise
        return general.form(Space(space.points[kept], space.extents), [formulas[k] for k in kept])


def _samples(memory: Memory, shape: tuple[int, ...], terms: Terms, followed: Followed) -> tuple[Any, list[Term]]:
    """Elements with their formulas: corners, borders and others, as many as the time allows."""
    written = np.fromiter(memory.written, dtype=np.int64)
    draw = random.Random(0)
    total = int(np.prod(shape, dtype=np.int64))
    coords = np.stack(np.unravel_index(written, shape), axis=1) if shape else np.zeros((len(written), 0), dtype=np.int64)
    near = np.zeros(len(written))
    for k, extent in enumerate(shape):
        near += np.isin(coords[:, k], [0, 1, extent - 2, extent - 1]) if extent > 4 else 0
    order = sorted(range(len(written)), key=lambda _: draw.random())
    borders = sorted(order, key=lambda k: -near[k])
    mixed = [k for pair in zip(borders, order, strict=True) for k in pair]
    lead = [int(np.argmin(written)), int(np.argmax(written))]
    chosen: list[int] = []
    formulas: list[Term] = []
    started = time.monotonic()
    for k in dict.fromkeys([*lead, *mixed]):
        if len(chosen) >= FEWEST and (time.monotonic() - started > SECONDS or len(chosen) >= MOST):
            break
        chosen.append(k)
        formulas.append(terms.of(memory.written[int(written[k])]))
    points = coords[chosen]
    if followed.complete and len(written) < total:
        missing = sorted(set(draw.sample(range(total), min(total, 4000))) - set(memory.written))[:400]
        edge = sorted({int(w) + d for w in written[chosen] for d in (-1, 1)} - set(memory.written))
        rest = [m for m in dict.fromkeys([*edge, *missing]) if 0 <= m < total][:600]
        away = (
            np.stack(np.unravel_index(np.array(rest), shape), axis=1)
            if shape and rest
            else np.zeros((0, len(shape)), dtype=np.int64)
        )
        points = np.concatenate([points, away])
        formulas += [terms.make("load", memory.name, memory.type, m) for m in rest]
    return points, formulas
