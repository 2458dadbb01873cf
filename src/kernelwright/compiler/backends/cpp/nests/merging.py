"""Axes of a nest that are one axis in memory: wherever the nest reads or writes, the rows lie one behind the other.

In: a nest and the order of its loops. Out: the loops that remain, with their extents; the index of an axis that was merged into the
innermost one is zero from then on, and the innermost loop runs through all its rows. Fewer and longer loops: a tile of eight rows of
56 is one row of 448, which fills whole vectors and may be streamed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelwright.compiler.lower.c_family.nest import Reduce, Store
from kernelwright.compiler.lower.tile_values import VIEWS, Value
from kernelwright.sketch.index import Poly, poly

if TYPE_CHECKING:
    from kernelwright.compiler.lower.c_family.elements import Place
    from kernelwright.compiler.lower.c_family.nest import Nest

PLAIN = {"load", "stored", "const", "unary", "binary", "where", "cast", "bitcast", *VIEWS}
"""Operations whose result depends on where an element stands only through what is read there."""


def run_together(nest: Nest, axes: list[int]) -> tuple[list[int], dict[int, Poly]]:
    """The axes that stay loops, and how far each runs."""
    extents = dict(enumerate(nest.shape))
    if len(axes) < 2 or not all(_plain(output.value, nest.computing) for output in nest.outputs):
        return axes, extents
    before = _places(nest)
    if before is None:
        return axes, extents
    inner, kept, index = axes[-1], nest.index, list(nest.index)
    reduced = nest.reduced()
    merged = True
    while merged:
        merged = False
        for outer in axes[:-1]:
            if (outer in reduced) == (inner in reduced) and _behind(nest, before, outer, inner, extents[inner]):
                axes = [axis for axis in axes if axis != outer]
                extents[inner] = extents[inner] * extents[outer]
                index[outer] = poly(0)
                merged = True
                break
    if tuple(index) == kept:
        return axes, extents
    nest.index = tuple(index)
    gone = {nest.vars[axis]: poly(0) for axis, at in enumerate(index) if at != kept[axis]}
    after = _places(nest)
    if after is None or [place.offset for place in after] != [place.offset.substitute(gone) for place in before]:
        nest.index = kept  # an index that is simpler where the rows begin than elsewhere
        return nest.order(), dict(enumerate(nest.shape))
    return axes, extents


def _behind(nest: Nest, places: list[Place], outer: int, inner: int, extent: Poly) -> bool:
    """Whether the next row along `outer` begins where the one before ends, in all places."""
    for place in places:
        far, step = place.offset.coefficient(nest.vars[outer]), place.offset.coefficient(nest.vars[inner])
        if far is None or step is None or far != step * extent:
            return False
    return True


def _places(nest: Nest) -> list[Place] | None:
    """Where the nest reads and writes; None if some of it depends on values, or must be tested."""
    elements = nest.elements(dict.fromkeys(nest.vars.values(), 1))
    nest.scalars(elements)
    if elements.borders or elements.picks:
        return None
    for output in nest.outputs:
        if isinstance(output, Store):
            tensor = nest.context.tensors[output.tensor]
            if output.mode != "set" or elements.outside(tensor.shape, elements.positions(output.axes, nest.index)):
                return None
        if isinstance(output, Reduce) and output.op.startswith("arg"):
            return None
    return elements.places


def _plain(value: Value, computing: set[int]) -> bool:
    seen: set[int] = set()
    stack = [value]
    while stack:
        at = stack.pop()
        if at.id in seen or (at.storage is not None and at.id not in computing):
            continue
        seen.add(at.id)
        if at.op not in PLAIN:
            return False
        stack += at.operands
    return True
