"""From one kernel of a sketch to Triton kernels and how they are launched.

In: a `nodes.Kernel` and its sketch. Out: `Launch`es in order: the text of a `@triton.jit` function, the tensors it takes, its grid and
options. Each parallel loop nest at the top of a kernel is one launch; statements outside of parallel loops are a launch of one
program. Parallel iterations become program ids; those of the innermost loops become lanes of a block where tiles are small.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelwright.compiler.backends.triton import plan as planning
from kernelwright.compiler.backends.triton.lines import Name, Writer
from kernelwright.compiler.backends.triton.plan import Dim, Plan, Survey
from kernelwright.compiler.backends.triton.program import Program
from kernelwright.compiler.backends.triton.tiles import TensorPlace
from kernelwright.compiler.lower.liveness import names_bound
from kernelwright.compiler.lower.tile_graph import GraphBuilder, walk
from kernelwright.compiler.lower.tile_values import Block, LoopEffect, MaterializeEffect, StoreEffect, Value
from kernelwright.core.errors import SketchError
from kernelwright.sketch import nodes
from kernelwright.sketch.index import Poly, Ranges, combine, from_index, poly


@dataclass(frozen=True)
class Launch:
    """One kernel function and its call."""

    name: str
    text: str
    tensors: tuple[str, ...]
    grid: int
    warps: int
    stages: int
    once: bool
    constants: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Loop:
    """A parallel loop whose iterations are programs or lanes."""

    var: str
    start: Poly
    step: Poly
    trips: int


def launches(sketch: nodes.Sketch, kernel: nodes.Kernel, taken: set[str]) -> list[Launch]:
    """All launches of one kernel of the sketch."""
    found: list[Launch] = []
    before: list[nodes.Statement] = []
    alone: list[nodes.Statement] = []

    def flush() -> None:
        if any(_stores(statement) for statement in alone):
            found.append(_Build(sketch, kernel, (*before, *alone), taken).launch())
        before.extend(statement for statement in alone if not _stores(statement))
        alone.clear()

    for statement in kernel.body:
        if isinstance(statement, nodes.For) and statement.kind == "parallel":
            flush()
            found.append(_Build(sketch, kernel, (*before, statement), taken).launch())
        else:
            alone.append(statement)
    flush()
    return found


def _stores(statement: nodes.Statement) -> bool:
    return isinstance(statement, nodes.Store) or (isinstance(statement, nodes.For) and any(map(_stores, statement.body)))


class _Build:
    """One launch in the making."""

    def __init__(self, sketch: nodes.Sketch, kernel: nodes.Kernel, body: tuple[nodes.Statement, ...], taken: set[str]) -> None:
        self.sketch, self.kernel, self.taken = sketch, kernel, taken
        self.sizes: dict[str, Poly] = {s.name: poly(s.value) for s in sketch.sizes} | {
            t.name: poly(t.value) for t in sketch.tunables
        }
        self.ranges = Ranges({})
        self.loops: list[Loop] = []
        self.inner = self._descend(body)
        self.graph = self._graph()
        self.root = {t.name: t.source if t.role == "view" else t.name for t in sketch.tensors}
        self.places = self._places()

    def _descend(self, body: tuple[nodes.Statement, ...]) -> tuple[nodes.Statement, ...]:
        """The statements inside the perfect nest of parallel loops at the end of a body; what is bound before is kept."""
        while True:
            real = [statement for statement in body if not isinstance(statement, nodes.Comment)]
            last = real[-1] if real else None
            if not isinstance(last, nodes.For) or last.kind != "parallel" or any(_stores(statement) for statement in real[:-1]):
                return body
            start, stop, step = (from_index(i, self.sizes) for i in (last.start, last.stop, last.step))
            trips = combine("//", stop - start + step - 1, step).constant
            if trips is None or step.constant is None:
                return body
            if trips == 1:
                self.sizes[last.var] = start
            else:
                var = last.var
                while var in self.sizes or var in self.ranges.known:
                    var = f"{var}_"
                self.loops.append(Loop(var, start, step, trips))
                self.ranges.known[var] = (start, start + step * max(0, trips - 1))
                self.sizes[last.var] = poly(var)
            bound = names_bound(last.body)
            body = (*(s for s in real[:-1] if not (isinstance(s, nodes.Assign) and s.name in bound)), *last.body)

    def _graph(self) -> Block:
        tensors = {t.name: t for t in self.sketch.tensors}
        kernel = replace(self.kernel, body=self.inner)
        builder = GraphBuilder(self.sizes, tensors, kernel)
        builder.ranges = self.ranges
        self.written_too = builder.written_too
        return builder.build()

    def _places(self) -> dict[str, TensorPlace]:
        found = {}
        for tensor in self.sketch.tensors:
            shape = []
            for index in tensor.shape:
                extent = from_index(index, self.sizes).constant
                if extent is None:
                    raise SketchError(f"{tensor.name} has an extent that is not known")
                shape.append(extent)
            strides: list[int] = []
            stride = 1
            for extent in reversed(shape):
                strides.insert(0, stride)
                stride *= extent
            found[tensor.name] = TensorPlace(f"{self.root[tensor.name]}_ptr", tuple(shape), tuple(strides), tensor.dtype)
        return found

    # ------------------------------------------------------------ two runs

    def launch(self) -> Launch:
        plan = planning.make(self._survey())
        lanes = self._lanes(plan)
        if lanes:
            plan = planning.make(self._survey())
        body, largest, dots, constants = self._write(plan, lanes)
        grid = 1
        for trips in self._factors(plan, lanes).values():
            grid *= trips
        name = self._name()
        used = self._used()
        parameters = [*(f"{tensor}_ptr" for tensor in used), *(f"{constant}: tl.constexpr" for constant in constants)]
        head = f"@triton.jit\ndef {name}({', '.join(parameters)}):\n"
        doc = f'    """{self.kernel.doc.strip()}"""\n' if self.kernel.doc else ""
        warps = 4 if largest <= 2048 else 8 if largest <= 8192 or dots else 16
        text = head + doc + "\n".join(body) + "\n"
        return Launch(name, text, used, grid, warps, 3 if dots else 2, self.kernel.once, tuple(constants.items()))

    def _survey(self) -> Survey:
        survey = Survey()
        program = _Dry(Writer(Ranges(dict(self.ranges.known))), self.places, survey)
        self._enter(program, {}, {})
        program.block(self.graph)
        return survey

    def _write(self, plan: Plan, lanes: dict[str, int]) -> tuple[list[str], int, bool, dict[str, int]]:
        program = _Real(Writer(Ranges(dict(self.ranges.known))), self.places, None)
        program.plan = plan
        program.barriers = frozenset(name for name in self.places if self.root[name] in self.written_too)
        self._enter(program, lanes, self._factors(plan, lanes))
        program.block(self.graph)
        lanes_size = 1
        for size in lanes.values():
            lanes_size *= size
        body = program.out.frames[0].lines or ["    pass"]
        dots = any("tl.dot(" in line for line in body)
        return body, plan.largest * lanes_size, dots, program.out.constants

    def _enter(self, program: Program, lanes: dict[str, int], factors: dict[str, int]) -> None:
        """Program ids, parallel variables and lanes."""
        out = program.out
        out.taken |= {f"{name}_ptr" for name in self.places}
        starts: dict[str, str] = {}
        wide = any(_volume(place.shape) >= 2**31 for place in self.places.values())
        if factors:
            out.line(f"pid = tl.program_id(0){'.to(tl.int64)' if wide else ''}")
            left = len(factors)
            for key, trips in reversed(factors.items()):
                left -= 1
                if left == 0:
                    starts[key] = "pid"
                    continue
                starts[key] = out.fresh(f"pid_{key}" if key in self.ranges.known else f"pid_{out.label(key)}")
                out.line(f"{starts[key]} = pid % {trips}")
                out.line(f"pid = pid // {trips}")
        for loop in self.loops:
            name = out.fresh(loop.var)
            if loop.var in lanes:
                dim = Dim(f"lane_{loop.var}", loop.trips, lanes[loop.var], "grid")
                out.dims[dim.name], out.order[dim.name] = dim, len(out.order)
                out.ranges.known[dim.name] = (poly(0), poly(dim.extent - 1))
                place, size = out.label(dim.name), out.size(dim.name)
                base = f"{starts[loop.var]} * {size} + " if loop.var in starts else ""
                out.line(f"{place} = {base}tl.arange(0, {size})")
                out.names[dim.name] = Name(place, (dim.name,), 0)
                program.lanes = (*program.lanes, dim.name)
                text = place
            else:
                text = starts.get(loop.var, "0")
            step, start = loop.step.constant, out.place(loop.start, ())
            text = text if step == 1 else f"{text} * {step}"
            out.line(f"{name} = {text}" if start == "0" else f"{name} = {start} + {text}")
            out.names[loop.var] = Name(name, (f"lane_{loop.var}",) if loop.var in lanes else (), 0)
            if loop.var in lanes and loop.var in starts and start == "0" and step is not None:
                out.spread[loop.var] = (starts[loop.var], size, step)
        program.starts = starts

    def _factors(self, plan: Plan, lanes: dict[str, int]) -> dict[str, int]:
        """What the grid is made of, slowest first. A grid of one program has its number, too: an offset that the compiler for Ascend knows
        from beginning to end must not be negative, as those of padded windows are."""
        found = {loop.var: -(-loop.trips // lanes.get(loop.var, 1)) for loop in self.loops}
        for dim in {dim.name: dim for dim in plan.of.values()}.values():
            if dim.walk == "grid":
                found[dim.name] = dim.steps
        return {key: trips for key, trips in found.items() if trips > 1} or dict([*found.items()][:1])

    def _lanes(self, plan: Plan) -> dict[str, int]:
        """Parallel loops whose iterations share a program, and how many of them: small tiles make poor blocks."""
        ops = _operations(self.graph)
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
            count = min(planning.power(loop.trips), planning.LANES // size)
            found[loop.var] = count
            size *= count
        return found

    def _used(self) -> tuple[str, ...]:
        mentioned = [node for node in walk(self.inner) if isinstance(node, nodes.Load | nodes.Store)]
        return tuple(dict.fromkeys(self.root[node.tensor] for node in mentioned))

    def _name(self) -> str:
        stem = self.kernel.name if self.kernel.name.isidentifier() else "kernel"
        name, k = f"{stem}_kernel", 1
        while name in self.taken:
            k += 1
            name = f"{stem}_kernel_{k}"
        self.taken.add(name)
        return name


class _Dry(Program):
    def grid_start(self, dim: Dim) -> str:
        return "0"


class _Real(Program):
    plan: Plan

    def plan_of(self, name: str) -> Dim:
        return self.plan.of[name]

    def grid_start(self, dim: Dim) -> str:
        key = dim.name.removeprefix("lane_") if dim.name.startswith("lane_") else dim.name
        return f"{self.starts[key]} * {self.out.size(dim.name)}" if key in self.starts else "0"


def _operations(block: Block) -> set[str]:
    found: set[str] = set()
    seen: set[int] = set()

    def look(value: Value | None) -> None:
        if value is None or value.id in seen:
            return
        seen.add(value.id)
        found.add(value.op)
        for operand in value.operands:
            look(operand)

    def visit(inner: Block) -> None:
        for effect in inner.effects:
            if isinstance(effect, StoreEffect):
                for operand in effect.operands:
                    look(operand)
            elif isinstance(effect, MaterializeEffect):
                look(effect.value)
            elif isinstance(effect, LoopEffect):
                for item in effect.carried:
                    look(item.initial)
                    look(item.final)
                visit(effect.body)

    visit(block)
    return found


def _loop_bounds(block: Block) -> set[str]:
    """Names that bound a loop of the program: they must be scalars."""
    found: set[str] = set()
    for effect in block.effects:
        if isinstance(effect, LoopEffect):
            found |= effect.start.names | effect.stop.names | effect.step.names | _loop_bounds(effect.body)
    return found


def _volume(shape: tuple[int, ...]) -> int:
    total = 1
    for extent in shape:
        total *= extent
    return total
