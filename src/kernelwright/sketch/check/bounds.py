"""Proofs about integer expressions inside loops: is this never negative?

In: an expression, the loops around it, the declared sizes and tunables. Out: True when it holds for every iteration, every
setting of the tunables and every value of the dynamic sizes; False when it could not be shown. Static sizes are numbers here.
Loops are taken away from the inside out: an expression that is linear in a loop variable is least at one end of its range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelwright.sketch.index.symbolic import (
    Atom,
    Interval,
    Poly,
    bounds,
    constant,
    polynomial,
    simplify,
    substitute,
    symbols,
    to_index,
)
from kernelwright.sketch.nodes import For, Index, IndexOp, Int, Sym
from kernelwright.sketch.types import Typer

_DEPTH = 24
"""How many opaque terms and loops one proof may take apart before it gives up."""


class Prover:
    """Proofs for one sketch."""

    def __init__(self, typer: Typer) -> None:
        self.typer = typer

    def never_negative(self, index: Index, loops: Sequence[For]) -> bool:
        """`index >= 0` in every iteration of `loops` (outermost first), whatever the tunables are set to."""
        return self.counterexample(index, loops) is None

    def counterexample(self, index: Index, loops: Sequence[For]) -> dict[str, int] | None:
        """A setting of the tunables for which `index >= 0` could not be shown (empty: for none), or None when it holds."""
        general = [_placed(loop, self.typer.static) for loop in loops]
        goal = substitute(index, self.typer.static)
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
        value = constant(poly)
        if value is not None:
            return value >= 0
        if depth == 0:
            return False
        if self._obvious(poly):
            return True
        inside = {loop.var for loop in loops}
        for atom in {a for monomial in poly for a in monomial if isinstance(a, IndexOp)}:
            if atom.op in ("min", "max"):
                return self._choice(poly, atom, loops, depth)
        if loops:
            return self._without_loop(poly, loops, depth)
        return self._opaque(poly, [], inside, depth)

    def _obvious(self, poly: Poly) -> bool:
        """All terms are products of things that are never negative, with a positive factor."""
        return all(c >= 0 for c in _shifted(poly, self.typer.domains).values()) and all(
            self._natural(atom) for monomial in poly for atom in monomial
        )

    def _natural(self, atom: Atom) -> bool:
        if isinstance(atom, Sym):
            return atom.name in self.typer.constants
        if atom.op == "%":
            return True
        return atom.op == "//" and self._obvious(polynomial(atom.left)) and self._obvious(polynomial(atom.right))

    def _choice(self, poly: Poly, atom: IndexOp, loops: Sequence[For], depth: int) -> bool:
        """min and max are one of their sides: the right one is enough where the sign says which, otherwise both must hold."""
        signs = {c > 0 for m, c in poly.items() if atom in m}
        alone = all(m == (atom,) for m in poly if atom in m)
        sides = (self._holds(_put(poly, atom, side), loops, depth - 1) for side in (atom.left, atom.right))
        if alone and signs == {atom.op == "max"}:
            return any(sides)
        return all(sides)

    def _without_loop(self, poly: Poly, loops: Sequence[For], depth: int) -> bool:
        *outer, loop = loops
        variable = loop.var
        if variable not in symbols(to_index(poly)):
            return self._holds(to_index(poly), outer, depth)
        low, high = loop.start, _last(loop)
        opaque = [a for m in poly for a in m if isinstance(a, IndexOp) and variable in symbols(a)]
        if opaque:
            return self._opaque(poly, loops, {variable}, depth)
        if any(m.count(Sym(variable)) > 1 for m in poly):
            return self._numeric(poly, loops)
        factor = {tuple(a for a in m if a != Sym(variable)): c for m, c in poly.items() if Sym(variable) in m}
        ends = [low, high]
        if all(c > 0 for c in factor.values()) and all(self._natural(a) for m in factor for a in m):
            ends = [low]
        elif all(c < 0 for c in factor.values()) and all(self._natural(a) for m in factor for a in m):
            ends = [high]
        return all(self._holds(_put(poly, Sym(variable), end), outer, depth - 1) for end in ends) or self._numeric(poly, loops)

    def _opaque(self, poly: Poly, loops: Sequence[For], variables: set[str], depth: int) -> bool:
        """Replaces one `//` or `%` by the ends of what it can be."""
        for atom in {a for m in poly for a in m if isinstance(a, IndexOp)}:
            if loops and not (symbols(atom) & variables):
                continue
            ends = self._ends(atom, loops)
            if ends is None:
                continue
            signs = {c > 0 for m, c in poly.items() if atom in m}
            alone = all(m == (atom,) for m in poly if atom in m)
            chosen = (ends[:1] if signs == {True} else ends[1:]) if alone and len(signs) == 1 else ends
            return all(self._holds(_put(poly, atom, end), loops, depth - 1) for end in chosen) or self._numeric(poly, loops)
        return self._numeric(poly, loops)

    def _ends(self, atom: IndexOp, loops: Sequence[For]) -> list[Index] | None:
        low, high = bounds(atom, self._ranges(loops))
        if low is not None and high is not None:
            return [Int(low), Int(high)]
        if atom.op == "%" and self._holds(IndexOp("-", atom.right, Int(1)), loops, 2):
            return [Int(0), simplify(IndexOp("-", atom.right, Int(1)))]
        if atom.op == "//" and loops and len(symbols(atom.left) & {loop.var for loop in loops}) == 1:
            # Monotone in the one loop variable: the ends of the loop give the ends of the quotient.
            inner = next(loop for loop in loops if loop.var in symbols(atom.left))
            if inner.var not in symbols(atom.right):
                first, last = (substitute(atom, {inner.var: end}) for end in (inner.start, _last(inner)))
                return [_positive_divisor(first), _positive_divisor(last)]
        return None

    def _ranges(self, loops: Sequence[For]) -> dict[str, Interval]:
        """Numeric ranges of the loop variables and of what else is known, from the outside in."""
        ranges: dict[str, Interval] = {name: (min(d), max(d)) for name, d in self.typer.domains.items() if d}
        ranges |= {name: (0, None) for name in self.typer.constants if name not in ranges}
        for loop in loops:
            ranges[loop.var] = (bounds(loop.start, ranges)[0], bounds(_last(loop), ranges)[1])
        return ranges

    def _numeric(self, poly: Poly, loops: Sequence[For]) -> bool:
        low = bounds(to_index(poly), self._ranges(loops))[0]
        return low is not None and low >= 0


def _placed(loop: For, env: Mapping[str, int]) -> For:
    """The loop's bounds with numbers for names; its body does not matter here."""
    start, stop, step = (substitute(bound, env) for bound in (loop.start, loop.stop, loop.step))
    return For(loop.var, loop.kind, start, stop, step, body=())


