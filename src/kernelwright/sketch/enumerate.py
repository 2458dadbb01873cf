"""Races ruled out by looking: which elements each parallel iteration touches, one iteration after the other.

In: two accesses of one piece of memory, and the parallel loops around both. Out: whether no two different iterations touch one element.
For what no argument over intervals decides (an output position that is taken apart by `//` and `%`, a store under a mask, tiles dealt
out to a fixed number of programs) as long as all sizes are numbers and there are few enough iterations. A choice that depends on data
counts as both sides; a position that is data itself cannot be looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kernelwright.sketch import nodes
from kernelwright.sketch.index import evaluate
from kernelwright.sketch.nodes import For, Tile

if TYPE_CHECKING:
    from kernelwright.sketch.check.races import Access

MOST_ITERATIONS = 4096
MOST_ELEMENTS = 1 << 24
"""Of the memory in question, and touched in all."""
MOST_CHOICES = 8
_BINARY = {"add": "add", "sub": "subtract", "mul": "multiply", "floordiv": "floor_divide", "mod": "mod", "minimum": "minimum",
           "maximum": "maximum", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal",
           "ne": "not_equal", "and": "bitwise_and", "or": "bitwise_or"}  # fmt: skip


class Unseen(Exception):
    """Something depends on data, or there is too much of it to look at."""


def seen_apart(
    first: Access,
    second: Access,
    shared: Sequence[For],
    shapes: Mapping[str, tuple[nodes.Index, ...]],
    sizes: Mapping[str, int],
    names: Mapping[str, Tile],
) -> bool:
    """Whether looking shows the two accesses to be apart; `names` has the tiles that are bound once in the kernel."""
    import numpy as np

    look = _Look(sizes, names, shapes)
    owner: Any = None
    numbers: dict[tuple[int, ...], int] = {}
    touched = 0
    try:
        for access in (first,) if first is second else (first, second):
            for env in look.iterations(access.loops):
                key = tuple(env[loop.var] for loop in shared)
                mine = numbers.setdefault(key, len(numbers))
                places = look.places(access)
                touched += len(places)
                if owner is None:
                    owner = np.full(look.elements(access), -1, dtype=np.int64)
                if touched > MOST_ELEMENTS or len(owner) > MOST_ELEMENTS:
                    return False
                there = owner[places]
                if bool(np.any((there != -1) & (there != mine))):
                    return False
                if access is first:
                    owner[places] = mine
    except Unseen:
        return False
    return True


class _Look:
    """Positions in one iteration."""

    def __init__(
        self, sizes: Mapping[str, int], names: Mapping[str, Tile], shapes: Mapping[str, tuple[nodes.Index, ...]]
    ) -> None:
        self.env: dict[str, int] = dict(sizes)
        self.names, self.shapes = names, shapes
        self._known: dict[str, list[Any]] = {}

    def number(self, index: nodes.Index) -> int:
        try:
            return evaluate(index, self.env)
        except (KeyError, ZeroDivisionError) as error:
            raise Unseen from error

    def iterations(self, loops: Sequence[For]) -> Iterator[dict[str, int]]:
        """Every iteration of nested loops; `env` has the loop variables meanwhile."""
        count = 0
        if not loops:
            self._known = {}
            yield self.env
            return
        loop, *inner = loops
        start, stop, step = (self.number(bound) for bound in (loop.start, loop.stop, loop.step))
        if step == 0:
            raise Unseen
        for value in range(start, stop, step):
            self.env[loop.var] = value
            for env in self.iterations(inner):
                count += 1
                if count > MOST_ITERATIONS:
                    raise Unseen
                yield env
        self.env.pop(loop.var, None)

    def elements(self, access: Access) -> int:
        """Of the access's tensor."""
        total = 1
        for extent in self.shapes[access.tensor]:
            total *= self.number(extent)
        return total

    def places(self, access: Access) -> Any:
        """Flat positions of all elements that an access may touch in this iteration; what lies outside is not touched."""
        import numpy as np

        spans, picks, found = [], [], []
        extents = [self.number(extent) for extent in self.shapes[access.tensor]]
        stride = 1
        strides = [0] * len(extents)
        for number in reversed(range(len(extents))):
            strides[number], stride = stride, stride * extents[number]
        for axis, extent, step in zip(access.region, extents, strides, strict=True):
            match axis:
                case nodes.At(index):
                    at = np.array([self.number(index)])
                    spans.append((at[(at >= 0) & (at < extent)]) * step)
                case nodes.Span(start, count, every):
                    at = self.number(start) + np.arange(self.number(count)) * self.number(every)
                    spans.append(at[(at >= 0) & (at < extent)] * step)
                case nodes.Pick(indices):
                    picks.append((self.values(indices), extent, step))
        for choice in _choices([values for values, _, _ in picks]):
            total: Any = np.zeros((), dtype=np.int64)
            inside: Any = np.ones((), dtype=bool)
            for value, (_, extent, step) in zip(choice, picks, strict=True):
                total = total + value * step
                inside = inside & (value >= 0) & (value < extent)
            flat = total[np.broadcast_to(inside, total.shape)].reshape(-1) if picks else np.zeros(1, dtype=np.int64)
            for span in spans:
                flat = (flat[:, None] + span[None, :]).reshape(-1)
            found.append(flat)
        return np.concatenate(found)

    def values(self, tile: Tile) -> list[Any]:
        """What an integer tile may be in this iteration: one array, or one for each way in which data may decide."""
        import numpy as np

        match tile:
            case nodes.Number(value):
                return [np.asarray(value)]
            case nodes.FromIndex(index):
                return [np.asarray(self.number(index))]
            case nodes.Iota(extent):
                return [np.arange(self.number(extent))]
            case nodes.Full(shape, value, _):
                return [np.full([self.number(extent) for extent in shape], value)]
            case nodes.Var(name) if name in self.names:
                if name not in self._known:
                    self._known[name] = self.values(self.names[name])
                return self._known[name]
            case nodes.Cast(x, dtype) if dtype in (nodes.DType.i64, nodes.DType.i32, nodes.DType.bool):
                return self.values(x)
            case nodes.Reshape(x, shape) | nodes.Expand(x, shape):
                wanted = [self.number(extent) for extent in shape]
                place = np.reshape if isinstance(tile, nodes.Reshape) else np.broadcast_to
                return [place(value, wanted) for value in self.values(x)]
            case nodes.Unsqueeze(x, axis):
                return [np.expand_dims(value, axis) for value in self.values(x)]
            case nodes.Squeeze(x, axis):
                return [np.squeeze(value, axis) for value in self.values(x)]
            case nodes.Permute(x, order):
                return [np.transpose(value, order) for value in self.values(x)]
            case nodes.Unary("logical_not", x):
                return [np.logical_not(value) for value in self.values(x)]
            case nodes.Binary(op, a, b) if op in _BINARY:
                return [getattr(np, _BINARY[op])(x, y) for x, y in _choices([self.values(a), self.values(b)])]
            case nodes.Where(condition, a, b):
                return self._chosen(condition, a, b)
        raise Unseen

    def _chosen(self, condition: Tile, a: Tile, b: Tile) -> list[Any]:
        import numpy as np

        yes, no = self.values(a), self.values(b)
        try:
            tests = self.values(condition)
        except Unseen:
            shape = np.broadcast_shapes(*(value.shape for value in (*yes, *no)))
            return [np.broadcast_to(value, shape) for value in (*yes, *no)]
        return [np.where(test, x, y) for test, x, y in _choices([tests, yes, no])]


def _choices(sides: Sequence[list[Any]]) -> list[tuple[Any, ...]]:
    """Every combination of what the sides may be."""
    found: list[tuple[Any, ...]] = [()]
    for side in sides:
        found = [(*one, value) for one in found for value in side]
        if len(found) > MOST_CHOICES:
            raise Unseen
    return found
