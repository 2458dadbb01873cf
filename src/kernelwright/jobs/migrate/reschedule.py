"""A sketch for another device: only what breaks one of the device's rules is changed, and each change has its reason.

In: a sketch, and what its language can count on of the target. Out: `Plan`: the sketch, the changes, and what was kept as it
was. The rules come from those figures:

- operands of a product that are staged for reuse fit twice (one tile is used while the next arrives) into a block's shared memory,
  or into a core's second-level cache; accumulators fit into half of the register file, or into the same cache;
- every core of a CPU has at least one iteration of the parallel loops; so has every multiprocessor where the tiles are those of a
  product (other tiles are cut over the grid by the coder itself);
- extents of a product's tile are multiples of 16 where the device has tensor cores, of a vector's width on a CPU.

What a rule may change are the extents of tiles (search/space.py finds them and proves every variant). The point with the least breach
that is nearest to the original is taken. Vector widths, register blocks, threads, warps and pipeline stages are no part of a sketch:
the new language's coder chooses them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernelwright.search.space import bound, tunable
from kernelwright.sketch import nodes
from kernelwright.sketch.check.rules import Typing, check, infer
from kernelwright.sketch.index import evaluate
from kernelwright.sketch.nodes import For, Int, Kernel, Sketch
from kernelwright.sketch.walk import roots, statements, subtiles
from kernelwright.target import Capabilities

TENSOR_CORE = 16
"""Rows, columns and depth of the smallest tile that matrix units take."""
ROUNDS = 4
WHOLE = (16, 32, 64, 128)
"""Extents that fit matrix units and vectors, offered beside fractions and multiples of what a sketch has."""


@dataclass(frozen=True)
class Change:
    """One extent that is different now."""

    kernel: str
    what: str
    before: int
    after: int
    why: str

    def __str__(self) -> str:
        return f"{self.kernel}: {self.what} {self.before} → {self.after}: {self.why}"


@dataclass(frozen=True)
class Plan:
    """The sketch for the new device. `kept` says what stayed, `open` which rules no allowed change could satisfy."""

    sketch: Sketch
    changes: tuple[Change, ...] = ()
    kept: tuple[str, ...] = ()
    open: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rules:
    """What a device asks of a schedule. Bytes, counts; 0 means that the sheet says nothing."""

    staged: int
    held: int
    iterations: int
    multiple: int
    unit: str
    title: str

    @classmethod
    def of(cls, machine: Capabilities) -> Rules:
        if machine.vectors:
            lanes = max(8, machine.lanes)
            return cls(machine.staged_bytes, machine.accumulator_bytes, machine.units, lanes, "core", machine.title)
        whole = TENSOR_CORE if machine.matrix_dtypes else 0
        return cls(machine.staged_bytes, machine.registers // 2, machine.units, whole, "multiprocessor", machine.title)


@dataclass(frozen=True)
class Breach:
    """A rule that one kernel breaks, by how many doublings."""

    kernel: int
    amount: float
    text: str


def reschedule(sketch: Sketch, machine: Capabilities) -> Plan:
    """The sketch as the target wants it."""
    rules = Rules.of(machine)
    start = bound(sketch, {})
    before = breaches(start, rules)
    if not before:
        return Plan(start, kept=_kept(start, rules))
    space = tunable(start, {breach.kernel for breach in before}, WHOLE)
    values = {item.name: item.value for item in space.tunables}
    best, cost = dict(values), _cost(before, 0.0)
    for _ in range(ROUNDS):
        improved = False
        for item in space.tunables:
            for value in item.domain:
                choice = {**best, item.name: value}
                if choice == best:
                    continue
                made = bound(space, choice)
                found = _cost(_breaches(made, rules), _distance(choice, values))
                if found < cost and not check(made):
                    best, cost, improved = choice, found, True
        if not improved:
            break
    made = bound(space, best)
    changes = tuple(
        Change(_owner(space, name), name, values[name], best[name], _why(before, space, name))
        for name in values
        if best[name] != values[name]
    )
    after = breaches(made, rules)
    return Plan(made, changes, _kept(made, rules), tuple(dict.fromkeys(breach.text for breach in after)))


def breaches(sketch: Sketch, rules: Rules) -> list[Breach]:
    """The rules that a sketch without tunables breaks."""
    typing, found = infer(sketch), []
    sizes = {size.name: size.value for size in sketch.sizes}
    for number, kernel in enumerate(sketch.steps):
        if isinstance(kernel, Kernel) and not kernel.once:
            found += _of_kernel(number, kernel, typing, sizes, rules)
    return found


def _breaches(sketch: Sketch, rules: Rules) -> list[Breach] | None:
    from kernelwright.core.errors import SketchError

    try:
        return breaches(sketch, rules)
    except SketchError:
        return None


def _of_kernel(number: int, kernel: Kernel, typing: Typing, sizes: dict[str, int], rules: Rules) -> list[Breach]:
    found: list[Breach] = []
    products = [t for s, _ in statements(kernel.body) for t in subtiles(*roots(s)) if isinstance(t, nodes.Gemm)]
    for product in products:
        staged = sum(_bytes(operand, typing, sizes) for operand in (product.a, product.b))
        held = _bytes(product, typing, sizes)
        if rules.staged and 2 * staged > rules.staged:
            text = f"{kernel.name}: two stages of a product's operands take {2 * staged:,} bytes, a {rules.unit} has {rules.staged:,}"
            found.append(Breach(number, math.log2(2 * staged / rules.staged), text))
        if rules.held and held > rules.held:
            text = f"{kernel.name}: an accumulator takes {held:,} bytes, {rules.held:,} are for it on a {rules.unit}"
            found.append(Breach(number, math.log2(held / rules.held), text))
        if rules.multiple:
            extents = _extents(product, typing, sizes)
            odd = [extent for extent in extents if extent % rules.multiple and extent > 1]
            if odd:
                text = f"{kernel.name}: a product of {' x '.join(map(str, extents))} is not made of whole {rules.multiple}s"
                found.append(Breach(number, float(len(odd)), text))
    work = _iterations(kernel.body, sizes)
    matters = products or rules.unit == "core"
    if matters and work is not None and 1 <= work < rules.iterations and any(isinstance(s, For) for s in kernel.body):
        text = f"{kernel.name}: {work} parallel iterations leave some of {rules.iterations} {rules.unit}s without work"
        found.append(Breach(number, 0.2 * math.log2(rules.iterations / work), text))
    return found


def _extents(product: nodes.Gemm, typing: Typing, sizes: dict[str, int]) -> tuple[int, int, int]:
    rows, depth = (int(evaluate(i, sizes)) for i in typing.shape_of(product.a)[-2:])
    return rows, depth, int(evaluate(typing.shape_of(product.b)[-1], sizes))


def _bytes(tile: nodes.Tile, typing: Typing, sizes: dict[str, int]) -> int:
    count = math.prod(int(evaluate(i, sizes)) for i in typing.shape_of(tile))
    return count * typing.dtype_of(tile).size


def _iterations(body: Sequence[nodes.Statement], sizes: dict[str, int]) -> int | None:
    """Iterations of the largest nest of parallel loops; None where bounds are not numbers."""
    most = 1
    for statement in body:
        if isinstance(statement, For) and statement.kind == "parallel":
            try:
                start, stop, step = (int(evaluate(i, sizes)) for i in (statement.start, statement.stop, statement.step))
            except (KeyError, ValueError):
                return None
            inner = _iterations(statement.body, sizes)
            if inner is None:
                return None
            most = max(most, max(0, -(-(stop - start) // step)) * inner)
    return most


def _cost(found: list[Breach] | None, distance: float) -> tuple[float, float]:
    return (math.inf, distance) if found is None else (round(sum(breach.amount for breach in found), 3), distance)


def _distance(choice: dict[str, int], origin: dict[str, int]) -> float:
    return sum(abs(math.log2(choice[name] / origin[name])) for name in origin)


def _owner(sketch: Sketch, name: str) -> str:
    """The kernel whose loop has this tile extent."""
    for kernel in sketch.steps:
        if isinstance(kernel, Kernel):
            for statement, _ in statements(kernel.body):
                if isinstance(statement, For) and statement.step == nodes.Sym(name):
                    return kernel.name
    return sketch.name


def _why(before: list[Breach], sketch: Sketch, name: str) -> str:
    owner = _owner(sketch, name)
    texts = [breach.text.partition(": ")[2] for breach in before if breach.text.startswith(f"{owner}: ")]
    return "; ".join(dict.fromkeys(texts)) or "the rules of the device as a whole"


def _kept(sketch: Sketch, rules: Rules) -> tuple[str, ...]:
    """What a reader wants to know stayed: kernels, loops, tiles."""
    told = []
    for kernel in sketch.steps:
        if not isinstance(kernel, Kernel):
            told.append(f"a call of {kernel.operator} stays with torch")
            continue
        loops = [s for s, _ in statements(kernel.body) if isinstance(s, For)]
        tiles = [f"{s.var} by {s.step.value}" for s in loops if isinstance(s.step, Int) and s.step.value > 1]
        shape = f"{len(loops)} loop{'s' if len(loops) != 1 else ''}" + (f", tiles of {', '.join(tiles)}" if tiles else "")
        told.append(f"{kernel.name}: {shape}")
    return tuple(told)
