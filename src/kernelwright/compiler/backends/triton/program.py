"""One Triton program: effects of a block in, the lines of a kernel's body out.

Runs twice over the same effects: a dry run that surveys dimensions (plan.py), then the real one. Values that must live in registers
are made by heavy.py before a loop that needs them opens; stores are made at the dimensions of what they store.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from kernelwright.compiler.backends.triton import op_table
from kernelwright.compiler.backends.triton.dots import Heavy
from kernelwright.compiler.backends.triton.lines import Expr, Name
from kernelwright.compiler.backends.triton.tiles import Index, Kept, extents, fitting, flat, undecided
from kernelwright.compiler.lower.stacks import short_axes
from kernelwright.compiler.lower.tile_values import (
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
from kernelwright.sketch.nodes import DType

ELEMENTWISE = frozenset({"unary", "binary", "where", "cast", "bitcast"})
ATOMIC = {"add": "tl.atomic_add", "max": "tl.atomic_max", "min": "tl.atomic_min"}
MOST_COPIES = 8
"""Of a loop's body that are written out: a compiler's time grows with them."""


class Program(Heavy):
    """Writes the effects of one program."""

    stores = 0
    starts: dict[str, str]
    barriers: frozenset[str] = frozenset()
    """Tensors that this kernel both writes and reads: what one thread wrote, others must see."""

    def block(self, block: Block) -> None:
        for effect in block.effects:
            match effect:
                case StoreEffect():
                    self.store(effect)
                case LoopEffect():
                    self.loop(effect)
                case MaterializeEffect():
                    if self.register(effect.value) not in self.kept:
                        self.heavy(effect.value)
                case CommentEffect():
                    if self.survey is None:
                        self.out.line(f"# {effect.text}")

    # ------------------------------------------------------------ loops

    def loop(self, effect: LoopEffect) -> None:
        """A loop of the sketch that runs inside the program; its carried tiles are variables."""
        self.prepare(*_outer_values(effect))
        places = {}
        for item in effect.carried:
            places[item.name] = self._start(item)
        copies = self._copies(effect)
        word = "range" if copies == 1 else "tl.static_range"
        head = f"{word}({self._scalar(effect.start)}, {self._scalar(effect.stop)}, {self._scalar(effect.step)})"
        self.unrolled *= copies
        self.out.open()
        name = self.out.fresh(effect.var)
        self.out.names[effect.var] = Name(name, (), self.out.depth)
        for item in effect.carried:
            kept = places[item.name]
            inside = Expr(kept.expr.text, kept.expr.dims, kept.expr.dtype, self.out.depth)
            self.kept["stored", item.storage.name] = Kept(inside, kept.axes, kept.extents)
        self.block(effect.body)
        changed = [item for item in effect.carried if item.final is not None and item.final is not item.inside]
        self.prepare(*(item.final for item in changed if item.final is not None))
        results = []
        for item in changed:
            assert item.final is not None
            kept = places[item.name]
            expr = self.of(item.final, fitting(item.final, self._index(kept)))
            text = self.out.filled(expr, kept.expr.dims)
            results.append(
                (
                    kept.expr.text,
                    self.out.named(Expr(text, kept.expr.dims, kept.expr.dtype, self.out.depth), f"{kept.expr.text}_next"),
                )
            )
        for target, result in results:
            self.out.line(f"{target} = {result.text}")
        self.forget()
        self.out.close(f"for {name} in {head}:")
        self.unrolled //= copies
        for item in effect.carried:
            kept = places[item.name]
            after = Expr(kept.expr.text, kept.expr.dims, kept.expr.dtype, self.out.depth)
            self.kept["stored", item.storage.name] = Kept(after, kept.axes, kept.extents)

    unrolled: int = 1
    """How often the body that is being written will be copied by the loops around it."""

    def _copies(self, effect: LoopEffect) -> int:
        """Trips of a short loop that decides how far loops inside it go (the phases of a transposed convolution): written out, those
        have constant bounds. With bounds known only at run time ptxas spills in the innermost of six such loops, at 72 registers."""
        if effect.carried or None in (effect.start.constant, effect.stop.constant, effect.step.constant):
            return 1
        trips = -(-(int(effect.stop.constant or 0) - int(effect.start.constant or 0)) // int(effect.step.constant or 1))
        return trips if 1 < trips * self.unrolled <= MOST_COPIES and _decides(effect.var, effect.body) else 1

    def _start(self, item: Carried) -> Kept:
        """A carried tile's variable with its first value."""
        storage = item.storage
        shape = tuple(int(extent.constant or 0) for extent in storage.shape)
        if any(extent.constant is None for extent in storage.shape):
            raise SketchError(f"{item.name} has an extent that is known only at run time")
        axes = tuple(self.dimension(f"c_{storage.name}_{axis}", extent) for axis, extent in enumerate(shape))
        dims = self.out.sorted([*(dim for dim in axes if dim), *self.lanes])
        self.keeps(axes, dims)
        index = tuple(poly(dim) if dim else poly(0) for dim in axes)
        if item.initial is not None:
            self.prepare(item.initial)
            first = self.of(item.initial, fitting(item.initial, index))
        else:
            first = Expr(op_table.number(0, storage.dtype), (), storage.dtype, 0)
        name = self.out.fresh(item.name)
        text = self.out.filled(first, dims) if dims else self._typed(first).text
        self.out.line(f"{name} = {text}")
        return Kept(Expr(name, dims, storage.dtype, self.out.depth), axes, shape)

    def _index(self, kept: Kept) -> Index:
        return tuple(poly(dim) if dim else poly(0) for dim in kept.axes)

    def _scalar(self, p: Poly) -> str:
        if self.out.dims_of(p):
            raise SketchError("a loop's bounds differ between the lanes of a block")
        return self.out.place(p, ())

    def forget(self) -> None:
        """What lives in registers only inside the loop that ends now."""
        depth = self.out.depth
        self.kept = {key: kept for key, kept in self.kept.items() if kept.expr.level < depth}

    # ------------------------------------------------------------ stores

    def store(self, effect: StoreEffect) -> None:
        """Writes a tile at the region's dimensions, or at those of register tiles that are seen through a reshape, a part or a stack."""
        self.prepare(effect.value, *(axis.indices for axis in effect.axes if isinstance(axis, PickAccess)))
        number, self.stores = self.stores, self.stores + 1
        shape = _region_shape(effect)
        found = self._pushed(effect.value, shape)
        if found is None:
            dims = [self.dimension(f"s{number}_{axis}", extent) for axis, extent in enumerate(shape)]
            found = [(tuple(poly(dim) if dim else poly(0) for dim in dims), [])]
            if self.survey is not None:
                reads = any(self.register(value) is not None for value in _reached(effect.value, self.register))
                for axis, dim in enumerate(dims):
                    if dim:
                        self.survey.roots[f"s{number}_{axis}"] = reads
        for index, conditions in found:
            self._store_at(effect, index, conditions)
        if effect.tensor in self.barriers:
            self.out.line("tl.debug_barrier()")

    def _store_at(self, effect: StoreEffect, index: Index, conditions: list[Poly]) -> None:
        """The elements at one index of the region."""
        tensor = self.tensors[effect.tensor]
        names = {dim for p in index for dim in self.out.dims_of(p)}
        walked = self.walks([dim for dim in self.out.sorted([*names]) if self.out.dims[dim].walk == "loop"])
        value = self.of(effect.value, fitting(effect.value, index))
        positions = self.positions(effect.axes, index)
        offset = self.offset(tensor, positions)
        conditions = [*conditions, *self.outside(tensor, positions)]
        every = self.out.sorted(
            [*self.out.dims_of(offset), *value.dims, *names, *(dim for p in conditions for dim in self.out.dims_of(p))]
        )
        conditions = undecided([*conditions, *self.guards(every)])
        if self.survey is not None:
            self.survey.blocks.append(every)
        self._write(effect, tensor.pointer, tensor.dtype, offset, value, conditions, every)
        walked()

    def _write(
        self, effect: StoreEffect, pointer: str, dtype: DType, offset: Poly, value: Expr, conditions: list[Poly], dims: tuple[str, ...]
    ) -> None:  # fmt: skip
        place = self.out.address(pointer, offset, dims)
        if dims and not self.out.dims_of(offset):
            place += f" + tl.zeros({self.out.sizes(dims)}, tl.int32)"
        elif dims != self.out.dims_of(offset) and dims:
            place = f"tl.broadcast_to({place}, {self.out.sizes(dims)})"
        tests = [self.mask(conditions, dims)] if conditions else []
        text = self.out.shaped(value, dims)
        if effect.mode == "set":
            mask = f", mask={tests[0]}" if tests else ""
            self.out.line(f"tl.store({place}, {text}{mask})")
            return
        # Programs that differ only in a dimension which this store does not have would all update the same place.
        tests += [
            f"({self.grid_start(dim)} == 0)" for dim in self.out.dims.values() if dim.walk == "grid" and dim.name not in dims
        ]
        mask = f", mask={' & '.join(tests)}" if tests else ""
        typed = self.out.filled(value, dims) if dims else self._typed(value).text
        self.out.line(f'{ATOMIC[effect.mode]}({place}, ({typed}).to({op_table.TYPE[dtype]}){mask}, sem="relaxed")')

    def _pushed(self, value: Value, shape: tuple[int, ...]) -> list[tuple[Index, list[Poly]]] | None:
        """Indices and conditions of a region in the dimensions of register tiles, when those are stored through a reshape, a part, or
        a stack of several tiles; together they are the whole region."""
        if extents(value) != shape:
            return None
        found: list[tuple[Index, list[Poly]]] = []
        for path in _paths(value, self.register):
            at: list[tuple[Index, list[Poly]]] = [(self._index(self.kept[self.register(path[0])]), [])]
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
        own = (1,) * (len(wide) - len(child.shape)) + extents(child)
        full = (poly(0),) * (len(wide) - len(index)) + index
        ranges = [range(n) if mine == 1 and n > 1 else [None] for mine, n in zip(own, wide, strict=True)]
        wanted = "True" if child is parent.args[1] else "False"
        found = []
        for choice in itertools.product(*ranges):
            at = tuple(p if c is None else poly(c) for c, p in zip(choice, full, strict=True))
            test = self._compared(parent.args[0], fitting(parent.args[0], at))
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


