"""The body of a C++ kernel: nests in order, storage on the stack or in scratch memory, loops shared out to threads.

In: the graph of a kernel, and what of it is materialized. Out: C++ lines. The order of work is that of the C family
(compiler/lower/c_family/schedule.py); here is what a CPU does beyond: parallel loops, products by the micro-kernel, scans in
registers, tiles transposed in blocks, prefetches.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelwright.compiler.backends.cpp.nests import fetch, scan, sort, streams, transposed
from kernelwright.compiler.backends.cpp.nests.loop_nest import LoopNest
from kernelwright.compiler.backends.cpp.nests.loops import CpuContext
from kernelwright.compiler.backends.cpp.products import sums, tile_product
from kernelwright.compiler.lower.c_family import schedule, stack
from kernelwright.compiler.lower.c_family.materialize import cost_of
from kernelwright.compiler.lower.c_family.nest import Nest
from kernelwright.compiler.lower.c_family.schedule import bound_names, loop_head, trips_of
from kernelwright.compiler.lower.c_family.transpositions import transposes_sums, transposition_of
from kernelwright.compiler.lower.c_types import STORED
from kernelwright.compiler.lower.stacks import short_axes
from kernelwright.compiler.lower.tile_values import (
    MATERIALIZED,
    Block,
    Carried,
    CommentEffect,
    LoopEffect,
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
class Scheduler(schedule.Scheduler):
    """Writes the body of one kernel."""

    context: CpuContext
    in_parallel: bool = False
    scratch: list[Storage] = field(default_factory=list)
    first_sums: dict[Value, str] = field(
        default_factory=dict
    )  # carried tiles that the first product overwrites, and when that is
    pads_rows: int = (
        0  # rank-2 tiles at least this wide start their rows at multiples of a vector (0: none), for matrix products
    )

    def store(self, effect: StoreEffect) -> None:
        if not scan.into_tensor(self, effect):
            super().store(effect)

    def emit(self, nest: Nest, shape: tuple[Poly, ...]) -> None:
        lines = LoopNest(nest).write()
        self.out += ["{", *lines, "}"]
        size = poly(1)
        for extent in (*shape, *self.trips):
            size = size * extent
        cost = sum(cost_of(r.value) for r in nest.outputs)
        self.work = self.work + size * max(1, round(cost / 4))

    def make_elements(self, value: Value) -> None:
        if value.op == "permute" and transposes_sums(value):
            transposed.make_sums(self, value)
        elif axes := short_axes(value):
            stack.make(self, value, axes)
        else:
            super().make_elements(value)

    def scan(self, value: Value) -> None:
        scan.scan(self, value)

    def argsort(self, value: Value) -> None:
        sort.argsort(self, value)

    def product(self, value: Value) -> None:
        tile_product.product(self, value)

    def declare_storage(self, storage: Storage) -> None:
        kind = STORED[storage.dtype]
        self.context.taken.add(storage.name)
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

    def transpose(self, value: Value) -> bool:
        how = transposition_of(value)
        return how is not None and transposed.make(self, value, how)

    def first_sum(self, loop: LoopEffect, item: Carried) -> str | None:
        return tile_product.first_sum(self, loop, item)

    def overwrites(self, item: Carried, condition: str) -> None:
        self.first_sums[item.inside] = condition

    # ------------------------------------------------------------ loops

    def loop(self, loop: LoopEffect) -> None:
        self.make_outer_values(loop)
        if loop.kind == "parallel" and not self.in_parallel:
            self.parallel(loop)
            return
        if sums.nest(self, loop):
            return
        self.begin_carried(loop)
        self.context.steps |= {loop.var: loop.step} if loop.start.constant == 0 else {}
        self.out.append(loop_head(loop) + " {")
        self.inside(loop)
        self.out.append("}")
        self.left(loop)

    def inside(self, loop: LoopEffect, following: Poly | None = None) -> None:
        """The body, with what the next iteration (`following`, if not the next step) reads fetched ahead."""
        outside = self.context.ahead, self.context.touched
        self.context.ahead, self.context.touched = (loop.var, loop.step, following or poly(loop.var) + loop.step), set()
        mark = len(self.out)
        super().inside(loop)
        self.out[mark:] = fetch.chosen(self.out[mark:])
        self.context.ahead, self.context.touched = outside

    def parallel(self, loop: LoopEffect) -> None:
        """Loops that are nothing but parallel are collapsed into one; a small kernel runs on one thread."""
        chain = [loop]
        while True:
            inner = [e for e in chain[-1].body.effects if not isinstance(e, CommentEffect)]
            if len(inner) != 1 or not isinstance(inner[0], LoopEffect) or inner[0].kind != "parallel" or inner[0].carried:
                break
            nested = inner[0]
            if any(n in bound_names(nested) for n in [item.var for item in chain]) or self.holds_values(chain[-1].body, nested):
                break
            chain.append(nested)
        self.context.steps |= {item.var: item.step for item in chain if item.start.constant == 0}
        mark, before = len(self.out), self.work
        self.work = Poly()
        self.in_parallel = True
        self.out.append("")
        finals = [item.final for item in loop.carried if item.final is not None]
        reached = self.needed_inside(loop.body, finals)
        wish = 1 if _busy(chain[-1].body, reached) else self.context.options.places
        places = streams.places_in_turn(chain, reached, self.context.tensors, self.context.ranges, wish)
        if places > 1:
            turn, at = self.builder.fresh("visit"), self.builder.fresh("at")
            self.context.taken.update((turn, at))
            self.out += streams.heads(chain, places, turn, at)
        else:
            self.out += [loop_head(item) + (" {" if item is chain[-1] else "") for item in chain]
        for item in chain[:-1]:
            self.trips.append(self.most(trips_of(item)))
            self.out += [f"// {e.text}" for e in item.body.effects if isinstance(e, CommentEffect)]
        self.inside(chain[-1], streams.following(chain[-1], places) if places > 1 and len(chain) == 1 else None)
        for _ in chain[:-1]:
            self.trips.pop()
        self.out.append("}")
        self.in_parallel = False
        limit = loop.hints.get("serial_below", self.context.options.parallel_above)
        amount = self.work.constant
        if amount is None or amount >= limit:
            test = f" if({to_c(self.work)} >= {limit})" if amount is None else ""
            collapse = f" collapse({len(chain)})" if len(chain) > 1 and places == 1 else ""
            grain = self.context.options.dynamic or int(_uneven(chain))
            shares = f"dynamic, {grain}" if grain else "static"
            self.out[mark] = f"#pragma omp parallel for{collapse} schedule({shares}){test}"
        self.work = before + self.work

    def holds_values(self, block: Block, nested: LoopEffect) -> bool:
        """True if something must be computed between two parallel loops."""
        return any((v.kept or v.op in MATERIALIZED) and v.home is block for v in self.needed_inside(nested.body, []))


def _uneven(chain: list[LoopEffect]) -> bool:
    """Whether iterations of parallel loops are of different lengths, as those of a triangle are: then who is done takes the next."""
    names = {item.var for item in chain}
    inside = [effect for effect in chain[-1].body.effects if isinstance(effect, LoopEffect)]
    return any(names & (set(loop.start.names) | set(loop.stop.names)) for loop in inside)


def _busy(body: Block, reached: set[Value]) -> bool:
    """Whether a pointwise body waits for its arithmetic rather than for memory."""
    stores = [effect.value for effect in body.effects if isinstance(effect, StoreEffect)]
    return not any(value.op in MATERIALIZED for value in reached) and sum(map(cost_of, stores)) > fetch.BUSY_COST


def _many(rows: Poly) -> bool:
    """More rows than the sets of the first cache that they share can hold."""
    return rows.constant is None or rows.constant > 32
