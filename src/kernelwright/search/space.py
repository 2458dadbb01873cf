"""What may be changed in a sketch without changing what it computes: a sketch in, a space of checked variants out.

1. `tunable` finds the tile extents that are free (the steps of loops) and gives each a name: a Tunable with the values it may take;
   what in the loop's body depends on the extent (slices, accumulators) follows, and the checker says whether all of it was found.
2. `loop_pairs` finds parallel loops that stand directly inside one another and may be exchanged.
3. `Space` holds both as axes; `variant` binds a choice to a sketch that lowers like any other, or None where the checker objects.

Nothing here knows a schedule family: a sketch written by a model or a person has the same axes as one of the designer's.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from kernelwright.core.errors import SketchError
from kernelwright.sketch import nodes
from kernelwright.sketch.check.rules import check, infer
from kernelwright.sketch.nodes import For, Int, Kernel, Sketch, Sym, Tunable
from kernelwright.sketch.walk import statements

MOST_SITES = 8
"""Places in one loop whose extent may or may not be the loop's: every choice of them is tried, so there must not be many."""
UNLIKE = 1_000_003
"""An extent that no other one has: with it, shapes fit only if just the right ones follow the loop."""
FACTORS = (0.25, 0.5, 1, 2, 4)

Values = Mapping[str, int]


@dataclass(frozen=True)
class Space:
    """The variants of one sketch. An axis is a tunable by its name, or `order of I and J` with the values 0 (as it is) and 1."""

    sketch: Sketch
    pairs: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, sketch: Sketch) -> Space:
        named = tunable(sketch)
        return cls(named, tuple(loop_pairs(named)))

    @cached_property
    def axes(self) -> dict[str, tuple[int, ...]]:
        """Names and values of all axes; an axis with one value is none."""
        tiles = {item.name: item.domain for item in self.sketch.tunables if len(item.domain) > 1}
        return {**tiles, **{_order(pair): (0, 1) for pair in self.pairs}}

    @property
    def defaults(self) -> dict[str, int]:
        """The sketch as it was designed."""
        tiles = {item.name: item.value for item in self.sketch.tunables if len(item.domain) > 1}
        return {**tiles, **{_order(pair): 0 for pair in self.pairs}}

    @property
    def size(self) -> int:
        """How many choices there are, the invalid ones included."""
        count = 1
        for values in self.axes.values():
            count *= len(values)
        return count

    def points(self) -> Iterator[dict[str, int]]:
        """All choices, for spaces small enough to be searched whole."""
        for values in itertools.product(*self.axes.values()):
            yield dict(zip(self.axes, values, strict=True))

    def variant(self, values: Values) -> Sketch | None:
        """The sketch for a choice; None where it breaks a rule (tiles that stick out where they may not, races)."""
        sketch = self.sketch
        for pair in self.pairs:
            if values.get(_order(pair)):
                sketch = exchanged(sketch, pair)
        sketch = bound(sketch, values)
        return None if check(sketch) else sketch


def _order(pair: tuple[str, str]) -> str:
    return f"order of {pair[0]} and {pair[1]}"


# ---------------------------------------------------------------- tile extents


def tunable(sketch: Sketch, only: Collection[int] | None = None, extents: Collection[int] = ()) -> Sketch:
    """The same sketch with a name for every tile extent that may change; those that already have one keep it. `only` are the
    numbers of the kernels to look at, where not all of them matter; `extents` are wanted beside fractions and multiples of what is."""
    for number, kernel in enumerate(sketch.steps):
        if isinstance(kernel, Kernel) and not kernel.once and (only is None or number in only):
            for variable in [loop.var for loop, _ in statements(kernel.body) if isinstance(loop, For)]:
                sketch = _freed(sketch, number, variable, extents) or sketch
    return sketch


def bound(sketch: Sketch, values: Values) -> Sketch:
    """The sketch with numbers for its tunables: those given, and the others' own."""
    known = {item.name: Int(values.get(item.name, item.value)) for item in sketch.tunables}

    def number(node: Any) -> Any:
        return known.get(node.name, node) if isinstance(node, Sym) else node

    numbered: Sketch = _rewritten(sketch, number)
    return replace(numbered, tunables=())