def _region_shape(effect: StoreEffect) -> tuple[int, ...]:
    picked: tuple[int, ...] = ()
    spans: list[int] = []
    for axis in effect.axes:
        if isinstance(axis, SpanAccess):
            if axis.extent.constant is None:
                raise SketchError("a region whose extents are known only at run time cannot be a Triton block")
            spans.append(axis.extent.constant)
        elif isinstance(axis, PickAccess):
            shape = extents(axis.indices)
            rank = max(len(shape), len(picked))
            left, right = (1,) * (rank - len(picked)) + picked, (1,) * (rank - len(shape)) + shape
            picked = tuple(max(a, b) for a, b in zip(left, right, strict=True))
    return (*picked, *spans)


def _reached(value: Value, register: object) -> list[Value]:
    """All values that one is made of on the spot; those in registers are not looked into."""
    found: list[Value] = []
    seen: set[int] = set()
    stack = [value]
    while stack:
        at = stack.pop()
        if at.id in seen:
            continue
        seen.add(at.id)
        found.append(at)
        if register(at) is None:  # type: ignore[operator]
            stack.extend(at.operands)
    return found


def _paths(value: Value, register: object) -> list[list[Value]]:
    """From register tiles up to the value, one path for each member of a stack, if a reshape or a part lies on it."""

    def search(at: Value, bent: bool) -> list[list[Value]]:
        if register(at) is not None:  # type: ignore[operator]
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


def _decides(var: str, block: Block) -> bool:
    """Whether a loop inside goes as far as this variable says."""
    loops = [effect for effect in block.effects if isinstance(effect, LoopEffect)]
    return any(var in loop.start.names | loop.stop.names or _decides(var, loop.body) for loop in loops)


def _outer_values(effect: LoopEffect) -> Sequence[Value]:
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

    def walk(block: Block) -> None:
        for inner in block.effects:
            if isinstance(inner, StoreEffect):
                for operand in inner.operands:
                    look(operand)
            elif isinstance(inner, MaterializeEffect):
                look(inner.value)
            elif isinstance(inner, LoopEffect):
                for item in inner.carried:
                    for value in (item.initial, item.final):
                        if value is not None:
                            look(value)
                walk(inner.body)

    walk(effect.body)
    for item in effect.carried:
        if item.final is not None:
            look(item.final)
    return found
