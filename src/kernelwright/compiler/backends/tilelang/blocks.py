"""From one kernel of a sketch to TileLang kernels and how they are launched.

In: a `nodes.Kernel` and its sketch. Out: `Launch`es in order: the text of a `@tilelang.jit` function without arguments, and the tensors
that its kernel takes. How loops become grids, and how tiles are cut, is planned as for Triton (compiler/backends/triton/launch.py,
plan.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.compiler.backends.tilelang.lines import ElementWriter
from kernelwright.compiler.backends.tilelang.tiles import Block
from kernelwright.compiler.backends.triton import launch as triton
from kernelwright.compiler.backends.triton import plan as planning
from kernelwright.compiler.backends.triton.lines import Name
from kernelwright.compiler.backends.triton.plan import Dim, Plan
from kernelwright.compiler.backends.triton.tiles import TensorPlace
from kernelwright.compiler.lower.tile_graph import walk
from kernelwright.compiler.lower.tile_values import Block as Effects
from kernelwright.compiler.lower.tile_values import LoopEffect, MaterializeEffect, StoreEffect, Value
from kernelwright.sketch import nodes
from kernelwright.sketch.index import Ranges, poly

THREADS = 128
CORE = 32
"""The least side of a tensor-core product: two by two warps of 16 x 16."""


@dataclass(frozen=True)
class Launch:
    """One kernel: its maker, and the tensors it takes with the shapes it sees them under."""

    name: str
    text: str
    tensors: tuple[tuple[str, tuple[int, ...]], ...]
    once: bool


def launches(sketch: nodes.Sketch, kernel: nodes.Kernel, taken: set[str]) -> list[Launch]:
    """All launches of one kernel of the sketch."""
    found: list[Launch] = []
    before: list[nodes.Statement] = []
    alone: list[nodes.Statement] = []

    def flush() -> None:
        if any(triton._stores(statement) for statement in alone):
            found.append(_Build(sketch, kernel, (*before, *alone), taken).made())
        before.extend(statement for statement in alone if not triton._stores(statement))
        alone.clear()

    for statement in kernel.body:
        if isinstance(statement, nodes.For) and statement.kind == "parallel":
            flush()
            found.append(_Build(sketch, kernel, (*before, statement), taken).made())
        else:
            alone.append(statement)
    flush()
    return found


class _Build(triton._Build):
    """One launch in the making."""

    def made(self) -> Launch:
        plan = planning.make(self._survey())
        lanes = self._lanes(plan)
        if lanes:
            plan = planning.make(self._survey())
        survey = self._survey()
        for name in survey.dots:
            if name in plan.of and plan.of[name].size < CORE:
                plan.of[name].size = CORE
        block = self._written(plan, lanes)
        grid = 1
        for trips in self._factors(plan, lanes).values():
            grid *= trips
        name = self._name()
        tensors = self._tensors()
        sizes = block.out.constants
        heads = ", ".join(
            f'{place.pointer}: T.Tensor({_tuple(place.shape)}, "{place.dtype.torch_name}")' for _, place in tensors
        )
        doc = f'    """{self.kernel.doc.strip()}"""\n' if self.kernel.doc else ""
        constants = f"    {', '.join(sizes)} = {', '.join(map(str, sizes.values()))}\n" if sizes else ""
        body = [
            *(f"            {line}" for line in block.out.allocations),
            *(block.out.frames[0].lines or ["            pass"]),
        ]
        text = (
            f"@tilelang.jit\ndef {name}():\n{doc}{constants}\n    @T.prim_func\n    def main({heads}):\n"
            f"        with T.Kernel({grid}, threads={THREADS}) as pid:\n" + "\n".join(body) + "\n\n    return main\n"
        )
        return Launch(name, text, tuple((tensor, place.shape) for tensor, place in tensors), self.kernel.once)

    def _tensors(self) -> list[tuple[str, TensorPlace]]:
        mentioned = [node for node in walk(self.inner) if isinstance(node, nodes.Load | nodes.Store)]
        return [(name, self.places[name]) for name in dict.fromkeys(node.tensor for node in mentioned)]

    def _places(self) -> dict[str, TensorPlace]:
        return {
            name: TensorPlace(name if name.isidentifier() else f"t_{name}", place.shape, place.strides, place.dtype)
            for name, place in super()._places().items()
        }

    def _written(self, plan: Plan, lanes: dict[str, int]) -> Block:
        block = _Real(ElementWriter(Ranges(dict(self.ranges.known))), self.places, None)
        block.plan, block.shared, block.flags, block.begins, block.reduced = plan, set(), set(), {}, {}
        block.in_place = _in_place(self.graph)
        block.seams = frozenset(name for name in self.places if self.root[name] in self.written_too)
        out = block.out
        out.taken |= {place.pointer for place in self.places.values()}
        starts: dict[str, str] = {}
        factors = self._factors(plan, lanes)
        below = 1
        for number, (key, trips) in enumerate(reversed(factors.items())):
            quotient = "pid" if below == 1 else f"pid // {below}"
            text = quotient if number == len(factors) - 1 else f"{quotient} % {trips}"
            if text == "pid":
                starts[key] = "pid"
            else:
                starts[key] = out.fresh(f"pid_{key}" if key in self.ranges.known else f"pid_{out.label(key)}")
                out.line(f"{starts[key]} = {text}")
            below *= trips
        block.starts = starts
        for loop in self.loops:
            step, start = loop.step.constant, out.place(loop.start, ())
            text = starts.get(loop.var, "0")
            dims: tuple[str, ...] = ()
            if loop.var in lanes:
                dim = Dim(f"lane_{loop.var}", loop.trips, lanes[loop.var], "grid")
                out.dims[dim.name], out.order[dim.name] = dim, len(out.order)
                out.ranges.known[dim.name] = (poly(0), poly(dim.extent - 1))
                label = out.label(dim.name)
                text = f"({text} * {out.size(dim.name)} + {label})" if loop.var in starts else label
                out.names[dim.name] = Name(text, (dim.name,), 0)
                block.lanes = (*block.lanes, dim.name)
                dims = (dim.name,)
            text = text if step == 1 else f"{text} * {step}"
            text = text if start == "0" else f"{start} + {text}"
            out.names[loop.var] = Name(text if text.isidentifier() else f"({text})", dims, 0)
        block.block(self.graph)
        return block


class _Real(Block):
    plan: Plan

    def plan_of(self, name: str) -> Dim:
        return self.plan.of[name]

    def grid_start(self, dim: Dim) -> str:
        key = dim.name.removeprefix("lane_") if dim.name.startswith("lane_") else dim.name
        return f"{self.starts[key]} * {self.out.size(dim.name)}" if key in self.starts else "0"


def _tuple(shape: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, shape or (1,)))}{',' if len(shape) < 2 else ''})"


def _in_place(block: Effects) -> dict[int, tuple[int, ...]]:
    """Products whose start is a carried tile that nothing else reads and that they become."""
    readers: dict[int, int] = {}
    finals: set[tuple[int, int]] = set()
    seen: set[int] = set()

    def look(value: Value | None) -> None:
        if value is None:
            return
        readers[value.id] = readers.get(value.id, 0) + 1
        if value.id not in seen:
            seen.add(value.id)
            for operand in value.operands:
                look(operand)

    def visit(inner: Effects) -> None:
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
                    if item.final is not None and item.final.op == "gemm":
                        finals.update((item.final.id, arg.id) for arg in item.final.args[2:] if arg is item.inside)
                visit(effect.body)

    visit(block)
    found: dict[int, tuple[int, ...]] = {}
    for product, start in finals:
        if readers.get(start) == 1 and readers.get(product) == 1:
            found[product] = (start,)
    return found
