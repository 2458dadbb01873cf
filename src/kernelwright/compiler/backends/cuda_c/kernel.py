"""One sketch as CUDA source: `__global__` functions, and C entry points that launch them in order.

In: a Sketch. Out: `Source` (the text, and the entry points with the tensors and dynamic sizes they take). A parallel loop at the top
of a kernel is one launch, an iteration is a block; what stands between such loops is a launch of a single block.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelwright.compiler.backends.cuda_c import product_kernel
from kernelwright.compiler.backends.cuda_c.prelude_sections import prelude, scratch_memory
from kernelwright.compiler.backends.cuda_c.schedule import BlockScheduler
from kernelwright.compiler.lower.c_family.elements import TensorPlace
from kernelwright.compiler.lower.c_family.materialize import Usage, decide
from kernelwright.compiler.lower.c_family.nest import KernelContext
from kernelwright.compiler.lower.c_family.schedule import bound_names, region_shape
from kernelwright.compiler.lower.c_family.source import GENERATED, Entry, KernelTensors, Source, c_name, entry_point, indent
from kernelwright.compiler.lower.c_types import STORED
from kernelwright.compiler.lower.tile_graph import GraphBuilder
from kernelwright.compiler.lower.tile_values import (
    MATERIALIZED,
    Block,
    CommentEffect,
    Effect,
    LoopEffect,
    MaterializeEffect,
    StoreEffect,
    Value,
    made_of,
)
from kernelwright.sketch import nodes
from kernelwright.sketch.index import Poly, combine, poly, to_c

THREADS = 256
FLAT_ELEMENTS = 1024
"""Elements of a store at the top of a kernel that one block takes."""


@dataclass
class Launch:
    """One `__global__` function: its text, how many blocks and threads, and bytes of scratch memory for each block."""

    name: str
    text: str
    blocks: Poly
    threads: int
    scratch: Poly = field(default_factory=Poly)


def source(sketch: nodes.Sketch) -> Source:
    """The whole CUDA source of a sketch."""
    functions: list[str] = []
    entries: list[Entry | nodes.LibraryCall] = []
    group: list[tuple[str, tuple[str, ...], nodes.Kernel]] = []
    dynamic = tuple(size.name for size in sketch.sizes if size.dynamic)

    def flush() -> None:
        if group:
            sizes = () if group[0][2].once else dynamic  # what is made once depends on no size
            entry, text = _entry(sketch, f"run_{len(entries)}", group, sizes)
            entries.append(entry)
            functions.append(text)
            group.clear()

    for step in sketch.steps:
        if isinstance(step, nodes.LibraryCall):
            flush()
            entries.append(step)
            continue
        if group and group[-1][2].once != step.once:
            flush()
        writer = KernelWriter(sketch, step, () if step.once else dynamic)
        functions.append(writer.write())
        group.append((f"launch_{c_name(step.name)}", writer.used, step))
    flush()
    body = "\n".join(functions)
    headers = (
        "#include <cuda_runtime.h>\n#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cmath>\n#include <cstdint>\n"
    )
    if "wmma::" in body:
        headers += "#include <mma.h>\n"
    host = scratch_memory() if "scratch_memory(" in body else ""
    return Source(f"{headers}\n{prelude(body)}{host}\n{body}", tuple(entries))


class KernelWriter:
    """Writes one kernel of a sketch. A related language (OpenCL) replaces how a block works and how a launch is written."""

    scheduler: type[BlockScheduler] = BlockScheduler
    product: type[product_kernel.Writer] = product_kernel.Writer
    meeting_bytes = 256
    """Shared memory in which the results of warps meet."""

    def __init__(self, sketch: nodes.Sketch, kernel: nodes.Kernel, dynamic: tuple[str, ...]) -> None:
        self.sketch, self.kernel, self.dynamic = sketch, kernel, dynamic
        self.tensors = KernelTensors(sketch, kernel, dynamic)
        self.used, self.declared = self.tensors.used, self.tensors.declared
        self.written, self.read = self.tensors.written, self.tensors.read
        self.places = self.tensors.places
        volumes = [_volume(place) for place in self.places.values()]
        # positions that an int cannot hold
        self.position = "int" if all(volume is not None and volume < 2**31 for volume in volumes) else "int64_t"
        self.launches: list[Launch] = []

    def write(self) -> str:
        """All launches and a host function `launch_<name>` that makes them."""
        count = self.launch_count()
        for number in range(count):
            # graph and storages are made anew for each launch: values are computed where they are needed
            builder, block, usage = self.graph()
            part = self.parts(block)[number] if self.splits(block) else list(block.effects)
            name = f"{c_name(self.kernel.name)}_{number + 1}" if count > 1 else c_name(self.kernel.name)
            self.launches.append(self.launch(builder, usage, part, name))
        head = f"// {self.kernel.doc}\n" if self.kernel.doc else ""
        return head + "\n".join(launch.text for launch in self.launches) + "\n" + self.host()

    def graph(self) -> tuple[GraphBuilder, Block, Usage]:
        builder, self.axis_names = self.tensors.builder(set(GENERATED))
        block = builder.build()
        return builder, block, decide(block)

    # ------------------------------------------------------------ what is one launch

    def launch_count(self) -> int:
        _, block, _ = self.graph()
        return len(self.parts(block)) if self.splits(block) else 1

    def splits(self, block: Block) -> bool:
        """True if the top of the kernel can be cut into launches: no part reads a carried or kept tile of another."""
        parts = self.parts(block)
        for part in parts:
            own = {id(c.storage) for e in part if isinstance(e, LoopEffect) for c in e.carried}
            for value in _needed(part):
                if value.op == "stored" and value.home is block and id(value.storage) not in own:
                    return False
                if (
                    value.kept
                    and value.op == "load"
                    and value.home is block
                    and not any(isinstance(e, MaterializeEffect) and e.value is value for e in part)
                ):
                    return False
        return True

    @staticmethod
    def parts(block: Block) -> list[list[Effect]]:
        parts: list[list[Effect]] = []
        loose: list[Effect] = []
        for effect in block.effects:
            if (isinstance(effect, LoopEffect) and effect.kind == "parallel" and not effect.carried) or (
                isinstance(effect, StoreEffect)
                and _flat(effect)
                and not any(isinstance(e, MaterializeEffect | LoopEffect) for e in loose)
            ):
                if any(not isinstance(e, CommentEffect) for e in loose):
                    parts.append(loose)
                parts.append([effect])
                loose = []
            else:
                loose.append(effect)
        if any(not isinstance(e, CommentEffect) for e in loose):
            parts.append(loose)
        return parts or [[]]

    # ------------------------------------------------------------ one launch

    def launch(self, builder: GraphBuilder, usage: Usage, part: list[Effect], name: str) -> Launch:
        context = KernelContext(self.places, builder.ranges, set(builder.storage_names), self.axis_names)
        lines: list[str] = []
        blocks = poly(1)
        inside = Block(None, part)
        effects = [e for e in part if not isinstance(e, CommentEffect)]
        first = effects[0] if effects else None
        if len(effects) == 1 and isinstance(first, LoopEffect) and first.kind == "parallel" and not first.carried:
            chain = self.chain(first)
            lines, blocks = self.positions(chain)
            inside = chain[-1].body
        elif len(effects) == 1 and isinstance(first, StoreEffect) and _flat(first):
            return self.flat(builder, usage, context, first, name)
        found = product_kernel.find(inside)
        if found is not None:
            writer = self.product(context, found, self.position, builder.fresh)
            cut = writer.write()
            if cut is not None:
                high, wide = cut
                tiles = f"const int column_block = rest % {wide}, row_block = rest / {wide} % {high};"
                head = ["int64_t rest = blockIdx.x;", tiles, f"rest /= {high * wide};", *lines]
                return self.finished(name, [*head, *writer.out], blocks * (high * wide), product_kernel.THREADS, poly(0))
        threads = self.threads(inside)
        scheduler = self.scheduler(builder, usage, context, threads=threads, position=self.position)
        scheduler.watched = {c_name(n) for n in self.written & self.read}
        scheduler.block(inside)
        body = scheduler.out
        if scheduler.meets:
            body = [f"__shared__ __align__(16) unsigned char meeting[{self.meeting_bytes}];", *body]
        if scheduler.scratch_bytes.terms:
            body = [f"char* const scratch_of_block = scratch + blockIdx.x * int64_t({to_c(scheduler.scratch_bytes)});", *body]
        head = ["int64_t rest = blockIdx.x;", *lines] if lines else []
        return self.finished(name, [*head, *body], blocks, threads, scheduler.scratch_bytes)

    def chain(self, loop: LoopEffect) -> list[LoopEffect]:
        """Loops that are nothing but parallel, one inside the other."""
        chain = [loop]
        while True:
            inner = [e for e in chain[-1].body.effects if not isinstance(e, CommentEffect)]
            if len(inner) != 1 or not isinstance(inner[0], LoopEffect) or inner[0].kind != "parallel" or inner[0].carried:
                return chain
            if any(item.var in bound_names(inner[0]) for item in chain):
                return chain
            chain.append(inner[0])

    def positions(self, chain: list[LoopEffect]) -> tuple[list[str], Poly]:
        """Loop variables from the block's number, the innermost loop fastest; and how many blocks there are."""
        lines: list[str] = []
        blocks = poly(1)
        for loop in reversed(chain):
            trips = combine("//", loop.stop - loop.start + loop.step - 1, loop.step)
            step = f"{to_c(loop.start)} + int(rest % ({to_c(trips)})) * ({to_c(loop.step)})"
            lines += [f"const {self.position} {loop.var} = {step};", f"rest /= {to_c(trips)};"]
            blocks = blocks * trips
        return lines, blocks

    def threads(self, inside: Block) -> int:
        """Threads of a block: as many as the largest tile has use for."""
        most = 1
        for value in _needed(inside.effects):
            size = 1
            for extent in value.shape:
                size *= extent.constant or 256
            most = max(most, size)
        for effect in inside.effects:
            if isinstance(effect, StoreEffect):
                size = 1
                for extent in region_shape(effect):
                    size *= extent.constant or 256
                most = max(most, size)
        threads = 32
        while threads < THREADS and threads < most:
            threads *= 2
        return threads

    def flat(self, builder: GraphBuilder, usage: Usage, context: KernelContext, effect: StoreEffect, name: str) -> Launch:
        """A store at the top of a kernel: many blocks, each some of the elements."""
        scheduler = self.scheduler(builder, usage, context, threads=THREADS, position=self.position)
        scheduler.block(Block(None, [effect]))
        total = poly(1)
        for extent in region_shape(effect):
            total = total * extent
        body = [line.replace("e = threadIdx.x;", f"e = blockIdx.x * {THREADS} + threadIdx.x;") for line in scheduler.out]
        body = [line.replace(f"e += {THREADS})", f"e += gridDim.x * {THREADS})") for line in body]
        blocks = combine("//", total + FLAT_ELEMENTS - 1, poly(FLAT_ELEMENTS)) if total.constant != 1 else poly(1)
        return self.finished(name, body, blocks, THREADS, scheduler.scratch_bytes)

    def finished(self, name: str, body: list[str], blocks: Poly, threads: int, scratch: Poly) -> Launch:
        parameters = [*self.parameters(), *(["char* scratch"] if scratch.terms else [])]
        # one block a multiprocessor is enough: without the 1, ptxas 13 spills in order to fit eight
        head = f"__global__ void __launch_bounds__({threads}, 1) {name}({', '.join(parameters)}) {{\n"
        return Launch(name, head + indent(body) + "}\n", blocks, threads, scratch)

    def parameters(self) -> list[str]:
        pointers = [
            f"{'' if name in self.written else 'const '}{STORED[self.declared[name].dtype]}* __restrict__ {c_name(name)}"
            for name in self.used
        ]
        return pointers + [f"int64_t {size}" for size in self.dynamic]

    def host(self) -> str:
        lines: list[str] = []
        arguments = ", ".join([*(c_name(name) for name in self.used), *self.dynamic])
        for launch in self.launches:
            blocks = to_c(launch.blocks)
            given = arguments
            if launch.scratch.terms:
                given = f"{arguments}, scratch_memory(size_t({blocks}) * ({to_c(launch.scratch)}))"
            call = f"{launch.name}<<<(unsigned int)({blocks}), {launch.threads}>>>({given});"
            lines.append(f"  {call}\n" if launch.blocks.constant is not None else f"  if ({blocks} > 0) {call}\n")
        parameters = ", ".join(self.parameters())
        return f"static void launch_{c_name(self.kernel.name)}({parameters}) {{\n{''.join(lines)}}}\n"


def _entry(
    sketch: nodes.Sketch, name: str, group: list[tuple[str, tuple[str, ...], nodes.Kernel]], dynamic: tuple[str, ...]
) -> tuple[Entry, str]:
    """An exported function that launches a group of kernels; Python crosses into C once for all of them."""
    tensors = tuple(dict.fromkeys(t for _, used, _ in group for t in used))
    entry = Entry(name, tensors, dynamic, group[0][2].once)
    calls = [f"  {function}({', '.join([*map(c_name, used), *dynamic])});\n" for function, used, _ in group]
    return entry, entry_point(sketch, entry, calls)


def _flat(effect: StoreEffect) -> bool:
    """True for a store whose elements are computed from tensors alone."""
    return all(v.op not in MATERIALIZED and v.op not in ("stored", "take") and not v.kept for v in _needed([effect]))


def _needed(effects: list[Effect]) -> set[Value]:
    return made_of(Block(None, effects).used())


def _volume(place: TensorPlace) -> int | None:
    """Elements of a tensor, if that is known."""
    size = poly(1)
    for extent in place.shape:
        size = size * extent
    return size.constant
