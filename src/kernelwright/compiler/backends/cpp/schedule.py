"""From blocks of effects to C statements: what is computed when, in which nest, into which buffer.

In: the graph of a kernel with its keeping decisions. Out: C lines. Values are computed on demand, in program order: an effect first
makes the kept values it needs, fusing them into its own pass where they share its domain (an exponential is stored and summed
in one loop), then writes its nest. Carried tiles of a loop are committed together at the end of its body.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelwright.compiler.backends.cpp import fetch, product, scan, sort, stack, streams, sums, transposed
from kernelwright.compiler.backends.cpp.elements import Elements
from kernelwright.compiler.backends.cpp.materialize import Usage, cost_of
from kernelwright.compiler.backends.cpp.nest import Fill, Fold, Nest, Put, Root, Surroundings
from kernelwright.compiler.backends.cpp.reach import only_straight, reads, reads_straight
from kernelwright.compiler.backends.cpp.transposed import turn_of, turns_sums
from kernelwright.compiler.lower.c_types import STORED
from kernelwright.compiler.lower.stacks import short_axes
from kernelwright.compiler.lower.tile_graph import GraphBuilder
from kernelwright.compiler.lower.tile_values import (
    HEAVY,
    Block,
    Carried,
    CommentEffect,
    LoopEffect,
    MaterializeEffect,
    Storage,
    StoreEffect,
    Value,
)
from kernelwright.sketch.index import Poly, combine, poly, to_c

STACK_BYTES = 64 * 1024
"""Larger tiles live in a scratch buffer of the thread: worker threads have small stacks."""

ROWS_MEET = 1024
"""Rows of a tile for products that are a multiple of this many bytes apart share few sets of the first cache (64 sets of 8 lines): a
strip of more than 32 such rows does not stay in it. One more line between rows spreads them."""


@dataclass
class Scheduler:
    """Writes the body of one kernel."""

    builder: GraphBuilder
    usage: Usage
    around: Surroundings
    out: list[str] = field(default_factory=list)
    ready: set[Value] = field(default_factory=set)  # `stored` values whose loop has been entered or left
    work: Poly = field(default_factory=Poly)
    trips: list[Poly] = field(default_factory=list)
    in_parallel: bool = False
    scratch: list[Storage] = field(default_factory=list)
    first_sums: dict[Value, str] = field(
        default_factory=dict
    )  # carried tiles that the first product overwrites, and when that is
    pads_rows: int = (
        0  # rank-2 tiles at least this wide start their rows at multiples of a vector (0: none), for matrix products
    )

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
        if scan.into_tensor(self, effect):
            return
        shape = _region_shape(effect)
        put = Put(effect.tensor, effect.axes, effect.value, effect.mode)
        nest = Nest(self.around, shape, [put], set())
        tensor = self.around.tensors[effect.tensor]
        index = nest.elements({})
        whole = (
            effect.mode == "set" and not index.outside(tensor, index.positions(effect.axes, nest.index))
            if _affine(effect)
            else False
        )
        self.nest(shape, [put], list(effect.operands), fuse=whole)

    def nest(self, shape: tuple[Poly, ...], roots: list[Root], operands: list[Value], *, fuse: bool) -> None:
        """Writes a nest after the values it needs; kept values over the same domain are computed in it, if it covers them."""
        computing: set[int] = set()
        fills: list[Root] = []
        for value in self.pending(operands):
            if value.storage is not None:
                continue
            if self.turn(value):
                continue
            if fuse and value.op not in HEAVY and not turns_sums(value) and self.same_domain(value, shape, roots):
                value_storage = self.declare(value)
                fills.append(Fill(value_storage, value, ()))
                computing.add(value.id)
                self.pre_make(value, computing)
            else:
                self.make(value)
        for fill in fills:
            if isinstance(fill, Fill):
                fill.value.storage = fill.storage
        self.emit(Nest(self.around, shape, [*fills, *roots], computing), shape)

    def pre_make(self, value: Value, computing: set[int]) -> None:
        """Makes what a value computed inside a nest needs from outside."""
        for inner in self.pending(list(value.operands)):
            if inner.id not in computing and inner.storage is None:
                self.make(inner)

    def emit(self, nest: Nest, shape: tuple[Poly, ...]) -> None:
        lines = nest.write()
        self.out += ["{", *lines, "}"]
        size = poly(1)
        for extent in (*shape, *self.trips):
            size = size * extent
        cost = sum(cost_of(r.value) for r in nest.roots)
        self.work = self.work + size * max(1, round(cost / 4))

    def count_work(self, shape: tuple[Poly, ...], cost: int) -> None:
        """Adds what a nest that was written by other means costs."""
        size = poly(cost)
        for extent in (*shape, *self.trips):
            size = size * extent
        self.work = self.work + size

    def pending(self, values: list[Value]) -> list[Value]:
        """Kept or heavy values without storage that computing `values` here would need directly, in program order."""
        found: dict[int, Value] = {}
        seen: set[int] = set()
        stack = list(values)
        while stack:
            value = stack.pop()
            if value.id in seen or value.storage is not None:
                continue
            seen.add(value.id)
            if value.kept or value.op in HEAVY:
                found[value.id] = value
            else:
                stack += value.operands
        # heavy values first: the pass that makes one also stores the kept tiles it reads
        return sorted(found.values(), key=lambda v: (v.op not in HEAVY, v.id))

    def same_domain(self, value: Value, shape: tuple[Poly, ...], roots: list[Root]) -> bool:
        """True if the nest computes every element of `value` exactly once, at the same index."""
        own = (poly(1),) * (len(shape) - len(value.shape)) + value.shape
        if len(own) != len(shape) or own != shape:
            return False
        return all(only_straight(root.value, value) for root in roots)

    # ------------------------------------------------------------ values

    def make(self, value: Value) -> None:
        """Computes a value into storage of its own, now."""
        if value.storage is not None:
            return
        match value.op:
            case "reduce":
                self.reduce(value)
            case "scan":
                scan.scan(self, value)
            case "argsort":
                sort.argsort(self, value)
            case "gemm":
                product.product(self, value)
            case "permute" if turns_sums(value):
                transposed.make_sums(self, value)
            case "where" if axes := short_axes(value):
                stack.make(self, value, axes)
            case _:
                storage = self.declare(value)
                self.pre_make(value, {value.id})
                value.storage = storage
                self.emit(Nest(self.around, value.shape, [Fill(storage, value, ())], {value.id}), value.shape)

    def reduce(self, value: Value) -> None:
        """A reduction together with its siblings: others over the same tile and axes that need nothing else first."""
        x = value.args[0]
        self.make_heavy_under(x)
        if value.storage is not None:
            return
        group = [value]
        for other in self.usage.values:
            if other.op == "reduce" and other is not value and other.storage is None and other.home is value.home:
                alike = other.args[0].shape == x.shape and other.data[1] == value.data[1]
                if alike and self.available(other.args[0], group):
                    group.append(other)
        roots: list[Root] = []
        for member in group:
            op, axes = member.data
            storage = self.declare(member)
            roots.append(Fold(storage, member.args[0], op, axes))
        self.nest(x.shape, roots, [m.args[0] for m in group], fuse=True)
        for member, root in zip(group, roots, strict=True):
            member.storage = root.storage  # type: ignore[union-attr]

    def make_heavy_under(self, value: Value) -> None:
        """Makes the heavy values that `value` needs, also through kept ones that have no storage yet."""
        if value.storage is not None:
            return
        if value.op in HEAVY:
            self.make(value)
            return
        for operand in value.operands:
            self.make_heavy_under(operand)

    def available(self, value: Value, group: list[Value]) -> bool:
        """True if `value` can be computed now: all it reads from storage is there, or is kept and made of such."""
        if value.op == "stored":
            return value in self.ready
        if value.storage is not None:
            return True
        if value.op in HEAVY:
            return False
        if value.kept and value.op == "load":
            return False
        return all(self.available(operand, group) for operand in value.operands)

    def declare(self, value: Value) -> Storage:
        """New storage for a value, declared at this place."""
        storage = Storage(self.builder.fresh(value.name or "kept"), value.shape, value.dtype)
        self.declare_storage(storage)
        return storage

    def declare_storage(self, storage: Storage) -> None:
        kind = STORED[storage.dtype]
        self.around.taken.add(storage.name)
        if self.pads_rows and len(storage.shape) == 2 and (storage.shape[1].constant or 2) >= self.pads_rows:
            group = 64 // storage.dtype.size
            storage.pitch = combine("//", storage.shape[1] + group - 1, poly(group)) * group
            if (storage.pitch * storage.dtype.size).constant in range(ROWS_MEET, 1 << 31, ROWS_MEET) and _many(
                storage.shape[0]
            ):
                storage.pitch = storage.pitch + group
        if storage.scalar:
            self.out.append(f"{kind} {storage.name};")
            return
        size = poly(1)
        for extent in storage.extents:
            size = size * extent
        count = size.constant
        if count is not None and count * storage.dtype.size <= STACK_BYTES:
            self.out.append(f"alignas(64) {kind} {storage.name}[{max(count, 1)}];")
            return
        self.scratch.append(storage)
        slot = len(self.scratch) - 1
        self.out.append(f"{kind}* __restrict const {storage.name} = scratch<{kind}, {slot}>({to_c(size)});")

    # ------------------------------------------------------------ loops

    def loop(self, loop: LoopEffect) -> None:
        """A loop: outer values first, carried tiles before it, the body, the commit."""
        self.make_outer_values(loop)
        if loop.kind == "parallel" and not self.in_parallel:
            self.parallel(loop)
            return
        if sums.nest(self, loop):
            return
        self.begin_carried(loop)
        self.around.steps |= {loop.var: loop.step} if loop.start.constant == 0 else {}
        self.out.append(_head(loop) + " {")
        self.inside(loop)
        self.out.append("}")
        self.ready |= {v for v in self.usage.values if v.op == "stored" and any(v.storage is c.storage for c in loop.carried)}

    def turn(self, value: Value) -> bool:
        """Whether a tile that is stored along another axis than it is loaded along was copied in turned blocks."""
        how = turn_of(value)
        return how is not None and transposed.make(self, value, how)

    def first_sum(self, loop: LoopEffect, item: Carried) -> str | None:
        """When the first product of a loop overwrites a carried tile, so that nothing has to be set to zero; None: it must be."""
        return product.first_sum(self, loop, item)

    def inside(self, loop: LoopEffect, following: Poly | None = None) -> None:
        self.trips.append(self.most(_trips(loop)))
        self.ready |= {item.inside for item in loop.carried}
        outside = self.around.ahead, self.around.touched
        self.around.ahead, self.around.touched = (loop.var, loop.step, following or poly(loop.var) + loop.step), set()
        mark = len(self.out)
        self.block(loop.body)
        self.commit(loop)
        self.out[mark:] = fetch.chosen(self.out[mark:])
        self.around.ahead, self.around.touched = outside
        self.trips.pop()

    def most(self, trips: Poly) -> Poly:
        """A count of iterations without loop variables in it: the most it can be, for estimates of work."""
        bound = self.around.ranges.upper(trips)
        return bound if bound is not None else poly(1)

    def make_outer_values(self, loop: LoopEffect) -> None:
        """Values of enclosing blocks that the body reads from storage are made before the loop."""
        values = self.needed_inside(loop.body, [item.final for item in loop.carried if item.final is not None])
        for value in sorted(values, key=lambda v: (v.op not in HEAVY, v.id)):
            if (value.kept or value.op in HEAVY) and value.storage is None and not loop.body.encloses(value.home):
                self.make(value)

    def needed_inside(self, block: Block, also: list[Value]) -> set[Value]:
        found: set[Value] = set()
        stack = list(also)
        for effect in block.effects:
            if isinstance(effect, StoreEffect):
                stack += effect.operands
            elif isinstance(effect, MaterializeEffect):
                stack.append(effect.value)
            elif isinstance(effect, LoopEffect):
                found |= self.needed_inside(effect.body, [])
                stack += [v for c in effect.carried for v in (c.initial, c.final) if v is not None]
        while stack:
            value = stack.pop()
            if value not in found:
                found.add(value)
                stack += value.operands
        return found

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
                self.first_sums[item.inside] = first
            elif initial is not None:
                self.emit(Nest(self.around, initial.shape, [Fill(item.storage, initial, ())], set()), initial.shape)

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
                    self.emit(Nest(self.around, copy.shape, [Fill(copy, item.final, ())], set()), copy.shape)
                    fresh = self.builder.value("stored", (), copy.shape, copy.dtype, copy)
                    fresh.storage = copy
                    item.final = fresh
        fills: list[Root] = [Fill(item.storage, item.final, ()) for item in group if item.final is not None]
        shapes = {item.storage.shape for item in group}
        for shape in shapes:
            chosen = [f for f in fills if isinstance(f, Fill) and f.storage.shape == shape]
            self.emit(Nest(self.around, shape, list(chosen), set()), shape)

    def parallel(self, loop: LoopEffect) -> None:
        """Loops that are nothing but parallel are collapsed into one; a small kernel runs on one thread."""
        chain = [loop]
        while True:
            inner = [e for e in chain[-1].body.effects if not isinstance(e, CommentEffect)]
            if len(inner) != 1 or not isinstance(inner[0], LoopEffect) or inner[0].kind != "parallel" or inner[0].carried:
                break
            nested = inner[0]
            if any(n in _names(nested) for n in [item.var for item in chain]) or self.holds_values(chain[-1].body, nested):
                break
            chain.append(nested)
        self.around.steps |= {item.var: item.step for item in chain if item.start.constant == 0}
        mark, before = len(self.out), self.work
        self.work = Poly()
        self.in_parallel = True
        self.out.append("")
        finals = [item.final for item in loop.carried if item.final is not None]
        reached = self.needed_inside(loop.body, finals)
        wish = 1 if _busy(chain[-1].body, reached) else self.around.knobs.places
        places = streams.places_in_turn(chain, reached, self.around.tensors, self.around.ranges, wish)
        if places > 1:
            turn, at = self.builder.fresh("visit"), self.builder.fresh("at")
            self.around.taken.update((turn, at))
            self.out += streams.heads(chain, places, turn, at)
        else:
            self.out += [_head(item) + (" {" if item is chain[-1] else "") for item in chain]
        for item in chain[:-1]:
            self.trips.append(self.most(_trips(item)))
            self.out += [f"// {e.text}" for e in item.body.effects if isinstance(e, CommentEffect)]
        self.inside(chain[-1], streams.following(chain[-1], places) if places > 1 and len(chain) == 1 else None)
        for _ in chain[:-1]:
            self.trips.pop()
        self.out.append("}")
        self.in_parallel = False
        limit = loop.hints.get("serial_below", self.around.knobs.parallel_above)
        amount = self.work.constant
        if amount is None or amount >= limit:
            test = f" if({to_c(self.work)} >= {limit})" if amount is None else ""
            collapse = f" collapse({len(chain)})" if len(chain) > 1 and places == 1 else ""
            grain = self.around.knobs.dynamic or int(_uneven(chain))
            shares = f"dynamic, {grain}" if grain else "static"
            self.out[mark] = f"#pragma omp parallel for{collapse} schedule({shares}){test}"
        self.work = before + self.work

    def holds_values(self, block: Block, nested: LoopEffect) -> bool:
        """True if something must be computed between two parallel loops."""
        return any((v.kept or v.op in HEAVY) and v.home is block for v in self.needed_inside(nested.body, []))


def _uneven(chain: list[LoopEffect]) -> bool:
    """Whether iterations of parallel loops are of different lengths, as those of a triangle are: then who is done takes the next."""
    names = {item.var for item in chain}
    inside = [effect for effect in chain[-1].body.effects if isinstance(effect, LoopEffect)]
    return any(names & (set(loop.start.names) | set(loop.stop.names)) for loop in inside)


def _busy(body: Block, reached: set[Value]) -> bool:
    """Whether a pointwise body waits for its arithmetic rather than for memory."""
    puts = [effect.value for effect in body.effects if isinstance(effect, StoreEffect)]
    return not any(value.op in HEAVY for value in reached) and sum(map(cost_of, puts)) > fetch.BUSY_COST


def _region_shape(effect: StoreEffect) -> tuple[Poly, ...]:
    from kernelwright.compiler.lower.tile_graph import broadcast
    from kernelwright.compiler.lower.tile_values import PickAccess, SpanAccess

    picked: tuple[Poly, ...] = ()
    spans: list[Poly] = []
    for axis in effect.axes:
        if isinstance(axis, PickAccess):
            picked = broadcast(picked, axis.indices.shape)
        elif isinstance(axis, SpanAccess):
            spans.append(axis.extent)
    return (*picked, *spans)


def _affine(effect: StoreEffect) -> bool:
    from kernelwright.compiler.lower.tile_values import PickAccess

    return not any(isinstance(a, PickAccess) for a in effect.axes)


def _many(rows: Poly) -> bool:
    """More rows than the sets of the first cache that they share can hold."""
    return rows.constant is None or rows.constant > 32


def _names(loop: LoopEffect) -> frozenset[str]:
    return loop.start.names | loop.stop.names | loop.step.names


def _trips(loop: LoopEffect) -> Poly:
    return combine("//", loop.stop - loop.start + loop.step - 1, loop.step)


def _head(loop: LoopEffect) -> str:
    step = f"++{loop.var}" if loop.step.constant == 1 else f"{loop.var} += {to_c(loop.step)}"
    return f"for (int64_t {loop.var} = {to_c(loop.start)}; {loop.var} < {to_c(loop.stop)}; {step})"


__all__ = ["Elements", "Scheduler"]
