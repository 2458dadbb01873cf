"""Reductions of a nest: along the innermost loop in several independent lanes, over outer loops a row of accumulators at a time.

In: a `LoopNest` whose loops and scalars are made. Out: its lines. Lanes are combined pairwise at the end, which is as exact as pairwise
summation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelwright.compiler.backends.cpp.nests.fetch import fetches
from kernelwright.compiler.backends.cpp.nests.loops import Loop
from kernelwright.compiler.backends.cpp.nests.vectors import VectorBody, begin_lanes, end_lanes
from kernelwright.compiler.lower import c_expressions
from kernelwright.compiler.lower.c_family.materialize import cost_of
from kernelwright.compiler.lower.c_family.nest import Reduce
from kernelwright.compiler.lower.c_types import COMPUTED, literal
from kernelwright.core.operations import neutral
from kernelwright.sketch.index import to_c

if TYPE_CHECKING:
    from kernelwright.compiler.backends.cpp.nests.loop_nest import LoopNest

LIGHT_COST = 6.0
"""A single sum of something this cheap is bound by the additions' latency and takes twice the lanes."""


# ---------------------------------------------------------------- reductions along the innermost loop


def write_rows(nest: LoopNest) -> None:
    """Accumulates in lanes: element c goes to lane c % lanes, and the lanes are combined at the end."""
    reductions = [r for r in nest.outputs if isinstance(r, Reduce)]
    free = [loop for loop in nest.loops if loop.axis not in nest.reduced()]
    bound = [loop for loop in nest.loops if loop.axis in nest.reduced()]
    inner = bound[-1]
    if inner is nest.loops[-1] and (vectors := VectorBody(nest)).fits():
        _write_vector_rows(nest, vectors, free, bound)
        return
    widest = max(r.value.dtype.size for r in reductions)
    light = len(nest.outputs) == 1 and cost_of(reductions[0].value) <= LIGHT_COST
    lanes = max(4, (2 if light else 1) * nest.context.options.lane_bytes // max(widest, 2))
    extent = inner.extent.constant
    if extent is not None:
        while lanes > 1 and lanes > extent:
            lanes //= 2
    variants = {k: nest.finish(interior=k, lane="lane") for k in ((False, True) if nest.elems.borders else (True,))}
    tail = nest.finish(interior=False, lane=f"{inner.var} % {lanes}" if lanes > 1 else "0")
    opened = nest.open_outer(free)
    for reduction in reductions:
        kind = COMPUTED[reduction.value.dtype]
        start = literal(neutral(reduction.op, reduction.value.dtype), reduction.value.dtype)
        nest.out.append(f"{kind} {reduction.storage.name}_lanes[{lanes}];")
        nest.out.append(f"for (int lane = 0; lane < {lanes}; ++lane) {reduction.storage.name}_lanes[lane] = {start};")
    for k, loop in enumerate(bound[:-1]):
        nest.out.append(nest.head(loop) + " {")
        nest.out += nest.lines.lines[len(free) + k + 1]
    _lane_loops(nest, inner, lanes, variants, tail)
    nest.out += ["}"] * len(bound[:-1])
    _combine_lanes(nest, reductions, lanes)
    nest.out += ["}"] * opened


def _write_vector_rows(nest: LoopNest, vectors: VectorBody, free: list[Loop], bound: list[Loop]) -> None:
    """Accumulates in vectors; what fills none goes to a lane of its own vector."""
    reductions = [r for r in nest.outputs if isinstance(r, Reduce)]
    inner = bound[-1]
    light = len(nest.outputs) == 1 and cost_of(reductions[0].value) <= LIGHT_COST
    abreast = vectors.abreast((2 if light else 1) * nest.context.options.abreast)
    lanes = {reduction: nest.name(f"{reduction.storage.name}_lanes") for reduction in reductions}
    tail = nest.finish(
        interior=True, lanes={reduction: f"{name}_rest[{inner.var} % WIDE]" for reduction, name in lanes.items()}
    )
    lines = vectors.write("0", to_c(inner.extent), tail, None, lanes, abreast)
    opened = nest.open_outer(free)
    for reduction, name in lanes.items():
        nest.out += begin_lanes(reduction, name, abreast)
    for k, loop in enumerate(bound[:-1]):
        nest.out.append(nest.head(loop) + " {")
        nest.out += nest.lines.lines[len(free) + k + 1]
    nest.out += ["{", *lines, "}", *["}"] * len(bound[:-1])]
    for reduction, name in lanes.items():
        nest.out += end_lanes(reduction, name, abreast)
        nest.out.append(f"{nest.slot(reduction.storage, nest.reduced_index(reduction))} = {name}_rest[0];")
    nest.out += ["}"] * opened


def _lane_loops(nest: LoopNest, inner: Loop, lanes: int, variants: dict[bool, list[str]], tail: list[str]) -> None:
    var, extent = inner.var, to_c(inner.extent)
    guarded = nest.elems.borders and nest.interior("0", extent)
    nest.out.append("{")
    if lanes == 1:
        nest.out += [f"for (int64_t {var} = 0; {var} < {extent}; ++{var}) {{", *tail, "}", "}"]
        return
    whole = f"({extent}) / {lanes} * {lanes}" if inner.extent.constant is None else str(inner.extent.constant // lanes * lanes)
    nest.out.append(f"for (int64_t block = 0; block < {whole}; block += {lanes}) {{")
    nest.out += fetches(nest, inner, "block", str(lanes))
    body = [
        "#pragma omp simd",
        f"for (int64_t lane = 0; lane < {lanes}; ++lane) {{",
        f"const int64_t {var} = block + lane;",
    ]
    if guarded:
        begin, end = guarded
        nest.out += [f"if (block >= {begin} && block + {lanes} <= {end}) {{", *body, *variants[True], "}", "} else {"]
        nest.out += [*body, *variants[False], "}", "}"]
    else:
        nest.out += [*body, *variants[not nest.elems.borders], "}"]
    nest.out.append("}")
    if inner.extent.constant is None or inner.extent.constant % lanes:
        nest.out += [f"for (int64_t {var} = {whole}; {var} < {extent}; ++{var}) {{", *tail, "}"]
    nest.out.append("}")


def _combine_lanes(nest: LoopNest, reductions: list[Reduce], lanes: int) -> None:
    """Halves the lanes until one is left: as exact as pairwise summation, and short."""
    if lanes > 1:
        # unrolled: with constant halves the lanes never leave the registers
        nest.out += [
            f"#pragma GCC unroll 8\nfor (int half = {lanes // 2}; half > 0; half /= 2)",
            "for (int lane = 0; lane < half; ++lane) {",
        ]
        for reduction in reductions:
            name = f"{reduction.storage.name}_lanes"
            step = c_expressions.reduction(reduction.op, f"{name}[lane]", f"{name}[lane + half]", reduction.value.dtype)
            nest.out.append(f"{name}[lane] = {step};")
        nest.out.append("}")
    for reduction in reductions:
        slot = nest.slot(reduction.storage, nest.reduced_index(reduction))
        nest.out.append(f"{slot} = {c_expressions.store(f'{reduction.storage.name}_lanes[0]', reduction.storage.dtype)};")


# ---------------------------------------------------------------- reductions over outer loops


def write_columns(nest: LoopNest) -> None:
    """The innermost axis stays: a row of accumulators takes one row of the tile after another."""
    reductions = [r for r in nest.outputs if isinstance(r, Reduce)]
    free = [loop for loop in nest.loops[:-1] if loop.axis not in nest.reduced()]
    bound = [loop for loop in nest.loops[:-1] if loop.axis in nest.reduced()]
    inner = nest.loops[-1]
    extent = to_c(inner.extent)
    variants = nest.variants()
    explicit = VectorBody(nest)
    vectors = explicit.write("0", extent, variants[True], None, {}, nest.context.options.abreast) if explicit.fits() else None
    opened = nest.open_outer(free)
    nest.out.append(f"for (int64_t {inner.var} = 0; {inner.var} < {extent}; ++{inner.var}) {{")
    for reduction in reductions:
        start = literal(neutral(reduction.op, reduction.value.dtype), reduction.value.dtype)
        slot = nest.slot(reduction.storage, nest.reduced_index(reduction))
        nest.out.append(f"{slot} = {c_expressions.store(start, reduction.storage.dtype)};")
    nest.out.append("}")
    for k, loop in enumerate(bound):
        nest.out.append(nest.head(loop) + " {")
        nest.out += nest.lines.lines[len(free) + k + 1]
    if vectors is not None:
        nest.out += ["{", *vectors, "}"]
    for begin, end, interior in [] if vectors is not None else nest.split("0", extent):
        nest.out.append(f"#pragma omp simd\nfor (int64_t {inner.var} = {begin}; {inner.var} < {end}; ++{inner.var}) {{")
        nest.out += [*variants[interior], "}"]
    nest.out += ["}"] * (opened + len(bound))