def _last(loop: For) -> Index:
    """The greatest value of a loop's variable, or a bound of it, if the loop runs at all."""
    length = simplify(IndexOp("-", loop.stop, loop.start))
    step = constant(polynomial(loop.step))
    total = constant(polynomial(length))
    if step is not None and step > 0 and total is not None:
        return simplify(IndexOp("+", loop.start, Int((max(total, 1) - 1) // step * step)))
    if constant(polynomial(IndexOp("%", length, loop.step))) == 0:
        return simplify(IndexOp("-", loop.stop, loop.step))
    return simplify(IndexOp("-", loop.stop, Int(1)))


def _put(poly: Poly, atom: Atom, value: Index) -> Index:
    """The polynomial with one atom replaced."""
    total: Index = Int(0)
    for monomial, coefficient in poly.items():
        term: Index = Int(coefficient)
        for factor in monomial:
            term = IndexOp("*", term, value if factor == atom else factor)
        total = IndexOp("+", total, term)
    return simplify(total)


def _shifted(poly: Poly, domains: Mapping[str, tuple[int, ...]]) -> Poly:
    """The polynomial in how far each tunable lies above its least value, so that `BM - 1` is seen to be natural."""
    names = {a.name for m in poly for a in m if isinstance(a, Sym) and a.name in domains}
    if not names:
        return poly
    return polynomial(substitute(to_index(poly), {n: IndexOp("+", Sym(n), Int(min(domains[n]))) for n in names}))


def _positive_divisor(index: Index) -> Index:
    """`(-1) // n` is -1 for every positive n: divisors are sizes and tunables, and a loop over none of them does not run."""
    poly = polynomial(index)
    for monomial in list(poly):
        for atom in monomial:
            if isinstance(atom, IndexOp) and atom.op == "//" and atom.left == Int(-1):
                return _put(poly, atom, Int(-1))
    return index
