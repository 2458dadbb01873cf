"""What was shown of a sketch with dynamic sizes for every one of them, what could not be, and what is broken, with sizes.

In: a sketch and the claims that the index algebra left open. Out: a `Settled`. The way of a claim: the algebra (bounds.py, races.py)
before this file, then the solver, then small sizes one after another; what is broken was recomputed with the very numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kernelwright.core.errors import SketchError
from kernelwright.sketch import nodes
from kernelwright.sketch.check.bounds import Prover
from kernelwright.sketch.check.claims import Claim
from kernelwright.sketch.check.small_sizes import smallest_break
from kernelwright.sketch.check.solver import NotDecided, Solver, available
from kernelwright.sketch.index import constant, show, substitute
from kernelwright.sketch.nodes import For, Index, IndexOp, Int
from kernelwright.sketch.walk import roots, statements, subtiles


@dataclass(frozen=True)
class Finding:
    """A claim that does not hold at these sizes and tunables, or (without any) that nobody could decide."""

    line: int
    reason: str
    sizes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Settled:
    """`by_algebra` and `by_solver` count accesses and pairs of accesses that were shown for all sizes; `trusted` are lines that read
    positions from data, which nothing can show."""

    by_algebra: int = 0
    by_solver: int = 0
    refuted: tuple[Finding, ...] = ()
    undecided: tuple[Finding, ...] = ()
    trusted: tuple[int, ...] = ()


def settle(
    sketch: nodes.Sketch, claims: Sequence[Claim], shown: int, trusted: Sequence[int]
) -> tuple[Settled, list[SketchError]]:
    """What became of the claims, and the faults that they leave: what is broken, with its sizes, and what nobody could decide."""
    shapes = {tensor.name: tensor.shape for tensor in sketch.tensors}
    bases = {tensor.name: tensor.source if tensor.role == "view" else tensor.name for tensor in sketch.tensors}
    solver = Solver(sketch.sizes, sketch.tunables, shapes, bases)
    refuted: list[Finding] = []
    undecided: list[Finding] = []
    faults: list[SketchError] = []
    solved = 0
    told = {size.name for size in sketch.sizes if size.dynamic} | {tunable.name for tunable in sketch.tunables}
    for claim in claims:
        try:
            env = solver.counterexample(claim)
        except NotDecided:
            env = smallest_break(sketch, claim, shapes)
            if env is None:
                undecided.append(Finding(claim.line, claim.fault.reason))
                hint = claim.fault.hint if available() else f"{claim.fault.hint}; more can be shown with z3-solver installed"
                faults.append(SketchError(claim.fault.reason, line=claim.line, hint=hint.removeprefix("; ")))
                continue
        if env is None:
            solved += 1
            continue
        sizes = {name: value for name, value in env.items() if name in told}
        at = ", ".join(f"{name} = {value}" for name, value in sizes.items())
        refuted.append(Finding(claim.line, claim.fault.reason, sizes))
        faults.append(SketchError(f"{claim.fault.reason}; it does at {at}", line=claim.line, hint=claim.fault.hint))
    return Settled(shown, solved, tuple(refuted), tuple(undecided), tuple(trusted)), faults


# ---------------------------------------------------------------- what only dynamic sizes can break


def declared(sketch: nodes.Sketch, prover: Prover) -> tuple[list[Claim], int]:
    """Claims about extents that may become negative and divisors that may become 0, and how many were shown at once."""
    claims: list[Claim] = []
    shown = 0
    for tensor in sketch.tensors:
        for axis, extent in enumerate(tensor.shape):
            if constant(substitute(extent, prover.given)) is not None:
                continue
            if prover.never_negative(extent, ()):
                shown += 1
                continue
            fault = SketchError(f"axis {axis} of tensor {tensor.name} may have the negative extent {show(extent)}")
            claims.append(Claim("extent", 0, fault, goals=(extent,)))
    seen: set[tuple[Index, tuple[int, ...]]] = set()
    for line, index, loops in _indices(sketch):
        for divisor in _divisors(index):
            key = (divisor, tuple(map(id, loops)))
            if key in seen or constant(substitute(divisor, prover.given)) is not None:
                continue
            seen.add(key)
            above, below = IndexOp("-", divisor, Int(1)), IndexOp("-", Int(-1), divisor)
            if prover.never_negative(above, loops) or prover.never_negative(below, loops):
                shown += 1
                continue
            fault = SketchError(f"a division by {show(divisor)}, which may be 0", line=line)
            claims.append(Claim("divisor", line, fault, loops, (IndexOp("max", above, below),)))
    return claims, shown


def _divisors(index: Index) -> Iterator[Index]:
    if isinstance(index, IndexOp):
        yield from _divisors(index.left)
        yield from _divisors(index.right)
        if index.op in ("//", "%"):
            yield index.right


def _indices(sketch: nodes.Sketch) -> Iterator[tuple[int, Index, tuple[For, ...]]]:
    """Every integer expression of the kernels, with its line and the loops in which it is computed."""
    for step in sketch.steps:
        if not isinstance(step, nodes.Kernel):
            continue
        for statement, loops in statements(step.body):
            line = getattr(statement, "line", 0)
            if isinstance(statement, For):
                yield from ((line, bound, loops) for bound in (statement.start, statement.stop, statement.step))
            if isinstance(statement, nodes.Store):
                yield from ((line, index, loops) for index in _of_region(statement.region))
            for tile in subtiles(*roots(statement)):
                at = getattr(tile, "line", 0) or line
                match tile:
                    case nodes.FromIndex(index) | nodes.Iota(index):
                        yield at, index, loops
                    case nodes.Full(shape) | nodes.Expand(_, shape) | nodes.Reshape(_, shape):
                        yield from ((at, extent, loops) for extent in shape)
                    case nodes.Load(_, region) | nodes.Part(_, region):
                        yield from ((at, index, loops) for index in _of_region(region))


def _of_region(region: Sequence[nodes.Axis]) -> Iterator[Index]:
    for axis in region:
        match axis:
            case nodes.At(index):
                yield index
            case nodes.Span(start, extent, step):
                yield from (start, extent, step)
