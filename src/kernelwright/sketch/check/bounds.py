"""Proofs about integer expressions inside loops: is this never negative?

In: an expression, the loops around it, the declared sizes and tunables. Out: True when it holds for every iteration, every
setting of the tunables and every value of the dynamic sizes in their ranges; False when it could not be shown. Static sizes are
numbers here, and a dynamic size that is a multiple of 8 is 8 times a name of its own, so that `n // 8 * 8` is n. Loops are taken
away from the inside out: an expression that is linear in a loop variable is least at one end of its range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelwright.sketch.index import (
    Atom,
    Interval,
    Opaque,
    Poly,
    Ranges,
    bounds,
    constant,
    polynomial,
    simplify,
    substitute,
    symbols,
    to_index,
)
from kernelwright.sketch.index import poly as poly_of
from kernelwright.sketch.nodes import For, Index, IndexOp, Int, Sym
from kernelwright.sketch.types import Typer

_DEPTH = 24
"""How many opaque terms and loops one proof may take apart before it gives up."""


class Prover:
    """Proofs for one sketch."""

    def __init__(self, typer: Typer) -> None:
        self.typer = typer
        self.given: dict[str, Index | int] = {**typer.static}
        """What stands for a size: its number, or the multiple of a name that has no divisor."""
        self.known: dict[str, Interval] = {name: (min(d), max(d)) for name, d in typer.domains.items() if d}
        for size in typer.dynamic:
            name, step = size.name, max(1, size.multiple_of)
            if step > 1:
                name = f"{size.name}/{step}"  # no name of a sketch contains a slash
                self.given[size.name] = IndexOp("*", Sym(name), Int(step))
            self.known[name] = (-(-max(0, size.low) // step), None if size.high is None else size.high // step)
        self.constants = frozenset({*typer.constants, *self.known})

    def never_negative(self, index: Index, loops: Sequence[For]) -> bool:
        """`index >= 0` in every iteration of `loops` (outermost first), whatever the tunables are set to."""
        return self.counterexample(index, loops) is None

    def counterexample(self, index: Index, loops: Sequence[For]) -> dict[str, int] | None:
        """A setting of the tunables for which `index >= 0` could not be shown (empty: for none), or None when it holds."""
        general = [_placed(loop, self.given) for loop in loops]
        goal = substitute(index, self.given)
        if self._holds(goal, general, _DEPTH):
            return None
        names = symbols(goal)
        for loop in reversed(general):
            if loop.var in names:
                names = names.union(*(symbols(bound) for bound in (loop.start, loop.stop, loop.step)))
        for setting in self.typer.settings(names):
            if not self._holds(substitute(goal, setting), [_placed(loop, setting) for loop in general], _DEPTH):
                return dict(setting)
        return None

    # ---- taking the expression apart

    def _holds(self, goal: Index, loops: Sequence[For], depth: int) -> bool:
        poly = polynomial(goal)
        value = poly.constant
        if value is not None:
            return value >= 0
        if depth == 0:
            return False
        if self._obvious(poly):
            return True
        inside = {loop.var for loop in loops}
        for atom in [a for a in poly.atoms if isinstance(a, Opaque)]:
            if atom.op in ("min", "max"):
                return self._choice(poly, atom, loops, depth)
        if loops:
            return self._without_loop(poly, loops, depth)
        return self._opaque(poly, [], inside, depth)

    def _obvious(self, poly: Poly) -> bool:
        """All terms are products of things that are never negative, with a positive factor."""
        return all(c >= 0 for _, c in _shifted(poly, self.known).terms) and all(map(self._natural, poly.atoms))

    def _natural(self, atom: Atom) -> bool:
        if not isinstance(atom, Opaque):
            return atom in self.constants
        return atom.op == "%" or (atom.op == "//" and self._obvious(atom.left) and self._obvious(atom.right))

    def _choice(self, poly: Poly, atom: Opaque, loops: Sequence[For], depth: int) -> bool:
        """min and max are one of their sides: the right one is enough where the sign says which, otherwise both must hold."""
        signs = {c > 0 for m, c in poly.terms if atom in m}
        alone = all(m == (atom,) for m, _ in poly.terms if atom in m)
        sides = (self._holds(_put(poly, atom, side), loops, depth - 1) for side in map(to_index, (atom.left, atom.right)))
        if alone and signs == {atom.op == "max"}:
            return any(sides)
        return all(sides)

    def _without_loop(self, poly: Poly, loops: Sequence[For], depth: int) -> bool:
        *outer, loop = loops
        variable = loop.var
        if variable not in poly.names:
            return self._holds(to_index(poly), outer, depth)
        low, high = loop.start, _last(loop)
        if any(isinstance(a, Opaque) and variable in poly_of(a).names for a in poly.atoms):
            return self._opaque(poly, loops, {variable}, depth)
        factor = poly.coefficient(variable)
        if factor is None:
            return self._numeric(poly, loops)
        ends = [low, high]
        if all(c > 0 for _, c in factor.terms) and all(map(self._natural, factor.atoms)):
            ends = [low]
        elif all(c < 0 for _, c in factor.terms) and all(map(self._natural, factor.atoms)):
            ends = [high]
        return all(self._holds(_put(poly, variable, end), outer, depth - 1) for end in ends) or self._numeric(poly, loops)

    def _opaque(self, poly: Poly, loops: Sequence[For], variables: set[str], depth: int) -> bool:
        """Replaces one `//` or `%` by the ends of what it can be."""
        for atom in [a for a in poly.atoms if isinstance(a, Opaque)]:
            if loops and not (poly_of(atom).names & variables):
                continue
            ends = self._ends(atom, loops)
            if ends is None:
                continue
            signs = {c > 0 for m, c in poly.terms if atom in m}
            alone = all(m == (atom,) for m, _ in poly.terms if atom in m)
            chosen = (ends[:1] if signs == {True} else ends[1:]) if alone and len(signs) == 1 else ends
            return all(self._holds(_put(poly, atom, end), loops, depth - 1) for end in chosen) or self._numeric(poly, loops)
        return self._numeric(poly, loops)

    def _ends(self, atom: Opaque, loops: Sequence[For]) -> list[Index] | None:
        whole, ranges = poly_of(atom), self._ranges(loops)
        low, high = Ranges(dict(ranges), others=None).interval(whole)
        if low is not None and high is not None:
            return [Int(low), Int(high)]
        if atom.op == "%" and self._holds(to_index(atom.right - 1), loops, 2):
            return [Int(0), to_index(atom.right - 1)]
        if atom.op == "//" and loops and len(atom.left.names & {loop.var for loop in loops}) == 1:
            # Monotone in the one loop variable: the ends of the loop give the ends of the quotient.
            inner = next(loop for loop in loops if loop.var in atom.left.names)
            if inner.var not in atom.right.names:
                first, last = (substitute(to_index(whole), {inner.var: end}) for end in (inner.start, _last(inner)))
                return [_positive_divisor(first), _positive_divisor(last)]
        return None

    def _ranges(self, loops: Sequence[For]) -> dict[str, Interval]:
        """Numeric ranges of the loop variables and of what else is known, from the outside in."""
        ranges: dict[str, Interval] = dict.fromkeys(self.constants, (0, None)) | self.known
        for loop in loops:
            ranges[loop.var] = (bounds(loop.start, ranges)[0], bounds(_last(loop), ranges)[1])
        return ranges

    def _numeric(self, poly: Poly, loops: Sequence[For]) -> bool:
        low = Ranges(dict(self._ranges(loops)), others=None).interval(poly)[0]
        return low is not None and low >= 0


def _placed(loop: For, env: Mapping[str, Index | int]) -> For:
    """The loop's bounds with numbers for names; its body does not matter here."""
    start, stop, step = (substitute(bound, env) for bound in (loop.start, loop.stop, loop.step))
    return For(loop.var, loop.kind, start, stop, step, body=())


