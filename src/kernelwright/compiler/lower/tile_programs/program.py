"""One block of a tile program: effects in, whatever the language writes for them out.

Tiles that must be materialized are made before a loop that needs them opens, so that they are not made again and again; stores are
made at the dimensions of what they store. A language says how its loops, stores and tiles are written; survey.py walks the same way
and only looks.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from kernelwright.compiler.lower.element_index import Index, fitting, flat
from kernelwright.compiler.lower.stacks import short_axes
from kernelwright.compiler.lower.tile_graph import broadcast
from kernelwright.compiler.lower.tile_programs.elements import Tile, TileElements, extents, index_at
from kernelwright.compiler.lower.tile_programs.lines import Expr
from kernelwright.compiler.lower.tile_programs.plan import Dim, Extent, Plan, plain
from kernelwright.compiler.lower.tile_values import (
    ELEMENTWISE,
    VIEWS,
    AtAccess,
    Block,
    Carried,
    CommentEffect,
    LoopEffect,
    MaterializeEffect,
    PickAccess,
    SpanAccess,
    StoreEffect,
    Value,
)
from kernelwright.core.errors import SketchError
from kernelwright.sketch.index import Poly, poly

Key = Callable[[Value], object | None]


class TileProgram(TileElements):
    """Walks the effects of one block."""

    plan: Plan
    barrier: str
    """The statement after which every thread sees what others wrote to tensors."""
    shared_tensors: frozenset[str] = frozenset()
    """Tensors that this kernel both writes and reads: what one thread wrote, others must see."""
    starts: dict[str, str]
    """Which part of the grid a program is: for each loop or dimension of the grid the name of its number."""
    stores = 0

    def planned(self, name: str, extent: Extent) -> Dim:
        return self.plan.of[name]

    def grid_start(self, dim: Dim) -> str:
        """Where a block begins along a dimension of the grid."""
        key = dim.name.removeprefix("lane_")
        return f"{self.starts[key]} * {self.out.size(dim.name)}" if key in self.starts else "0"

    def block(self, block: Block) -> None:
        """All effects of a block in order."""
        for effect in block.effects:
            match effect:
                case StoreEffect():
                    self.store(effect)
                case LoopEffect():
                    self.loop(effect)
                case MaterializeEffect():
                    self.tile_of(effect.value)
                case CommentEffect():
                    self.out.line(f"# {effect.text}")

    def loop(self, effect: LoopEffect) -> None:
        """A loop of the sketch that runs inside the block."""
        raise NotImplementedError

    # ------------------------------------------------------------ tiles

    def prepare(self, *values: Value) -> None:
        """Makes all tiles that these values need, before a loop opens in which they would be made again and again."""
        seen: set[int] = set()
        stack = list(values)
        while stack:
            value = stack.pop()
            if value.id in seen:
                continue
            seen.add(value.id)
            key = self.key(value)
            if key is None:
                stack.extend(value.operands)
            elif key not in self.tiles:
                if value.op == "stored":
                    raise SketchError(f"{value.data.name} is read before its loop")
                self.materialize(value)

    def materialize(self, value: Value) -> Tile:
        self.prepare(*value.operands)
        makers = {"reduce": self.reduce, "gemm": self.gemm, "scan": self.scan, "argsort": self.argsort}
        made = self.tiles[self.key(value)] = makers.get(value.op, self.loaded)(value)
        return made

    def loaded(self, value: Value) -> Tile:
        """A load that must happen now: of a tensor that is also written."""
        raise NotImplementedError

    def reduce(self, value: Value) -> Tile:
        raise NotImplementedError

    def gemm(self, value: Value) -> Tile:
        raise NotImplementedError

    def scan(self, value: Value) -> Tile:
        raise NotImplementedError

    def argsort(self, value: Value) -> Tile:
        raise NotImplementedError

    def axes_of(self, value: Value) -> tuple[str, ...]:
        """The dimensions of a materialized value."""
        return tuple(self.dimension(f"v{value.id}_{axis}", extent) for axis, extent in enumerate(extents(value)))

    def reduced_axes(self, value: Value) -> tuple[tuple[str, ...], list[str], Index]:
        """Dimensions of a reduction's result, those that it reduces, and the index of its operand."""
        shape, axes = extents(value.args[0]), self.axes_of(value)
        inner = {axis: self.dimension(f"r{value.id}_{axis}", shape[axis]) for axis in value.data[1]}
        return axes, [dim for dim in inner.values() if dim], index_at([inner.get(a) or dim for a, dim in enumerate(axes)])

    def product_axes(self, value: Value) -> tuple[tuple[str, ...], str]:
        """Dimensions of a product, and the one that it sums over, which stands between them: so neither operand must be transposed."""
        axes, known = self.axes_of(value), set(self.out.order)
        inner = self.dimension(f"k{value.id}", extents(value.args[0])[-1])
        if inner and inner not in known and len(axes) > 1 and all(axes[-2:]):
            self.out.order[inner] = (self.out.order[axes[-2]] + self.out.order[axes[-1]]) / 2
        return axes, inner

    def distinct(self, axes: Sequence[str], inner: str) -> None:
        """A product's dimensions must be different ones."""
        named = [dim for dim in axes if dim]
        if len(set(named)) < len(named) or (inner and inner in named):
            raise SketchError("two axes of a product are one dimension")

    def carried_axes(self, item: Carried) -> tuple[tuple[str, ...], tuple[Extent, ...]]:
        """Dimensions and extents of a tile that a loop carries."""
        storage = item.storage
        shape = tuple(map(plain, storage.shape))
        return tuple(self.dimension(f"c_{storage.name}_{axis}", extent) for axis, extent in enumerate(shape)), shape

    def carry(self, items: Sequence[Carried], tiles: dict[str, Tile]) -> None:
        """Says where carried tiles are from here on."""
        for item in items:
            tile = tiles[item.name]
            here = Expr(tile.expr.text, tile.expr.dims, tile.expr.dtype, self.out.depth)
            self.tiles["stored", item.storage.name] = Tile(here, tile.axes, tile.extents)

    def changed(self, effect: LoopEffect) -> list[tuple[Carried, Value]]:
        """Carried tiles that a loop's body changes, with their new values, for which everything is prepared."""
        found = [(item, item.final) for item in effect.carried if item.final is not None and item.final is not item.inside]
        self.prepare(*(final for _, final in found))
        return found

    def forget(self) -> None:
        """Drops the tiles that were made inside the loop that ends now."""
        depth = self.out.depth
        self.tiles = {key: tile for key, tile in self.tiles.items() if tile.expr.level < depth}

    def scalar(self, p: Poly) -> str:
        """A loop's bound."""
        if self.out.dims_of(p):
            raise SketchError("a loop's bounds differ between the lanes of a block")
        return self.out.place(p, ())

    # ------------------------------------------------------------ stores

    def store(self, effect: StoreEffect) -> None:
        """Writes a tile at the region's dimensions, or at those of tiles that are seen through a reshape, a part or a stack."""
        self.prepare(effect.value, *(axis.indices for axis in effect.axes if isinstance(axis, PickAccess)))
        number, self.stores = self.stores, self.stores + 1
        shape = _region_shape(effect)
        found = self._pushed(effect.value, shape)
        if found is None:
            dims = [self.dimension(f"s{number}_{axis}", extent) for axis, extent in enumerate(shape)]
            self.stores_region(effect, [f"s{number}_{axis}" for axis, dim in enumerate(dims) if dim])
            found = [(index_at(dims), [])]
        for index, conditions in found:
            self.store_at(effect, index, conditions)
        if effect.tensor in self.shared_tensors:
            self.out.line(self.barrier)

    def stores_region(self, effect: StoreEffect, names: Sequence[str]) -> None:
        """A store has dimensions of its own, by these names."""

    def store_at(self, effect: StoreEffect, index: Index, conditions: list[Poly]) -> None:
        """Writes the elements at one index of the region."""
        raise NotImplementedError

    def _pushed(self, value: Value, shape: tuple[Extent, ...]) -> list[tuple[Index, list[Poly]]] | None:
        """Indices and conditions of a region in the dimensions of tiles, when those are stored through a reshape, a part, or
        a stack of several tiles; together they are the whole region."""
        if extents(value) != shape:
            return None
        found: list[tuple[Index, list[Poly]]] = []
        for path in _paths(value, self.key):
            at: list[tuple[Index, list[Poly]]] = [(index_at(self.tiles[self.key(path[0])].axes), [])]
            for child, parent in itertools.pairwise(path):
                above: list[tuple[Index, list[Poly]]] = []
                for index, tests in at:
                    raised = self._up(child, parent, index, tests)
                    if raised is None:
                        return None
                    if parent.op in VIEWS:
                        self.inverse |= {(parent.id, found_at): index for found_at, _ in raised}
                    above += raised
                at = above
            found += at
        return found or None

    def _up(self, child: Value, parent: Value, index: Index, tests: list[Poly]) -> list[tuple[Index, list[Poly]]] | None:
        """The parent's indices of the element that lies at the child's index."""
        match parent.op:
            case "permute":
                return [(tuple(index[axis] for axis in parent.data), tests)]
            case "squeeze":
                return [(index[: parent.data] + index[parent.data + 1 :], tests)]
            case "unsqueeze":
                return [((*index[: parent.data], poly(0), *index[parent.data :]), tests)]
            case "reshape":
                return [(self.unflatten(flat(child.shape, index), parent.shape), tests)]
            case "part":
                more = [*tests]
                inner = self._up_part(parent, index, more)
                return None if inner is None else [(inner, more)]
            case "where" if short_axes(parent):
                return self._up_stack(child, parent, index, tests)
        return [(index, tests)] if extents(child) == extents(parent) else None

    def _up_stack(self, child: Value, parent: Value, index: Index, tests: list[Poly]) -> list[tuple[Index, list[Poly]]]:
        """A stack's indices at which this member is chosen: the stacked axis has a position for each of its members."""
        wide = extents(parent)
        own = (*[1] * (len(wide) - len(child.shape)), *extents(child))
        full = (poly(0),) * (len(wide) - len(index)) + index
        ranges = [range(n) if mine == 1 and isinstance(n, int) and n > 1 else [None] for mine, n in zip(own, wide, strict=True)]
        wanted = "True" if child is parent.args[1] else "False"
        found = []
        for choice in itertools.product(*ranges):
            at = tuple(p if c is None else poly(c) for c, p in zip(choice, full, strict=True))
            test = self.compared(parent.args[0], fitting(parent.args[0], at))
            if test is not None and test.text == wanted:
                found.append((at, tests))
        return found

    def _up_part(self, parent: Value, index: Index, conditions: list[Poly]) -> Index | None:
        found: list[Poly] = []
        for axis, p in zip(parent.data, index, strict=True):
            if isinstance(axis, AtAccess):
                conditions += [p - axis.index, axis.index - p]
                continue
            assert isinstance(axis, SpanAccess)
            if axis.step.constant != 1:
                return None
            place = p - axis.start
            for test in (place, axis.extent - 1 - place):
                if not self.out.ranges.nonnegative(test):
                    conditions.append(test)
            found.append(place)
        return tuple(found)


