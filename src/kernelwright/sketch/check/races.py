"""Parallel races, proved absent: no two iterations of a parallel loop touch one element, unless both only read or both update
atomically.

In: a kernel's accesses with the loops around them. Out: SketchErrors for pairs that could not be shown to be apart. The
argument for a pair: if the two meet in an element, then they are the same iteration. An axis whose start moves by at least its
width when a parallel variable moves by its step tells that variable's value; `x // d` and `x % d` together tell x.
Where that does not decide, `enumerate` looks at every iteration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kernelwright.core.errors import SketchError
from kernelwright.sketch import nodes
from kernelwright.sketch.check.bounds import Prover
from kernelwright.sketch.enumerate import seen_apart
from kernelwright.sketch.index import Atom, Opaque, Poly, combine, constant, poly, polynomial, substitute, to_index
from kernelwright.sketch.nodes import For, Index, IndexOp, Int, Sym
from kernelwright.sketch.walk import roots, statements, subtiles

_OTHER = "'"
"""Marks the names of the second of two iterations; no name of a sketch contains it."""


@dataclass(frozen=True)
class Access:
    """One load or store, and the loops around it from the outside in."""

    tensor: str
    region: tuple[nodes.Axis, ...]
    loops: tuple[For, ...]
    mode: str  # "read", or the mode of a store
    line: int


def accesses(kernel: nodes.Kernel) -> list[Access]:
    """All loads and stores of a kernel in program order."""
    found = []
    for statement, loops in statements(kernel.body):
        for tile in subtiles(*roots(statement)):
            if isinstance(tile, nodes.Load):
                line = tile.line or getattr(statement, "line", 0)
                found.append(Access(tile.tensor, tile.region, loops, "read", line))
        if isinstance(statement, nodes.Store):
            found.append(Access(statement.tensor, statement.region, loops, statement.mode, statement.line))
    return found


@dataclass(frozen=True)
class Meeting:
    """A store and an access of which it was not shown that they are apart in different iterations of the parallel loops `shared`."""

    store: Access
    other: Access
    shared: tuple[For, ...]

    @property
    def error(self) -> SketchError:
        """What is said of it."""
        return _error(self.store, self.other, self.shared)


def races(kernel: nodes.Kernel, bases: Mapping[str, str], prover: Prover) -> list[SketchError]:
    """One error for each store that may meet another iteration's access; `bases` maps each tensor to the memory it names."""
    found: dict[int, SketchError] = {}
    for meeting in meetings(kernel, bases, prover)[0]:
        found.setdefault(id(meeting.store), meeting.error)
    return list(found.values())


def meetings(kernel: nodes.Kernel, bases: Mapping[str, str], prover: Prover) -> tuple[list[Meeting], int]:
    """All pairs that may meet, and how many pairs were shown to be apart."""
    every = accesses(kernel)
    found: list[Meeting] = []
    apart = 0
    for position, store in enumerate(every):
        if store.mode == "read":
            continue
        for index, other in enumerate(every):
            if bases.get(other.tensor) != bases.get(store.tensor) or (other.mode != "read" and index < position):
                continue
            if store.mode != "set" and store.mode == other.mode:
                continue
            shared = _shared(store, other)
            if shared and not _apart(store, other, shared, prover) and not _seen(store, other, shared, prover, kernel):
                found.append(Meeting(store, other, tuple(shared)))
            elif shared:
                apart += 1
    return found, apart


def _seen(store: Access, other: Access, shared: Sequence[For], prover: Prover, kernel: nodes.Kernel) -> bool:
    """What no argument decides is looked at, iteration after iteration."""
    names = bound_once(kernel)
    shapes = {name: tensor.shape for name, tensor in prover.typer.tensors.items()}
    return seen_apart(store, other, shared, shapes, prover.typer.static, names)


def bound_once(kernel: nodes.Kernel) -> dict[str, nodes.Tile]:
    """The tiles of names that are bound in one place only."""
    bound: dict[str, list[nodes.Tile]] = {}
    for statement, _ in statements(kernel.body):
        if isinstance(statement, nodes.Assign):
            bound.setdefault(statement.name, []).append(statement.value)
    return {name: values[0] for name, values in bound.items() if len(values) == 1}


def _shared(first: Access, second: Access) -> list[For]:
    """The parallel loops that stand around both accesses."""
    common = []
    for one, other in zip(first.loops, second.loops, strict=False):
        if one is not other:
            break
        if one.kind == "parallel":
            common.append(one)
    return common


def _error(store: Access, other: Access, shared: Sequence[For]) -> SketchError:
    names = ", ".join(loop.var for loop in shared)
    what = "reads" if other.mode == "read" else "writes"
    where = f" (line {other.line})" if other.line and other.line != store.line else ""
    return SketchError(
        f"two iterations of parallel {names} may meet: store to {store.tensor} writes what another iteration {what}{where}",
        line=store.line,
        hint="let the region move with each parallel variable by at least its extent, use range, or store with mode='add'",
    )


def _apart(first: Access, second: Access, shared: Sequence[For], prover: Prover) -> bool:
    """Whether the accesses of two different iterations of `shared` never meet."""
    if len(first.region) != len(second.region):
        return False  # a tensor and a view of it: their axes cannot be compared
    pair = _Pair(first, second, shared, prover)
    return (first is not second and pair.disjoint()) or pair.pinned()