def _last(loop: For) -> Index:
    """The greatest value of a loop's variable, or a bound of it, if the loop runs at all."""
    length = simplify(IndexOp("-", loop.stop, loop.start))
    step = constant(loop.step)
    total = constant(length)
    if step is not None and step > 0 and total is not None:
        return simplify(IndexOp("+", loop.start, Int((max(total, 1) - 1) // step * step)))
    if constant(IndexOp("%", length, loop.step)) == 0:
        return simplify(IndexOp("-", loop.stop, loop.step))
    return simplify(IndexOp("-", loop.stop, Int(1)))


def _put(poly: Poly, atom: Atom, value: Index) -> Index:
    """The polynomial with one atom replaced."""
    total, new = Poly(), polynomial(value)
    for monomial, coefficient in poly.terms:
        term = poly_of(coefficient)
        for factor in monomial:
            term = term * (new if factor == atom else poly_of(factor))
        total = total + term
    return to_index(total)


def _shifted(poly: Poly, known: Mapping[str, Interval]) -> Poly:
    """The polynomial in how far each tunable and size lies above its least value, so that `BM - 1` is seen to be natural."""
    least = {a: low for a in poly.atoms if isinstance(a, str) and a in known and (low := known[a][0])}
    return poly.substitute({name: poly_of(name) + low for name, low in least.items()}) if least else poly


def _positive_divisor(index: Index) -> Index:
    """`(-1) // n` is -1 for every positive n: divisors are sizes and tunables, and a loop over none of them does not run."""
    poly = polynomial(index)
    for atom in poly.atoms:
        if isinstance(atom, Opaque) and atom.op == "//" and atom.left.constant == -1:
            return _put(poly, atom, Int(-1))
    return index
