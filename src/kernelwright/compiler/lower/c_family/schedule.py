"""From blocks of effects to nests: what is computed when, in which nest, into which buffer.

In: the graph of a kernel, and what of it is materialized. Out: C lines. Values are computed on demand, in program order: an effect
first makes the kept values it needs, fusing them into its own pass where they share its domain (an exponential is stored and summed
in one loop), then writes its nest. Carried tiles of a loop are committed together at the end of its body. A language says how a nest
is written, where storage lies, and how scans, sorts, products and loops are run.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelwright.compiler.lower.c_family.materialize import Usage
from kernelwright.compiler.lower.c_family.nest import KernelContext, Materialize, Nest, Output, Reduce, Store
from kernelwright.compiler.lower.c_family.reach import only_straight, reads, reads_straight
from kernelwright.compiler.lower.c_family.transpositions import transposes_sums
from kernelwright.compiler.lower.tile_graph import GraphBuilder, broadcast
from kernelwright.compiler.lower.tile_values import (
    MATERIALIZED,
    Block,
    Carried,
    CommentEffect,
    LoopEffect,
    MaterializeEffect,
    PickAccess,
    SpanAccess,
    Storage,
    StoreEffect,
    Value,
    made_of,
)
from kernelwright.sketch.index import Poly, combine, poly, to_c


@dataclass
class Scheduler:
    """Writes the body of one kernel."""

    builder: GraphBuilder
    usage: Usage
    context: KernelContext
    out: list[str] = field(default_factory=list)
    ready: set[Value] = field(default_factory=set)  # `stored` values whose loop has been entered or left
    work: Poly = field(default_factory=Poly)
    trips: list[Poly] = field(default_factory=list)

    # ------------------------------------------------------------ what a language writes

    def emit(self, nest: Nest, shape: tuple[Poly, ...]) -> None:
        """Writes a nest."""
        raise NotImplementedError

    def declare_storage(self, storage: Storage) -> None:
        """Declares storage at this place."""
        raise NotImplementedError

    def loop(self, loop: LoopEffect) -> None:
        """A loop: outer values first, carried tiles before it, the body, the commit."""
        raise NotImplementedError

    def transpose(self, value: Value) -> bool:
        """Whether a tile that is stored along another axis than it is loaded along was copied in blocks."""
        return False

    def first_sum(self, loop: LoopEffect, item: Carried) -> str | None:
        """When the first product of a loop overwrites a carried tile, so that nothing has to be set to zero; None: it must be."""
        return None

    # ------------------------------------------------------------ blocks

    def block(self, block: Block) -> None:
        """All effects of a block in order."""
        for effect in block.effects:
            match effect:
                case CommentEffect():
                    self.out += [f"// {line}" for line in effect.text.splitlines()]
                case MaterializeEffect():
                    self.make(effect.value)
                case StoreEffect():
                    self.store(effect)
                case LoopEffect():
                    self.loop(effect)

    def store(self, effect: StoreEffect) -> None:
        """A store into a tensor; where every element has a place there, values over the same domain are computed in its nest."""
        shape = region_shape(effect)
        put = Store(effect.tensor, effect.axes, effect.value, effect.mode)
        nest = Nest(self.context, shape, [put], set())
        whole = False
        if effect.mode == "set" and not any(isinstance(axis, PickAccess) for axis in effect.axes):
            index = nest.elements({})
            tensor = self.context.tensors[effect.tensor]
            whole = not index.outside(tensor.shape, index.positions(effect.axes, nest.index))
        self.nest(shape, [put], list(effect.operands), fuse=whole)

    def nest(self, shape: tuple[Poly, ...], outputs: list[Output], operands: list[Value], *, fuse: bool) -> None:
        """Writes a nest after the values it needs; kept values over the same domain are computed in it, if it covers them."""
        computing: set[int] = set()
        computed_too: list[Output] = []
        for value in self.pending(operands):
            if value.storage is not None:
                continue
            if self.transpose(value):
                continue
            if fuse and value.op not in MATERIALIZED and not transposes_sums(value) and self.same_domain(value, shape, outputs):
                value_storage = self.declare(value)
                computed_too.append(Materialize(value_storage, value, ()))
                computing.add(value.id)
                self.pre_make(value, computing)
            else:
                self.make(value)
        for fill in computed_too:
            if isinstance(fill, Materialize):
                fill.value.storage = fill.storage
        self.emit(Nest(self.context, shape, [*computed_too, *outputs], computing), shape)

    def pre_make(self, value: Value, computing: set[int]) -> None:
        """Makes what a value computed inside a nest needs from outside."""
        for inner in self.pending(list(value.operands)):
            if inner.id not in computing and inner.storage is None:
                self.make(inner)

    def count_work(self, shape: tuple[Poly, ...], cost: int) -> None:
        """Adds what a nest that was written by other means costs."""
        size = poly(cost)
        for extent in (*shape, *self.trips):
            size = size * extent
        self.work = self.work + size

    def pending(self, values: list[Value]) -> list[Value]:
        """Values without storage, kept or always materialized, that computing `values` here would need directly, in program order."""
        found: dict[int, Value] = {}
        seen: set[int] = set()
        stack = list(values)
        while stack:
            value = stack.pop()
            if value.id in seen or value.storage is not None:
                continue
            seen.add(value.id)
            if value.kept or value.op in MATERIALIZED:
                found[value.id] = value
            else:
                stack += value.operands
        # reductions, products, scans and sorts first: the pass that makes one also stores the kept tiles it reads
        return sorted(found.values(), key=lambda v: (v.op not in MATERIALIZED, v.id))

    def same_domain(self, value: Value, shape: tuple[Poly, ...], outputs: list[Output]) -> bool:
        """True if the nest computes every element of `value` exactly once, at the same index."""
        own = (poly(1),) * (len(shape) - len(value.shape)) + value.shape
        if len(own) != len(shape) or own != shape:
            return False
        return all(only_straight(output.value, value) for output in outputs)

    # ------------------------------------------------------------ values

    def make(self, value: Value) -> None:
        """Computes a value into storage of its own, now."""
        if value.storage is not None:
            return
        match value.op:
            case "reduce":
                self.reduce(value)
            case "scan":
                self.scan(value)
            case "argsort":
                for inner in self.pending([value.args[0]]):
                    self.make(inner)
                self.argsort(value)
            case "gemm":
                self.product(value)
            case _:
                self.make_elements(value)

    def make_elements(self, value: Value) -> None:
        """Computes a value element by element."""
        storage = self.declare(value)
        self.pre_make(value, {value.id})
        value.storage = storage
        self.emit(Nest(self.context, value.shape, [Materialize(storage, value, ())], {value.id}), value.shape)

    def scan(self, value: Value) -> None:
        """Running reductions along an axis."""
        raise NotImplementedError

    def argsort(self, value: Value) -> None:
        """Positions in order along an axis."""
        raise NotImplementedError

    def product(self, value: Value) -> None:
        """A tile product."""
        raise NotImplementedError

    def reduce(self, value: Value) -> None:
        """A reduction together with its siblings: others over the same tile and axes that need nothing else first."""
        x = value.args[0]
        self.materialize_under(x)
        if value.storage is not None:
            return
        group = [value]
        for other in self.usage.values:
            if other.op == "reduce" and other is not value and other.storage is None and other.home is value.home:
                alike = other.args[0].shape == x.shape and other.data[1] == value.data[1]
                if alike and self.available(other.args[0], group):
                    group.append(other)
        outputs: list[Output] = []
        for member in group:
            op, axes = member.data
            storage = self.declare(member)
            outputs.append(Reduce(storage, member.args[0], op, axes))
        self.nest(x.shape, outputs, [m.args[0] for m in group], fuse=True)
        for member, output in zip(group, outputs, strict=True):
            member.storage = output.storage  # type: ignore[union-attr]

    def materialize_under(self, value: Value) -> None:
        """Makes the values with storage of their own that `value` needs, also through kept ones that have no storage yet."""
        if value.storage is not None:
            return
        if value.op in MATERIALIZED:
            self.make(value)
            return
        for operand in value.operands:
            self.materialize_under(operand)

    def available(self, value: Value, group: list[Value]) -> bool:
        """True if `value` can be computed now: all it reads from storage is there, or is kept and made of such."""
        if value.op == "stored":
            return value in self.ready
        if value.storage is not None:
            return True
        if value.op in MATERIALIZED:
            return False
        if value.kept and value.op == "load":
            return False
        return all(self.available(operand, group) for operand in value.operands)

    def declare(self, value: Value) -> Storage:
        """New storage for a value, declared at this place."""
        storage = Storage(self.builder.fresh(value.name or "kept"), value.shape, value.dtype)
        self.declare_storage(storage)
        return storage

    # ------------------------------------------------------------ loops

    def inside(self, loop: LoopEffect) -> None:
        """The body of a loop, and the tiles it carries to the next iteration."""
        self.trips.append(self.most(trips_of(loop)))
        self.ready |= {item.inside for item in loop.carried}
        self.block(loop.body)
        self.commit(loop)
        self.trips.pop()

    def left(self, loop: LoopEffect) -> None:
        """After a loop: what it carried can be read."""
        self.ready |= {v for v in self.usage.values if v.op == "stored" and any(v.storage is c.storage for c in loop.carried)}

    def most(self, trips: Poly) -> Poly:
        """A count of iterations without loop variables in it: the most it can be, for estimates of work."""
        bound = self.context.ranges.upper(trips)
        return bound if bound is not None else poly(1)

    def make_outer_values(self, loop: LoopEffect) -> None:
        """Values of enclosing blocks that the body reads from storage are made before the loop."""
        values = self.needed_inside(loop.body, [item.final for item in loop.carried if item.final is not None])
        for value in sorted(values, key=lambda v: (v.op not in MATERIALIZED, v.id)):
            if (value.kept or value.op in MATERIALIZED) and value.storage is None and not loop.body.encloses(value.home):
                self.make(value)

    def needed_inside(self, block: Block, also: list[Value]) -> set[Value]:
        """All values that the effects of a block need, and those that `also` need."""
        return made_of([*also, *block.used()])

    def begin_carried(self, loop: LoopEffect) -> None:
        """Storage for what the loop carries; a tile that nobody else needs is taken over, not copied."""
        for item in loop.carried:
            initial = item.initial
            if initial is not None:
                for value in self.pending([initial]):
                    self.make(value)
            alone = initial is not None and self.usage.consumers.get(initial, 0) == 1 and initial.home is self.home_of(loop)
            if initial is not None and initial.storage is not None and alone:
                item.storage.name, item.storage.pitch = initial.storage.name, initial.storage.pitch
                continue
            self.declare_storage(item.storage)
            first = self.first_sum(loop, item)
            if first is not None:
                self.overwrites(item, first)
            elif initial is not None:
                self.emit(Nest(self.context, initial.shape, [Materialize(item.storage, initial, ())], set()), initial.shape)

    def overwrites(self, item: Carried, condition: str) -> None:
        """A carried tile has no first value: a product overwrites it when `condition` holds."""

    @staticmethod
    def home_of(loop: LoopEffect) -> Block | None:
        return loop.body.parent

    def commit(self, loop: LoopEffect) -> None:
        """Writes the new values of carried tiles: those of one shape in one nest, which reads all before it writes any."""
        left: list[Carried] = []
        for item in loop.carried:
            final = item.final
            if final is None or final is item.inside:
                continue
            for value in self.pending([final]):
                self.make(value)
            if final.storage is not None and final.storage.name == item.storage.name:
                continue
            left.append(item)
        while left:
            shape = left[0].storage.shape
            group = [item for item in left if item.storage.shape == shape]
            others = [item for item in left if item not in group]
            straight = all(reads_straight(a.final, b.inside) for a in group for b in group if a.final is not None)
            blocked = any(reads(o.final, item.inside) for o in others for item in group if o.final is not None)
            if blocked and not any(reads(item.final, o.inside) for o in others for item in group if item.final is not None):
                left = others + group  # the others read what this group would overwrite: they go first
                if not any(reads(o.final, item.inside) for o in group for item in others if o.final is not None):
                    self.commit_group(others, straight=False)
                    left = group
                    continue
            self.commit_group(group, straight=straight and not blocked, others=others)
            left = others

    def commit_group(self, group: list[Carried], *, straight: bool, others: list[Carried] | None = None) -> None:
        if not straight:
            # a copy in between: some element is read by a place that is written earlier
            for item in [*group, *(others or [])]:
                assert item.final is not None
                if item.final.storage is None or item.final.op == "stored":
                    copy = Storage(self.builder.fresh(f"next_{item.name}"), item.storage.shape, item.storage.dtype)
                    self.declare_storage(copy)
                    self.emit(Nest(self.context, copy.shape, [Materialize(copy, item.final, ())], set()), copy.shape)
                    fresh = self.builder.value("stored", (), copy.shape, copy.dtype, copy)
                    fresh.storage = copy
                    item.final = fresh
        computed_too: list[Output] = [Materialize(item.storage, item.final, ()) for item in group if item.final is not None]
        shapes = {item.storage.shape for item in group}
        for shape in shapes:
            chosen = [f for f in computed_too if isinstance(f, Materialize) and f.storage.shape == shape]
            self.emit(Nest(self.context, shape, list(chosen), set()), shape)


def region_shape(effect: StoreEffect) -> tuple[Poly, ...]:
    """The extents of the region that a store writes."""
    picked: tuple[Poly, ...] = ()
    spans: list[Poly] = []
    for axis in effect.axes:
        if isinstance(axis, PickAccess):
            picked = broadcast(picked, axis.indices.shape)
        elif isinstance(axis, SpanAccess):
            spans.append(axis.extent)
    return (*picked, *spans)


def trips_of(loop: LoopEffect) -> Poly:
    """How many iterations a loop has."""
    return combine("//", loop.stop - loop.start + loop.step - 1, loop.step)


def bound_names(loop: LoopEffect) -> frozenset[str]:
    """The names that a loop's bounds are made of."""
    return loop.start.names | loop.stop.names | loop.step.names


def loop_head(loop: LoopEffect, kind: str = "int64_t") -> str:
    """The head of a loop in C, over positions of a type."""
    step = f"++{loop.var}" if loop.step.constant == 1 else f"{loop.var} += {to_c(loop.step)}"
    return f"for ({kind} {loop.var} = {to_c(loop.start)}; {loop.var} < {to_c(loop.stop)}; {step})"
