"""From one kernel of a sketch to TileLang kernels and how they are launched.

In: a `nodes.Kernel` and its sketch. Out: `Launch`es in order: the text of a `@tilelang.jit` function, and what its kernel takes. The
function has no arguments but the sizes of blocks that are fitted to an extent. Sizes that vary are symbols in the shapes of tensors;
those that no shape is are arguments of the kernel. Loops become grids, and tiles are cut, as in all tile programs
(compiler/lower/tile_programs).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelwright.compiler.backends.tilelang.lines import ElementWriter
from kernelwright.compiler.backends.tilelang.program import Program
from kernelwright.compiler.lower.tile_graph import walk
from kernelwright.compiler.lower.tile_programs.elements import TensorPlace
from kernelwright.compiler.lower.tile_programs.factors import added_in_place
from kernelwright.compiler.lower.tile_programs.grid import LaunchBuilder, launch_bodies
from kernelwright.compiler.lower.tile_programs.lines import Name
from kernelwright.compiler.lower.tile_programs.plan import Dim, Plan
from kernelwright.sketch import nodes
from kernelwright.sketch.index import Poly, Ranges, poly
from kernelwright.target import Capabilities

THREADS = 128
CORE = 32
"""The least side of a tensor-core product: two by two warps of 16 x 16."""


@dataclass(frozen=True)
class Launch:
    """One kernel: its maker with the blocks it is made for (as Python), the tensors and sizes it takes, how many blocks there are."""

    name: str
    text: str
    tensors: tuple[str, ...]
    once: bool
    grid: Poly
    sizes: tuple[str, ...] = ()
    fitted: tuple[str, ...] = ()


def launches(sketch: nodes.Sketch, kernel: nodes.Kernel, taken: set[str], machine: Capabilities) -> list[Launch]:
    """All launches of one kernel of the sketch."""
    return [_Build(sketch, kernel, body, taken, machine).launch() for body in launch_bodies(kernel)]


class _Build(LaunchBuilder):
    """One launch in the making."""

    def launch(self) -> Launch:
        plan, lanes, survey = self.planned()
        for name in survey.dots:
            if name in plan.of and plan.of[name].size < CORE:
                plan.of[name].size = CORE
        block = self._written(plan, lanes)
        grid = self.blocks(self.factors(plan, lanes))
        name = self.name()
        tensors = self._tensors()
        fixed = {key: str(dim.size) for key, dim in block.out.constants.items() if not dim.fitted}
        fitted = {key: _fitted(dim) for key, dim in block.out.constants.items() if dim.fitted}
        shapes, symbols = self._shapes([place for _, place in tensors])
        given = tuple(size for size in self.examples if size not in symbols)
        heads = ", ".join(
            [
                *(
                    f'{place.pointer}: T.Tensor({_tuple(shape)}, "{place.dtype.torch_name}")'
                    for (_, place), shape in zip(tensors, shapes, strict=True)
                ),
                *(f"{size}: T.int32" for size in given),
            ]
        )
        doc = f'    """{self.kernel.doc.strip()}"""\n' if self.kernel.doc else ""
        constants = f"    {', '.join(fixed)} = {', '.join(fixed.values())}\n" if fixed else ""
        constants += "".join(f'    {symbol} = T.dynamic("{symbol}")\n' for symbol in symbols)
        body = [
            *(f"            {line}" for line in block.out.allocations),
            *(block.out.frames[0].lines or ["            pass"]),
        ]
        text = (
            f"@tilelang.jit\ndef {name}({', '.join(fitted)}):\n{doc}{constants}\n    @T.prim_func\n    def main({heads}):\n"
            f"        with T.Kernel({block.out.place(grid, ())}, threads={THREADS}) as pid:\n"
            + "\n".join(body)
            + "\n\n    return main\n"
        )
        names = tuple(tensor for tensor, _ in tensors)
        return Launch(name, text, names, self.kernel.once, grid, given, tuple(fitted.values()))

    def _shapes(self, places: Sequence[TensorPlace]) -> tuple[list[list[str]], tuple[str, ...]]:
        """The shapes of tensors as texts, and their symbols: sizes, or names for extents that are made of several."""
        symbols: dict[str, str] = {}
        for extent in dict.fromkeys(extent for place in places for extent in place.shape if isinstance(extent, Poly)):
            size = isinstance(extent.atom, str)
            symbols[str(extent)] = str(extent) if size else f"extent_{sum(not s.isidentifier() for s in symbols) + 1}"
        return [[symbols.get(str(extent), str(extent)) for extent in place.shape] for place in places], tuple(symbols.values())

    def _tensors(self) -> list[tuple[str, TensorPlace]]:
        mentioned = [node for node in walk(self.inner) if isinstance(node, nodes.Load | nodes.Store)]
        return [(name, self.places[name]) for name in dict.fromkeys(node.tensor for node in mentioned)]

    def tensor_places(self) -> dict[str, TensorPlace]:
        return {
            name: TensorPlace(name if name.isidentifier() else f"t_{name}", place.shape, place.strides, place.dtype)
            for name, place in super().tensor_places().items()
        }

    def _written(self, plan: Plan, lanes: dict[str, int]) -> Program:
        block = Program(ElementWriter(Ranges(dict(self.ranges.known))), self.places)
        block.plan, block.shared, block.flags, block.begins, block.reduced = plan, set(), set(), {}, {}
        block.in_place = added_in_place(self.graph)
        block.shared_tensors = self.shared_tensors()
        out = block.out
        out.taken |= {place.pointer for place in self.places.values()}
        starts: dict[str, str] = {}
        self.add_sizes(out)
        factors = self.factors(plan, lanes)
        below = poly(1)
        for number, (key, trips) in enumerate(reversed(factors.items())):
            quotient = "pid" if below.constant == 1 else out.divided("//", "pid", below)
            text = quotient if number == len(factors) - 1 else out.divided("%", quotient, poly(trips))
            if text == "pid":
                starts[key] = "pid"
            else:
                starts[key] = out.fresh(f"pid_{key}" if key in self.ranges.known else f"pid_{out.label(key)}")
                out.line(f"{starts[key]} = {text}")
            below = below * trips
        block.starts = starts
        for loop in self.loops:
            step, start = loop.step.constant, out.place(loop.start, ())
            text = starts.get(loop.var, "0")
            dims: tuple[str, ...] = ()
            if loop.var in lanes:
                dim = self.add_lane(out, loop, lanes[loop.var])
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


def _tuple(shape: Sequence[str]) -> str:
    return f"({', '.join(shape or ['1'])}{',' if len(shape) < 2 else ''})"


def _fitted(dim: Dim) -> str:
    """A block's size that is fitted to its extent, as Python: the next power of two."""
    return f"1 << (max({dim.extent}, {dim.least}) - 1).bit_length()"