def _region_shape(effect: StoreEffect) -> tuple[Extent, ...]:
    picked: tuple[Poly, ...] = ()
    spans: list[Poly] = []
    for axis in effect.axes:
        if isinstance(axis, SpanAccess):
            spans.append(axis.extent)
        elif isinstance(axis, PickAccess):
            picked = broadcast(picked, axis.indices.shape)
    return tuple(map(plain, (*picked, *spans)))


def reached(value: Value, key: Key) -> list[Value]:
    """All values that one is made of on the spot; materialized ones are not looked into."""
    found: list[Value] = []
    seen: set[int] = set()
    stack = [value]
    while stack:
        at = stack.pop()
        if at.id in seen:
            continue
        seen.add(at.id)
        found.append(at)
        if key(at) is None:
            stack.extend(at.operands)
    return found


def _paths(value: Value, key: Key) -> list[list[Value]]:
    """From tiles up to the value, one path for each member of a stack, if a reshape or a part lies on it."""

    def search(at: Value, bent: bool) -> list[list[Value]]:
        if key(at) is not None:
            return [[at]] if bent else []
        if at.op == "where" and short_axes(at):
            members = [search(arg, bent) for arg in at.args[1:]]
            return [[*path, at] for paths in members for path in paths] if all(members) else []
        if at.op in ELEMENTWISE:
            below = [arg for arg in at.args if len(arg.shape) == len(at.shape)]
        elif at.op == "take":
            below = [at.args[1]]
        elif at.op in ("permute", "squeeze", "unsqueeze", "expand", "part", "reshape"):
            below = [at.args[0]]
            bent = bent or at.op in ("part", "reshape")
        else:
            return []
        for arg in below:
            found = search(arg, bent)
            if found:
                return [[*path, at] for path in found]
        return []

    return search(value, False)


def outer_values(effect: LoopEffect) -> Sequence[Value]:
    """Values made outside a loop that its body uses."""
    found: list[Value] = []
    seen: set[int] = set()

    def look(value: Value) -> None:
        if value.id in seen:
            return
        seen.add(value.id)
        if not effect.body.encloses(value.home):
            found.append(value)
            return
        for operand in value.operands:
            look(operand)

    for value in effect.body.used():
        look(value)
    for item in effect.carried:
        if item.final is not None:
            look(item.final)
    return found