def _freed(sketch: Sketch, number: int, variable: str, extents: Collection[int] = ()) -> Sketch | None:
    """The sketch with the extent of one loop's tiles freed; None where that extent is fixed."""
    kernel = sketch.steps[number]
    assert isinstance(kernel, Kernel)
    loop = next(item for item, _ in statements(kernel.body) if isinstance(item, For) and item.var == variable)
    if not isinstance(loop.step, Int) or loop.step.value < 2 or sum(1 for _ in _loops(kernel, variable)) > 1:
        return None
    old, name = loop.step.value, Sym(_fresh(sketch, variable))
    sites = list(_sites(loop, old))
    if len(sites) > MOST_SITES:
        return None
    extent = _extent(loop)
    scaled = (int(old * factor) for factor in FACTORS)
    wanted = sorted({value for value in (*scaled, *extents) if 1 <= value <= max(extent, old)})
    for count in range(len(sites), -1, -1):
        for chosen in itertools.combinations(sites, count):
            freed = _with_name(sketch, number, loop, name, set(chosen))
            declared = replace(freed, tunables=(*sketch.tunables, Tunable(name.name, old, (old,))))
            if not _types(bound(declared, {name.name: UNLIKE})):
                continue
            domain = tuple(value for value in wanted if value == old or not check(bound(declared, {name.name: value})))
            if len(domain) > 1 and not check(bound(declared, {})):
                return replace(freed, tunables=(*sketch.tunables, Tunable(name.name, old, domain)))
            return None
    return None


def _types(sketch: Sketch) -> bool:
    try:
        infer(sketch)
    except SketchError:
        return False
    return True


Site = tuple[int, int]
"""The id of a node with a shape, and a position in that shape."""


def _sites(loop: For, old: int) -> Iterator[Site]:
    """Shapes in the loop's body with an extent of this value: each may be the loop's, or happen to be equal."""
    seen: set[int] = set()
    for node in _parts(loop.body):
        if isinstance(node, nodes.Full | nodes.Reshape | nodes.Expand | nodes.Iota | nodes.Part) and id(node) not in seen:
            seen.add(id(node))
            yield from ((id(node), position) for position, extent in enumerate(_shape(node, loop.var)) if extent == Int(old))


def _shape(node: Any, variable: str) -> tuple[Any, ...]:
    """The extents that a node states; slices that begin at the loop's variable are the loop's without question."""
    if isinstance(node, nodes.Part):
        spans = (axis if isinstance(axis, nodes.Span) and not _mentions(axis.start, variable) else None for axis in node.region)
        return tuple(span and span.extent for span in spans)
    return (node.extent,) if isinstance(node, nodes.Iota) else tuple(node.shape)


def _with_name(sketch: Sketch, number: int, loop: For, name: Sym, chosen: set[Site]) -> Sketch:
    """The loop's step, the slices that begin at its variable, and the chosen extents of shapes by the new name."""
    old = loop.step

    def inside(node: Any) -> Any:
        if isinstance(node, nodes.Span) and node.extent == old and _mentions(node.start, loop.var):
            return replace(node, extent=name)
        if isinstance(node, nodes.IndexOp) and node.op == "+" and node.right == old and _mentions(node.left, loop.var):
            return replace(node, right=name)
        return node

    def shaped(node: Any, original: Any) -> Any:
        if isinstance(node, nodes.Full | nodes.Reshape | nodes.Expand):
            shape = tuple(name if (id(original), at) in chosen else extent for at, extent in enumerate(node.shape))
            return replace(node, shape=shape)
        if isinstance(node, nodes.Iota) and (id(original), 0) in chosen:
            return nodes.Iota(name)
        if isinstance(node, nodes.Part):
            region = (
                replace(axis, extent=name) if isinstance(axis, nodes.Span) and (id(original), at) in chosen else axis
                for at, axis in enumerate(node.region)
            )
            return replace(node, region=tuple(region))
        return node

    def start(node: Any) -> Any:
        return name if node == old else node

    body = _rewritten(loop.body, inside, shaped)
    freed = replace(loop, step=name, body=body, start=_rewritten(loop.start, start))

    def exchange(node: Any) -> Any:
        return freed if node is loop else node

    kernel = sketch.steps[number]
    steps = (*sketch.steps[:number], _replaced(kernel, exchange), *sketch.steps[number + 1 :])
    return replace(sketch, steps=steps)


