"""What a cost model and a population know of a point: a design's traits and a point's values in, named numbers out.

A design has `traits` (has it products, reductions, long functions, windows; how large is what it writes), found from the sketch alone.
A point's row says how far each of its axes is from the design's own value, alone and together with each trait: streaming a large
output is something else than streaming a small one. Names are by role (`coder abreast`, `tile of a parallel loop`), never by task.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelwright.core.operations import FUNCTION, cost
from kernelwright.search.codegen_options import CODER
from kernelwright.sketch import nodes
from kernelwright.sketch.nodes import Kernel, Sketch
from kernelwright.sketch.walk import roots, statements, subtiles

LARGE, SMALL = 16 << 20, 1 << 18
"""Bytes of output beyond which caches do not hold it, and under which they do whatever is done."""


@dataclass(frozen=True)
class Axes:
    """One design as a search sees it: axes with their values, the values it was designed with, the designer's estimate in seconds,
    the role of each axis, its traits, its family of schedules, and in words what sets it apart from the designer's first."""

    axes: dict[str, tuple[int, ...]]
    defaults: dict[str, int]
    cost: float
    roles: dict[str, str] = field(default_factory=dict)
    traits: dict[str, float] = field(default_factory=dict)
    family: str = ""
    note: str = ""


def traits_of(sketch: Sketch) -> dict[str, float]:
    """Traits between 0 and 1."""
    kernels = [step for step in sketch.steps if isinstance(step, Kernel) and not step.once]
    tiles = [tile for kernel in kernels for statement, _ in statements(kernel.body) for tile in subtiles(*roots(statement))]
    written = sum(_bytes(tensor) for tensor in sketch.tensors if tensor.role == "output")
    windows = sum(isinstance(tile, nodes.Load) and tile.pad is not None and not isinstance(tile, nodes.Gemm) for tile in tiles)
    found = {
        "products": any(isinstance(tile, nodes.Gemm) for tile in tiles),
        "reductions": any(isinstance(tile, nodes.Reduce | nodes.ArgReduce | nodes.Scan) for tile in tiles),
        "long functions": any(isinstance(tile, nodes.Unary) and cost(tile.op) >= FUNCTION for tile in tiles),
        "windows": windows > 0,
        "several kernels": len(kernels) > 1,
        "large": written >= LARGE,
        "small": written < SMALL,
    }
    return {name: float(value) for name, value in found.items() if value}


def family_of(sketch: Sketch, traits: Mapping[str, float]) -> str:
    """The family of schedules that a sketch belongs to: what it does, and how its loops stand."""
    kernels = [step for step in sketch.steps if isinstance(step, Kernel) and not step.once]
    loops = [loop for kernel in kernels for loop, _ in statements(kernel.body) if isinstance(loop, nodes.For)]
    shape = "".join("p" if loop.kind == "parallel" else "r" for loop in loops[:12])
    does = [name for name in ("products", "reductions", "windows") if traits.get(name)]
    return f"{' and '.join(does) or 'elementwise'} in {len(kernels)} of {shape or 'no loops'}"


def roles_of(sketch: Sketch, axes: Mapping[str, tuple[int, ...]]) -> dict[str, str]:
    """What each axis turns, in words that mean the same for every task."""
    found: dict[str, str] = {}
    for name in axes:
        if name.startswith(CODER):
            found[name] = name
        elif name.startswith("order of"):
            found[name] = "order of loops"
        else:
            kinds = {
                loop.kind
                for step in sketch.steps
                if isinstance(step, Kernel)
                for loop, _ in statements(step.body)
                if isinstance(loop, nodes.For) and loop.step == nodes.Sym(name)
            }
            found[name] = f"tile of a {min(kinds, default='range')} loop"
    return found


def row(design: Axes, values: Mapping[str, int], best_cost: float) -> dict[str, float]:
    """The features of a point. `best_cost` is the designer's estimate for its best design: the roofline's say in the matter."""
    found: dict[str, float] = {"estimate": math.log(max(design.cost, 1e-9) / max(best_cost, 1e-9)) if design.cost else 0.0}
    for name, domain in design.axes.items():
        far = domain.index(values[name]) - domain.index(design.defaults[name])
        if not far:
            continue
        role = design.roles.get(name, name)
        # The values of a coder's option mean the same everywhere; a tile is smaller or larger than the designer thought.
        which = f"{role} {values[name]}" if name.startswith(CODER) else f"{role} {'+' if far > 0 else '-'}{abs(far)}"
        for trait in ("", *design.traits):
            key = f"{which}, {trait}" if trait else which
            found[key] = found.get(key, 0.0) + 1.0
    return found


def kind(design: Axes, values: Mapping[str, int]) -> str:
    """The kind of design that a point is: family of schedule × memory strategy × size class."""
    tiles = [
        math.log2(values[name] / design.defaults[name])
        for name, role in design.roles.items()
        if role.startswith("tile") and values.get(name) and design.defaults.get(name)
    ]
    size = "as designed" if abs(sum(tiles)) < 1 else "small tiles" if sum(tiles) < 0 else "large tiles"
    memory = [
        f"{name.removeprefix(CODER)} {values[name]}"
        for name in (CODER + "stream_bytes", CODER + "pack_above_rows", CODER + "copy_left", CODER + "keep_cost")
        if name in values and values[name] != design.defaults[name]
    ]
    return f"{design.family}; {', '.join(memory) or 'memory as designed'}; {size}"


def _bytes(tensor: nodes.Tensor) -> int:
    count = tensor.dtype.size
    for extent in tensor.shape:
        count *= extent.value if isinstance(extent, nodes.Int) else 1
    return count
