"""From one kernel of a sketch to Triton kernels and how they are launched.

In: a `nodes.Kernel` and its sketch. Out: `Launch`es in order: the text of a `@triton.jit` function, the tensors it takes, its grid and
options. Loops become grids, and tiles are cut, as in all tile programs (compiler/lower/tile_programs).

Sizes that vary are arguments, and Triton compiles nothing anew for one: of a kernel there are two forms, for rows that begin at multiples
of 16 elements (wide loads) and for all others, and each again in 64 bits for tensors that need them.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.compiler.backends.triton.lines import TensorWriter
from kernelwright.compiler.backends.triton.program import Program
from kernelwright.compiler.lower.tile_programs import plan as planning
from kernelwright.compiler.lower.tile_programs.factors import added_in_place
from kernelwright.compiler.lower.tile_programs.grid import LaunchBuilder, launch_bodies
from kernelwright.compiler.lower.tile_programs.lines import Name
from kernelwright.compiler.lower.tile_programs.plan import Dim, Extent, Plan, Survey
from kernelwright.sketch import nodes
from kernelwright.sketch.index import Poly, Ranges
from kernelwright.target import Capabilities

VECTOR = 16
"""Elements whose multiples are good places for rows to begin at: what a thread loads at once, in the narrowest type."""
GROUP = 8
"""Rows of tiles that programs work on together."""


@dataclass(frozen=True)
class Launch:
    """One kernel function and its call. `sizes` are those that vary, `aligned` those of which strides are made."""

    name: str
    text: str
    tensors: tuple[str, ...]
    grid: Poly
    warps: int
    stages: int
    once: bool
    sizes: tuple[str, ...] = ()
    aligned: tuple[str, ...] = ()
    constants: tuple[tuple[str, str], ...] = ()


def launches(sketch: nodes.Sketch, kernel: nodes.Kernel, taken: set[str], machine: Capabilities) -> list[Launch]:
    """All launches of one kernel of the sketch."""
    return [_Build(sketch, kernel, body, taken, machine).launch() for body in launch_bodies(kernel)]


class _Build(LaunchBuilder):
    """One launch in the making."""

    def launch(self) -> Launch:
        plan, lanes, survey = self.planned()
        body, largest, dots, constants = self._write(plan, lanes)
        grid = self.blocks(self.factors(plan, lanes))
        name = self.name()
        used, sizes = self.used(), tuple(self.examples)
        aligned = self.aligned()
        special = [*constants, *(["WIDE"] if sizes else []), *(["ALIGNED"] if aligned else [])]
        parameters = [*(f"{tensor}_ptr" for tensor in used), *sizes, *(f"{constant}: tl.constexpr" for constant in special)]
        varying = f"(do_not_specialize={list(sizes)!r})".replace("'", '"') if sizes else ""
        head = f"@triton.jit{varying}\ndef {name}({', '.join(parameters)}):\n"
        doc = f'    """{self.kernel.doc.strip()}"""\n' if self.kernel.doc else ""
        warps = self.warps(plan, survey) if dots else 4 if largest <= 2048 else 8 if largest <= 8192 else 16
        text = head + doc + "\n".join(body) + "\n"
        given = tuple((constant, _block(dim)) for constant, dim in constants.items())
        return Launch(name, text, used, grid, warps, 3 if dots else 2, self.kernel.once, sizes, aligned, given)

    def aligned(self) -> tuple[str, ...]:
        """Sizes that are multiples of 16 in the form for aligned rows: of these are the strides that are not such by themselves."""
        used = self.used()
        strides = [
            stride
            for name, place in self.places.items()
            if self.root[name] in used
            for stride in place.strides
            if isinstance(stride, Poly) and not planning.SIZES.divisible(stride, VECTOR)
        ]
        return tuple(name for name in self.examples if any(name in stride.names for stride in strides))

    @staticmethod
    def warps(plan: Plan, survey: Survey) -> int:
        """Of a program with products: as many as leave each thread 128 sums on matrix units, 32 where it multiplies by itself, which
        needs registers for operands too."""
        most = 1
        for block in survey.blocks:
            dims = {plan.of[name].name: plan.of[name].size for name in block if name in survey.dots}
            each = 32 if any(name in survey.exact for name in block) else 128
            sums = 1
            for size in dims.values():
                sums *= size
            most = max(most, sums // (32 * each))
        return min(8, max(4, planning.power(most)))

    def _write(self, plan: Plan, lanes: dict[str, int]) -> tuple[list[str], int, bool, dict[str, Dim]]:
        program = Program(TensorWriter(Ranges(dict(self.ranges.known))), self.places)
        program.plan = plan
        program.shared_tensors = self.shared_tensors()
        self._enter(program, lanes, self.factors(plan, lanes))
        program.block(self.graph)
        lanes_size = 1
        for size in lanes.values():
            lanes_size *= size
        body = program.out.frames[0].lines or ["    pass"]
        dots = any("tl.dot(" in line for line in body)
        return body, plan.largest * lanes_size, dots, program.out.constants

    def _enter(self, program: Program, lanes: dict[str, int], factors: dict[str, Extent]) -> None:
        """Program ids, parallel variables and lanes."""
        out = program.out
        out.taken |= {f"{name}_ptr" for name in self.places}
        starts: dict[str, str] = {}
        program.in_place = added_in_place(self.graph)
        wide = any(
            volume is not None and volume >= 2**31 for volume in (_volume(place.shape) for place in self.places.values())
        )
        self.add_sizes(out)
        for name in self.examples:
            out.line(f"{name} = tl.cast({name}, tl.int64 if WIDE else tl.int32)")
        if aligned := self.aligned():
            out.line("if ALIGNED:")
            for name in aligned:  # which says so to the compiler
                out.line(f"    {name} = {name} // {VECTOR} * {VECTOR}")
        if factors:
            kind = ".to(tl.int64)" if wide else ".to(tl.int64 if WIDE else tl.int32)" if self.examples else ""
            out.line(f"pid = tl.program_id(0){kind}")
            starts = self._starts(out, factors)
        for loop in self.loops:
            name = out.fresh(loop.var) if loop.var in lanes else ""
            if loop.var in lanes:
                dim = self.add_lane(out, loop, lanes[loop.var])
                place, size = out.fresh(f"offs_{out.label(dim.name)}"), out.size(dim.name)
                base = f"{starts[loop.var]} * {size} + " if loop.var in starts else ""
                out.line(f"{place} = {base}tl.arange(0, {size})")
                out.names[dim.name] = Name(place, (dim.name,), 0)
                program.lanes = (*program.lanes, dim.name)
                text = place
            else:
                text = starts.get(loop.var, "0")
            step, start = loop.step.constant, out.place(loop.start, ())
            if loop.var not in lanes and start == "0":
                out.tiles[loop.var] = text, step
            text = text if step == 1 else f"{text} * {step}"
            text = text if start == "0" else f"{start} + {text}"
            if loop.var in lanes:
                out.line(f"{name} = {text}")
            else:
                name = out.later(loop.var, text)
            out.names[loop.var] = Name(name, (f"lane_{loop.var}",) if loop.var in lanes else (), 0)
            if loop.var in lanes and loop.var in starts and start == "0" and step is not None:
                out.spread[loop.var] = (starts[loop.var], size, step)
        program.starts = starts

    def _starts(self, out: TensorWriter, factors: dict[str, Extent]) -> dict[str, str]:
        """The lines that take a program's number apart, the last factor fastest; the tiles of a product in groups of rows."""
        starts: dict[str, str] = {}
        left = dict(factors)
        pair = self.product_loops(factors)
        if pair is not None:
            high, wide = (str(factors[var]) if isinstance(factors[var], int) else "" for var in pair)
            names = {var: out.fresh(f"pid_{axis}") for var, axis in zip(pair, "mn", strict=True)}
            if high and wide and int(high) > 1 < int(wide):
                tile = "pid"
                if len(left) > 2:
                    tile = out.fresh("tile")
                    out.line(f"{tile} = pid % {int(high) * int(wide)}")
                    out.line(f"pid = pid // {int(high) * int(wide)}")
                starts |= names
                left = {key: trips for key, trips in left.items() if key not in pair}
                self._grouped(out, tile, names[pair[0]], names[pair[1]], int(high), int(wide))
        for key, trips in reversed(left.items()):
            if key == next(iter(left)):
                starts[key] = "pid"
                continue
            starts[key] = out.fresh(f"pid_{key}" if key in self.ranges.known else f"pid_{out.label(key)}")
            count = str(trips) if isinstance(trips, int) else f"({out.place(trips, ())})"
            out.line(f"{starts[key]} = pid % {count}")
            out.line(f"pid = pid // {count}")
        return starts

    @staticmethod
    def _grouped(out: TensorWriter, tile: str, rows: str, columns: str, high: int, wide: int) -> None:
        """Numbers of a tile along rows and columns: programs that run at a time work on a few rows of tiles, so that what they read of
        both operands stays in the cache."""
        if high < GROUP:
            out.line(f"{rows} = {tile} % {high}")
            out.line(f"{columns} = {tile} // {high}")
            return
        out.constants["GROUP_M"] = Dim("group", GROUP, GROUP)
        group, within = out.fresh("group"), out.fresh("within")
        out.line(f"{group} = {tile} // (GROUP_M * {wide})")
        out.line(f"{within} = {tile} % (GROUP_M * {wide})")
        size = "GROUP_M"
        if high % GROUP:
            size = out.fresh("group_rows")
            out.line(f"{size} = tl.minimum({high} - {group} * GROUP_M, GROUP_M)")
        out.line(f"{rows} = {group} * GROUP_M + {within} % {size}")
        out.line(f"{columns} = {within} // {size}")


def _volume(shape: tuple[Extent, ...]) -> int | None:
    """Elements of a tensor; None where that varies."""
    total = 1
    for extent in shape:
        if not isinstance(extent, int):
            return None
        total *= extent
    return total


def _block(dim: Dim) -> str:
    """A block's size, as Python; one that is fitted to its extent is the next power of two."""
    return f"triton.next_power_of_2(max({dim.extent}, {dim.least}))" if dim.fitted else str(dim.size)