def _extent(loop: For) -> int:
    """How far a loop goes, where that is a number; else as far as its own step."""
    if isinstance(loop.start, Int) and isinstance(loop.stop, Int):
        return loop.stop.value - loop.start.value
    return loop.step.value * 4 if isinstance(loop.step, Int) else 0


def _fresh(sketch: Sketch, variable: str) -> str:
    taken = {size.name for size in sketch.sizes} | {item.name for item in sketch.tunables}
    names = itertools.chain([f"TILE_{variable.upper()}"], (f"TILE_{variable.upper()}_{n}" for n in itertools.count(2)))
    return next(name for name in names if name not in taken)


# ---------------------------------------------------------------- the order of loops


def loop_pairs(sketch: Sketch) -> Iterator[tuple[str, str]]:
    """Parallel loops with nothing but another parallel loop inside, whose bounds do not depend on the outer one."""
    for kernel in sketch.steps:
        if isinstance(kernel, Kernel) and not kernel.once:
            for outer, _ in statements(kernel.body):
                if isinstance(outer, For) and len(outer.body) == 1 and isinstance(inner := outer.body[0], For):
                    bounds = (inner.start, inner.stop, inner.step)
                    if {outer.kind, inner.kind} == {"parallel"} and not any(_mentions(one, outer.var) for one in bounds):
                        yield outer.var, inner.var


def exchanged(sketch: Sketch, pair: tuple[str, str]) -> Sketch:
    """The two loops in the other order."""

    def swap(node: Any) -> Any:
        if isinstance(node, For) and node.var == pair[0] and isinstance(inner := node.body[0], For) and inner.var == pair[1]:
            return replace(inner, body=(replace(node, body=inner.body),))
        return node

    made: Sketch = _rewritten(sketch, swap)
    return made


# ---------------------------------------------------------------- rewriting


def _rewritten(root: Any, change: Callable[[Any], Any], beside: Callable[[Any, Any], Any] | None = None) -> Any:
    """The tree with every node changed, children first; `beside` also sees the node as it was. Shared nodes stay shared."""
    done: dict[int, Any] = {}

    def visit(node: Any) -> Any:
        if isinstance(node, tuple):
            return tuple(visit(item) for item in node)
        if not dataclasses.is_dataclass(node) or isinstance(node, type):
            return node
        if id(node) not in done:
            fields = {item.name: getattr(node, item.name) for item in dataclasses.fields(node)}
            fresh = {key: visit(value) for key, value in fields.items()}
            same = all(fresh[key] is value for key, value in fields.items())
            made = change(node if same else replace(node, **fresh))
            done[id(node)] = beside(made, node) if beside else made
        return done[id(node)]

    return visit(root)


def _replaced(root: Any, change: Callable[[Any], Any]) -> Any:
    """The tree with nodes changed from the outside in: a node that was changed is not entered."""
    if isinstance(root, tuple):
        return tuple(_replaced(item, change) for item in root)
    if isinstance(root, Kernel | For):
        made = change(root)
        return made if made is not root else replace(root, body=_replaced(root.body, change))
    return root


def _parts(root: Any) -> Iterator[Any]:
    """Every node of a tree, as often as it is reached."""
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, tuple):
            stack.extend(node)
        elif dataclasses.is_dataclass(node) and not isinstance(node, type):
            yield node
            stack.extend(getattr(node, item.name) for item in dataclasses.fields(node))


def _loops(kernel: Kernel, variable: str) -> Iterator[For]:
    return (item for item, _ in statements(kernel.body) if isinstance(item, For) and item.var == variable)


def _mentions(index: Any, variable: str) -> bool:
    return any(isinstance(node, Sym) and node.name == variable for node in _parts(index))
