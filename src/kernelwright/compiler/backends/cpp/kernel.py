"""One sketch as C++ source: a function for each kernel, and entry points that run them in order.

In: a Sketch. Out: `Source`: the text, and for each entry point the names of the tensors and dynamic sizes it takes, in order.
Sizes that are not dynamic are numbers in the text: loops have known lengths and the compiler knows what divides what.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from kernelwright.compiler.backends.cpp.codegen_options import CodegenOptions
from kernelwright.compiler.backends.cpp.nests.loops import CpuContext
from kernelwright.compiler.backends.cpp.prelude_sections import prelude
from kernelwright.compiler.backends.cpp.products import bf16, micro_kernel
from kernelwright.compiler.backends.cpp.schedule import Scheduler
from kernelwright.compiler.lower.c_family.materialize import decide
from kernelwright.compiler.lower.c_family.source import (
    Entry,
    KernelTensors,
    Source,
    c_name,
    entry_point,
    indent,
    root,
    sizes_of,
)
from kernelwright.compiler.lower.c_types import STORED
from kernelwright.compiler.lower.tile_graph import walk
from kernelwright.sketch import nodes
from kernelwright.sketch.anchor import anchored
from kernelwright.sketch.index import from_index, poly, to_c
from kernelwright.sketch.structure import StructuralKey, StructuralKeys

DEFAULT = CodegenOptions()

MOST_ARGUMENTS = 200
"""Tensors that an entry point takes one by one; ctypes refuses more than 1024 arguments, and large networks have more."""

MANY_STEPS = 32
"""From this many steps on, kernels that work elsewhere in the same tensors share a function (an unrolled loop has hundreds)."""


@dataclass(frozen=True)
class Call:
    """A call of a kernel's function: tensors with the elements to which their pointers are moved. `in_cache` is the function for sizes
    at which the outputs are too small to be written past the caches, where `guard` (C) does not hold."""

    function: str
    tensors: tuple[tuple[str, int], ...]
    once: bool
    in_cache: str = ""
    guard: str = ""

    def text(self, dynamic: tuple[str, ...]) -> str:
        given = [f"{c_name(t)} + {offset}" if offset else c_name(t) for t, offset in self.tensors]
        arguments = ", ".join([*given, *dynamic])
        if self.in_cache:
            return f"  if ({self.guard}) {self.function}({arguments});\n  else {self.in_cache}({arguments});\n"
        return f"  {self.function}({arguments});\n"


def source(sketch: nodes.Sketch, *, options: CodegenOptions = DEFAULT) -> Source:
    """The whole C++ source of a sketch."""
    functions: list[str] = []
    entries: list[Entry | nodes.LibraryCall] = []
    group: list[Call] = []
    dynamic = tuple(size.name for size in sketch.sizes if size.dynamic)
    streamed, guard = _streamed(sketch, options.stream_bytes)
    declared = {t.name: t for t in sketch.tensors}
    keys = StructuralKeys(sketch, frozenset(streamed))
    written: dict[StructuralKey, tuple[str, tuple[int, ...], str]] = {}
    alive: dict[str, tuple[int, int]] = {}

    def flush() -> None:
        if group:
            sizes = () if group[0].once else dynamic  # what is made once depends on no size
            entry, text = _entry(sketch, f"run_{len(entries)}", group, sizes, any("stream(" in f for f in functions))
            entries.append(entry)
            functions.append(text)
            group.clear()

    for number, step in enumerate(sketch.steps):
        if isinstance(step, nodes.LibraryCall):
            flush()
            entries.append(step)
            continue
        if group and group[-1].once != step.once:
            flush()
        kernel, seen, offsets = anchored(step, declared) if len(sketch.steps) >= MANY_STEPS else (step, {}, {})
        structure, tensors = keys.of(kernel, seen)
        if structure not in written:  # blocks of a network repeat: one function, called with other tensors
            own = replace(sketch, tensors=tuple(seen.get(t.name, t) for t in sketch.tensors)) if seen else sketch
            text, used = _function(own, kernel, () if step.once else dynamic, streamed, options)
            functions.append(text)
            in_cache = ""
            if guard and not step.once and "stream" in text:
                small = replace(kernel, name=f"{step.name}_in_cache", doc="")
                functions.append(_function(own, small, dynamic, set(), options)[0])
                in_cache = c_name(small.name)
            written[structure] = (c_name(step.name), tuple(tensors.index(name) for name in used), in_cache)
        name, places, in_cache = written[structure]
        alive |= {tensor: (alive.get(tensor, (number,))[0], number) for tensor in tensors}
        moved = {keys.root(view): offset for view, offset in offsets.items()}
        group.append(Call(name, tuple((tensors[k], moved.get(tensors[k], 0)) for k in places), step.once, in_cache, guard))
    flush()
    body = "\n".join(functions)
    headers = "#include <cmath>\n#include <cstdint>\n#include <cstdlib>\n"
    if "std::stable_sort" in body:
        headers += "#include <algorithm>\n"
    products = micro_kernel.prelude(options.registers, options.unroll) if re.search("gemm_(tile|packing)<", body) else ""
    products += bf16.prelude() if "gemm_pairs(" in body else ""
    products += micro_kernel.packing() if re.search("pack_rows|gemm_packing|pack_blocks", body) else ""
    return Source(f"{headers}\n{prelude(body + products)}{products}\n{body}", tuple(entries), alive)


def _function(
    sketch: nodes.Sketch, kernel: nodes.Kernel, dynamic: tuple[str, ...], streamed: set[str], options: CodegenOptions
) -> tuple[str, tuple[str, ...]]:
    """One kernel as a static C function, and the tensors it takes."""
    tensors = KernelTensors(sketch, kernel, dynamic)
    builder, axis_names = tensors.builder(set())
    block = builder.build()
    usage = decide(block, options.keep_cost)
    context = CpuContext(
        tensors.places,
        builder.ranges,
        set(builder.storage_names),
        axis_names,
        streamed={c_name(n) for n in streamed},
        options=options,
    )
    scheduler = Scheduler(builder, usage, context)
    products = [v for v in usage.values if v.op == "gemm"]
    if products:
        scheduler.pads_rows = min(2, *(v.shape[1].constant or 2 for v in products))
    scheduler.block(block)
    parameters = [
        f"{'' if name in tensors.written else 'const '}{STORED[tensors.declared[name].dtype]}* __restrict {c_name(name)}"
        for name in tensors.used
    ] + [f"int64_t {size}" for size in dynamic]
    head = f"// {kernel.doc}\n" if kernel.doc else ""
    text = f"{head}static void {c_name(kernel.name)}({', '.join(parameters)}) {{\n" + indent(scheduler.out) + "}\n"
    return text, tensors.used


def _streamed(sketch: nodes.Sketch, least: int) -> tuple[set[str], str]:
    """Large outputs that no later step reads, where the whole call touches at least so many bytes, and the test of that in C where it
    depends on dynamic sizes: then the example says whether both ways are worth having."""
    sizes = sizes_of(sketch)
    example = {s.name: poly(s.value) for s in sketch.sizes if s.dynamic}
    touched: dict[str, int] = {}
    total = poly(0)
    for tensor in sketch.tensors:
        size = poly(tensor.dtype.size)
        for extent in tensor.shape:
            size = size * from_index(extent, sizes)
        if tensor.role != "view":
            touched[tensor.name] = size.substitute(example).constant or 0
            total = total + size
    outputs = {t.name for t in sketch.tensors if t.role == "output" and touched[t.name] >= least // 4}
    large = outputs if sum(touched.values()) >= least else set()
    for step in sketch.steps if large else ():
        if isinstance(step, nodes.LibraryCall):
            large -= {root(sketch, name) for name in step.inputs}
        else:
            large -= {root(sketch, n.tensor) for n in walk(step.body) if isinstance(n, nodes.Load)}
    return large, f"{to_c(total)} >= {least}" if large and total.constant is None else ""


def _entry(
    sketch: nodes.Sketch,
    name: str,
    group: list[Call],
    dynamic: tuple[str, ...],
    streams: bool,
) -> tuple[Entry, str]:
    """An exported function that runs a group of kernels; Python crosses into C once for all of them."""
    tensors = tuple(dict.fromkeys(t for call in group for t, _ in call.tensors))
    entry = Entry(name, tensors, dynamic, group[0].once, by_array=len(tensors) > MOST_ARGUMENTS)
    calls = [call.text(dynamic) for call in group]
    return entry, entry_point(sketch, entry, [*calls, *(["  streams_end();\n"] if streams else [])])
