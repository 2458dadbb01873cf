"""From one kernel of a sketch to launches of tile programs: which loops become the grid.

In: a `nodes.Kernel` and its sketch. Out: a `LaunchBuilder` for each launch, in order. Each parallel loop nest at the top of a kernel is
one launch; statements outside of parallel loops are a launch of one program. Parallel iterations become programs; those of the
innermost loops become lanes of a block where tiles are small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from kernelwright.compiler.lower.liveness import names_bound
from kernelwright.compiler.lower.tile_graph import GraphBuilder, walk
from kernelwright.compiler.lower.tile_programs import plan as planning
from kernelwright.compiler.lower.tile_programs.elements import TensorPlace
from kernelwright.compiler.lower.tile_programs.factors import multiplied_as_stored
from kernelwright.compiler.lower.tile_programs.lines import Name, Writer
from kernelwright.compiler.lower.tile_programs.plan import Dim, Extent, Plan, Survey, ceil_div, likely, plain
from kernelwright.compiler.lower.tile_programs.survey import Surveyor
from kernelwright.compiler.lower.tile_values import Block, LoopEffect, SpanAccess, StoreEffect, made_of
from kernelwright.sketch import nodes
from kernelwright.sketch.index import Poly, Ranges, combine, from_index, poly
from kernelwright.target import Capabilities


@dataclass(frozen=True)
class Loop:
    """A parallel loop whose iterations are programs or lanes."""

    var: str
    start: Poly
    step: Poly
    trips: Extent


def launch_bodies(kernel: nodes.Kernel) -> Iterator[tuple[nodes.Statement, ...]]:
    """The statements of each launch of a kernel."""
    before: list[nodes.Statement] = []
    alone: list[nodes.Statement] = []

    def flush() -> Iterator[tuple[nodes.Statement, ...]]:
        if any(_stores(statement) for statement in alone):
            yield (*before, *alone)
        before.extend(statement for statement in alone if not _stores(statement))
        alone.clear()

    for statement in kernel.body:
        if isinstance(statement, nodes.For) and statement.kind == "parallel":
            yield from flush()
            yield (*before, statement)
        else:
            alone.append(statement)
    yield from flush()


def _stores(statement: nodes.Statement) -> bool:
    return isinstance(statement, nodes.Store) or (isinstance(statement, nodes.For) and any(map(_stores, statement.body)))


class LaunchBuilder:
    """One launch in the making: what is the same in all languages."""

    def __init__(
        self,
        sketch: nodes.Sketch,
        kernel: nodes.Kernel,
        body: tuple[nodes.Statement, ...],
        taken: set[str],
        machine: Capabilities,
    ) -> None:
        self.sketch, self.kernel, self.taken = sketch, kernel, taken
        self.machine, self.budget = machine, planning.Budget.of(machine)
        self.examples = {s.name: s.value for s in sketch.sizes if s.dynamic}
        self.sizes: dict[str, Poly] = {s.name: poly(s.name if s.dynamic else s.value) for s in sketch.sizes} | {
            t.name: poly(t.value) for t in sketch.tunables
        }
        self.ranges = Ranges({})
        self.loops: list[Loop] = []
        self.inner = self._descend(body)
        self.graph = self._graph()
        self.root = {t.name: t.source if t.role == "view" else t.name for t in sketch.tensors}
        self.places = self.tensor_places()

    def _descend(self, body: tuple[nodes.Statement, ...]) -> tuple[nodes.Statement, ...]:
        """The statements inside the perfect nest of parallel loops at the end of a body; what is bound before is kept."""
        while True:
            real = [statement for statement in body if not isinstance(statement, nodes.Comment)]
            last = real[-1] if real else None
            if not isinstance(last, nodes.For) or last.kind != "parallel" or any(_stores(statement) for statement in real[:-1]):
                return body
            start, stop, step = (from_index(i, self.sizes) for i in (last.start, last.stop, last.step))
            trips = plain(combine("//", stop - start + step - 1, step))
            if step.constant is None:
                return body
            if trips == 1:
                self.sizes[last.var] = start
            else:
                var = last.var
                while var in self.sizes or var in self.ranges.known:
                    var = f"{var}_"
                self.loops.append(Loop(var, start, step, trips))
                end = start + step * max(0, trips - 1) if isinstance(trips, int) else stop - 1
                self.ranges.known[var] = (start, end)
                self.sizes[last.var] = poly(var)
            bound = names_bound(last.body)
            body = (*(s for s in real[:-1] if not (isinstance(s, nodes.Assign) and s.name in bound)), *last.body)

    def _graph(self) -> Block:
        tensors = {t.name: t for t in self.sketch.tensors}
        kernel = replace(self.kernel, body=self.inner)
        builder = GraphBuilder(self.sizes, tensors, kernel)
        builder.ranges = self.ranges
        builder.storage_names |= self.examples.keys()
        self.written_too = builder.written_too
        return multiplied_as_stored(builder.build())

    def tensor_places(self) -> dict[str, TensorPlace]:
        found = {}
        for tensor in self.sketch.tensors:
            shape = [from_index(index, self.sizes) for index in tensor.shape]
            strides: list[Poly] = []
            stride = poly(1)
            for extent in reversed(shape):
                strides.insert(0, stride)
                stride = stride * extent
            pointer = f"{self.root[tensor.name]}_ptr"
            found[tensor.name] = TensorPlace(pointer, tuple(map(plain, shape)), tuple(map(plain, strides)), tensor.dtype)
        return found

    # ------------------------------------------------------------ planning

    def planned(self) -> tuple[Plan, dict[str, int], Survey]:
        """The dimensions of a block, the loops whose iterations are its lanes, and what the last dry run saw."""
        survey = self._survey()
        plan = planning.make(survey, self.budget)
        lanes = self._lanes(plan)
        if lanes:
            survey = self._survey()
            plan = planning.make(survey, self.budget)
        return plan, lanes, survey

    def _survey(self) -> Survey:
        surveyor = Surveyor(Ranges(dict(self.ranges.known)), self.places, self.examples)
        self.add_sizes(surveyor.out)
        for loop in self.loops:
            surveyor.out.names[loop.var] = Name(surveyor.out.fresh(loop.var), (), 0)
        surveyor.block(self.graph)
        return surveyor.survey

    def shared_tensors(self) -> frozenset[str]:
        """Tensors that the launch both writes and reads."""
        return frozenset(name for name in self.places if self.root[name] in self.written_too)

    def add_sizes(self, out: Writer) -> None:
        """Declares the sizes that vary: scalars that a kernel is given."""
        for name in self.examples:
            out.taken.add(name)
            out.names[name] = Name(name, (), 0)

    @staticmethod
    def add_lane(out: Writer, loop: Loop, count: int) -> Dim:
        """Declares the dimension of a loop whose iterations are lanes of a block."""
        dim = Dim(f"lane_{loop.var}", loop.trips, count, "grid")
        out.dims[dim.name], out.order[dim.name] = dim, len(out.order)
        out.ranges.known[dim.name] = (poly(0), poly(dim.extent) - 1)
        return dim

    def factors(self, plan: Plan, lanes: dict[str, int]) -> dict[str, Extent]:
        """What the grid is made of, slowest first. A grid of one program has its number, too: an offset that the compiler for Ascend knows
        from beginning to end must not be negative, as those of padded windows are."""
        found = {loop.var: ceil_div(loop.trips, lanes.get(loop.var, 1)) for loop in self.loops}
        for dim in {dim.name: dim for dim in plan.of.values()}.values():
            if dim.walk == "grid":
                found[dim.name] = dim.steps
        return {key: trips for key, trips in found.items() if isinstance(trips, Poly) or trips > 1} or dict(
            [*found.items()][:1]
        )

    def blocks(self, factors: dict[str, Extent]) -> Poly:
        """How many programs a launch has."""
        total = poly(1)
        for trips in factors.values():
            total = total * trips
        return total

    def _lanes(self, plan: Plan) -> dict[str, int]:
        """Parallel loops whose iterations share a program, and how many of them: small tiles make poor blocks."""
        ops = {value.op for value in made_of(self.graph.used())}
        if ops & {"gemm", "argsort"} or any(dim.walk == "grid" for dim in plan.of.values()):
            return {}
        found: dict[str, int] = {}
        size = plan.largest
        fixed = _loop_bounds(self.graph)
        for loop in reversed(self.loops):
            if size * 2 > planning.LANES or loop.var in fixed or loop.trips == 1:
                if loop.trips == 1:
                    continue
                break
            trips = loop.trips if isinstance(loop.trips, int) else max(planning.VARYING, likely(loop.trips, self.examples))
            count = min(planning.power(trips), planning.LANES // size)
            found[loop.var] = count
            size *= count
        return found

    def product_loops(self, factors: Mapping[str, Extent]) -> tuple[str, str] | None:
        """The loops over rows and over columns of a product's tiles, where the two are the fastest of the grid."""
        if len(factors) < 2 or not any(value.op == "gemm" for value in made_of(self.graph.used())):
            return None
        rows, columns = list(factors)[-2:]
        for effect in self.graph.effects:
            if isinstance(effect, StoreEffect):
                spans = [axis.start.names for axis in effect.axes if isinstance(axis, SpanAccess)]
                if len(spans) == 2 and rows in spans[0] - spans[1] and columns in spans[1] - spans[0]:
                    return rows, columns
        return None

    def used(self) -> tuple[str, ...]:
        mentioned = [node for node in walk(self.inner) if isinstance(node, nodes.Load | nodes.Store)]
        return tuple(dict.fromkeys(self.root[node.tensor] for node in mentioned))

    def name(self) -> str:
        stem = self.kernel.name if self.kernel.name.isidentifier() else "kernel"
        name, k = f"{stem}_kernel", 1
        while name in self.taken:
            k += 1
            name = f"{stem}_kernel_{k}"
        self.taken.add(name)
        return name


def _loop_bounds(block: Block) -> set[str]:
    """Names that bound a loop of the program: they must be scalars."""
    found: set[str] = set()
    for effect in block.effects:
        if isinstance(effect, LoopEffect):
            found |= effect.start.names | effect.stop.names | effect.step.names | _loop_bounds(effect.body)
    return found