class _Pair:
    """Two accesses in two iterations. Names of the second iteration are marked, except those already known to be equal."""

    def __init__(self, first: Access, second: Access, shared: Sequence[For], prover: Prover) -> None:
        self.prover = prover
        self.first, self.second, self.shared = first, second, shared
        self.given = prover.given
        self.axes = [
            (self._ends(a), self._ends(b))
            for a, b in zip(first.region, second.region, strict=True)
            if not isinstance(a, nodes.Pick) and not isinstance(b, nodes.Pick)
        ]
        # A loop that runs once at most has one value to know.
        self.known: set[Atom] = {loop.var for loop in shared if self._runs_once(loop)}

    def _runs_once(self, loop: For) -> bool:
        rest = IndexOp("-", loop.step, IndexOp("-", loop.stop, loop.start))
        return self.prover.never_negative(rest, self.first.loops)

    def _ends(self, axis: nodes.Axis) -> tuple[Index, Index]:
        """The least and greatest position on an axis."""
        match axis:
            case nodes.Span(start, extent, step):
                reach = IndexOp("*", IndexOp("-", extent, Int(1)), step)
                first, last = start, IndexOp("+", start, reach)
                if (constant(substitute(step, self.given)) or 1) < 0:
                    first, last = last, first
                return substitute(first, self.given), substitute(last, self.given)
            case nodes.At(index):
                at = substitute(index, self.given)
                return at, at
        raise TypeError(f"not a fixed axis: {axis!r}")

    def _renaming(self) -> dict[str, Index]:
        """Marks every loop variable of the second access that is not known to be the same in both iterations."""
        same = {atom for atom in self.known if isinstance(atom, str)}
        return {loop.var: Sym(loop.var + _OTHER) for loop in self.second.loops if loop.var not in same}

    def _loops(self) -> list[For]:
        names = self._renaming()
        marked = [
            replace(
                loop,
                var=loop.var + _OTHER,
                start=substitute(loop.start, names),
                stop=substitute(loop.stop, names),
                body=(),
            )
            for loop in self.second.loops
            if loop.var in names
        ]
        return [*self.first.loops, *marked]

    def _less(self, small: Index, large: Index) -> bool:
        """`small < large` in every pair of iterations."""
        goal = IndexOp("-", IndexOp("-", large, small), Int(1))
        return self.prover.never_negative(goal, self._loops())

    def disjoint(self) -> bool:
        """Apart on some axis whatever the iterations are."""
        names = self._renaming()
        for (low, high), (other_low, other_high) in self.axes:
            if self._less(high, substitute(other_low, names)) or self._less(substitute(other_high, names), low):
                return True
        return False

    def pinned(self) -> bool:
        """Whether meeting in an element forces every shared parallel variable to be equal in both iterations."""
        wanted = {loop.var for loop in self.shared}
        progress = True
        while progress and not wanted <= self.known:
            progress = self._learn() or self._combine()
        return wanted <= self.known

    def _learn(self) -> bool:
        """Looks for one axis that tells the value of one more atom."""
        parallel = {loop.var for loop in self.shared}
        unknown = parallel - {atom for atom in self.known if isinstance(atom, str)}
        own = {loop.var for loop in self.first.loops} - parallel
        for (low, high), (other_low, other_high) in self.axes:
            for monomial, factor in polynomial(low).terms:
                if not any(poly(atom).names & unknown for atom in monomial):
                    continue
                key = next((a for a in monomial if poly(a).names & unknown), None)
                scale = tuple(a for a in monomial if a is not key)
                if (
                    key is None
                    or key in self.known
                    or poly(key).names & own
                    or any(poly(a).names - self._constants() for a in scale)
                ):
                    continue
                term = Poly(((monomial, factor),))
                if term.terms[0] not in polynomial(other_low).terms:
                    continue
                stride = self._stride(key, Poly(((scale, abs(factor)),)))
                if self._separates(term, stride, (low, high), (other_low, other_high)):
                    self.known.add(key)
                    return True
        return False

    def _constants(self) -> frozenset[str]:
        return self.prover.constants

    def _stride(self, key: Atom, scale: Poly) -> Index:
        """How far the axis moves at least when `key` changes."""
        size = to_index(scale)
        if isinstance(key, str):
            step = next(loop.step for loop in self.shared if loop.var == key)
            return IndexOp("*", size, step)
        return size

    def _separates(
        self,
        term: Poly,
        stride: Index,
        here: tuple[Index, Index],
        there: tuple[Index, Index],
    ) -> bool:
        """With the term taken out, both regions reach less than a stride apart: so a different term means no overlap."""
        names = self._renaming()
        moved = to_index(term)
        low, high = (self._shared_terms(IndexOp("-", end, moved)) for end in here)
        other_low, other_high = (substitute(self._shared_terms(IndexOp("-", end, moved)), names) for end in there)
        return self._less(IndexOp("-", high, other_low), stride) and self._less(IndexOp("-", other_high, low), stride)

    def _shared_terms(self, index: Index) -> Index:
        """Terms known to be equal in both iterations get one unmarked name, so that they cancel."""
        total = Poly()
        for monomial, count in polynomial(index).terms:
            product = poly(count)
            for atom in monomial:
                known = isinstance(atom, Opaque) and atom in self.known
                product = product * poly(f"={atom}" if known else atom)
            total = total + product
        return to_index(total)

    def _combine(self) -> bool:
        """From known quotients and remainders to the value they were made of."""
        for atom in list(self.known):
            if not isinstance(atom, Opaque):
                continue
            whole = atom.left.atom
            if whole is None or whole in self.known:
                continue
            if atom.op == "%":
                quotient = combine("//", atom.left, atom.right)
                enough = not quotient or quotient.atom in self.known
            else:
                # x // d alone tells x when x is a loop variable whose step is at least d.
                loop = next((loop for loop in self.shared if loop.var == whole), None)
                enough = loop is not None and self._less(to_index(atom.right - 1), loop.step)
            if enough:
                self.known.add(whole)
                return True
        return False
