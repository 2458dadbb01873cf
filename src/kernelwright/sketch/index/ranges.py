"""What is known of names, and what follows: bounds, signs, divisors, and expressions simplified by them.

A name's range is `(low, high)`, both included, in numbers or in polynomials of other names (`0 … N - 1` for a loop over a size that
is no number); None where nothing is known. Its divisor is a number that always divides it. Leaves know their own range. Every answer
is exact: "yes" means for all values in range, and "no" may mean "not seen".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kernelwright.sketch.index import intervals
from kernelwright.sketch.index.intervals import Interval
from kernelwright.sketch.index.normal_form import (
    Atom,
    Leaf,
    Monomial,
    Opaque,
    Poly,
    combine,
    poly,
    rest_quotient,
    rest_remainder,
    split,
)

Bound = Poly | int | None
Range = tuple[Bound, Bound]
"""Smallest and largest value of a name, both included; None where unknown."""

STEPS = 64
"""Names that one bound eliminates at most."""


@dataclass
class Ranges:
    """The range of each name (and of leaves, where more is known than they know themselves), the divisor of those that have one, and
    the least value of names that are in neither (lowering: 0, since what is not a loop is a size)."""

    known: dict[Any, Range]
    divisors: Mapping[str, int] = field(default_factory=dict)
    others: int | None = 0

    def range_of(self, leaf: str | Leaf) -> Range:
        """What is known of one name or leaf."""
        found = self.known.get(leaf)
        if found is None:
            return leaf.bounds() if isinstance(leaf, Leaf) else (self.others, None)
        return found

    # ---- numbers: the interval of every value

    def interval(self, p: Poly) -> Interval:
        """The least and the greatest value, as numbers."""
        total: Interval = (0, 0)
        for monomial, count in p.terms:
            term: Interval = (count, count)
            for atom in monomial:
                term = intervals.times(term, self._atom_interval(atom))
            total = intervals.plus(total, term)
            if total == intervals.UNKNOWN:
                break
        return total

    def _atom_interval(self, atom: Atom) -> Interval:
        if isinstance(atom, Opaque):
            return intervals.COMBINE[atom.op](self.interval(atom.left), self.interval(atom.right))
        low, high = self.range_of(atom)
        return (
            self.interval(low)[0] if isinstance(low, Poly) else low,
            self.interval(high)[1] if isinstance(high, Poly) else high,
        )

    # ---- polynomials: bounds that keep what terms have in common

    def lower(self, p: Poly) -> Poly | None:
        """A polynomial free of ranged names that is never above `p`."""
        return self._bound(p, 0)

    def upper(self, p: Poly) -> Poly | None:
        """A polynomial free of ranged names that is never below `p`."""
        return self._bound(p, 1)

    def _ranged(self, p: Poly) -> str | Leaf | None:
        """The name to eliminate next: one in whose terms no other name's bounds are given."""
        leaves = sorted((n for n in p.leaves if isinstance(n, Leaf)), key=lambda leaf: leaf.name or "")  # sizes last
        here = sorted((n for n in p.names if n in self.known), reverse=True) + leaves
        if len(here) < 2:
            return here[0] if here else None
        inner = {leaf for name in here for bound in self.range_of(name) if isinstance(bound, Poly) for leaf in bound.leaves}
        return next((name for name in here if name not in inner), here[0])

    def _bound(self, p: Poly, side: int) -> Poly | None:
        for _ in range(STEPS):
            name = self._ranged(p)
            if name is None:
                break
            factor = p.coefficient(name)
            if factor is None:
                return self._bound_opaque(p, side) if any(isinstance(atom, Opaque) for atom in p.atoms) else None
            sign = self._sign(factor)
            if sign is None:
                return None
            chosen = self.range_of(name)[side if sign > 0 else 1 - side]
            if chosen is None:
                return None
            p = p.substitute({name: poly(chosen)})
        return self._bound_opaque(p, side) if any(isinstance(atom, Opaque) for atom in p.atoms) else p

    def _bound_opaque(self, p: Poly, side: int) -> Poly | None:
        """Bounds a sum term by term where each opaque factor stands alone with a number."""
        total = Poly()
        plain: dict[Monomial, int] = {}
        for monomial, count in p.terms:
            if len(monomial) == 1 and isinstance(monomial[0], Opaque):
                bound = self._bound_atom(monomial[0], side if count > 0 else 1 - side)
                if bound is None:
                    return None
                total = total + bound * count
            elif any(isinstance(atom, Opaque) for atom in monomial):
                return None
            else:
                plain[monomial] = count
        rest = self._bound(Poly.of(plain), side)
        return None if rest is None else total + rest

    def _bound_atom(self, atom: Opaque, side: int) -> Poly | None:
        if atom.op == "%":
            if self._sign(atom.right) != 1:
                return None
            return atom.right - 1 if side else Poly()
        left = self._bound(atom.left, side)
        if atom.op == "//":
            divisor = atom.right.constant
            return None if left is None or divisor is None or divisor <= 0 else combine("//", left, atom.right)
        right = self._bound(atom.right, side)
        either = (atom.op == "min") == bool(side)  # one side of a min bounds it from above, of a max from below
        if left is None or right is None:
            return (left if left is not None else right) if either else None
        if left.constant is not None and right.constant is not None:
            return combine(atom.op, left, right)
        return left if either else None

    def _sign(self, p: Poly) -> int | None:
        if p.constant is not None:
            return 1 if p.constant >= 0 else -1
        return 1 if self.nonnegative(p) else -1 if self.nonnegative(p * -1) else None

    # ---- questions

    def nonnegative(self, p: Poly) -> bool:
        """Whether `p >= 0`."""
        if p.constant is not None:
            return p.constant >= 0
        low = self.lower(p)
        if low is not None:
            if all(count >= 0 for _, count in low.terms) and self._natural(low):
                return True
            if low.constant is not None and not any(isinstance(a, Opaque) for a in p.atoms):
                return False  # the bound is what it is: intervals know no better
        least = self.interval(p)[0]
        return least is not None and least >= 0

    def _natural(self, p: Poly) -> bool:
        """Whether no factor of any term can be negative."""
        return all(self.others is not None and self.others >= 0 and isinstance(atom, str) for atom in p.atoms)

    def below(self, p: Poly, limit: Poly | int) -> bool:
        """Whether `p < limit`."""
        return self.nonnegative(poly(limit) - p - 1)

    def within(self, p: Poly, extent: Poly | int) -> bool:
        """Whether `0 <= p < extent`: a position inside an axis."""
        return self.nonnegative(p) and self.below(p, extent)

    def divisor(self, p: Poly) -> int:
        """The greatest number seen to divide every value (0 for zero itself)."""
        return math.gcd(*(count * math.prod(map(self._atom_divisor, monomial)) for monomial, count in p.terms))

    def _atom_divisor(self, atom: Atom) -> int:
        if isinstance(atom, str):
            return self.divisors.get(atom, 1)
        if isinstance(atom, Leaf):
            return atom.divisor
        left, right = self.divisor(atom.left), self.divisor(atom.right)
        if atom.op == "//":
            by = atom.right.constant
            return left // abs(by) if by and left % by == 0 else 1
        return math.gcd(left, right)

    def divisible(self, p: Poly, by: Poly | int) -> bool:
        """Whether `p % by == 0`."""
        number = poly(by).constant
        if number == 0:
            return False
        rest = split(p, poly(by))[1]
        return not rest or (number is not None and self.divisor(rest) % number == 0)

    def equal(self, left: Poly, right: Poly) -> bool:
        """Whether two expressions always have the same value."""
        return left == right or self.simplified(left) == self.simplified(right)

    # ---- simplification by ranges

    def combine(self, op: str, left: Poly, right: Poly) -> Poly:
        """One operation, with what the ranges decide taken away."""
        if op in ("//", "%"):
            return self.divide(left, right)[op == "%"]
        if op in ("min", "max"):
            gap = self.interval(left - right)
            if gap[1] is not None and gap[1] <= 0:
                return left if op == "min" else right
            if gap[0] is not None and gap[0] >= 0:
                return right if op == "min" else left
        return combine(op, left, right)

    def divide(self, p: Poly, divisor: Poly) -> tuple[Poly, Poly]:
        """`(p // divisor, p % divisor)`, split where the divisible part shows."""
        if divisor.constant == 1:
            return p, Poly()
        quotient, rest = split(p, divisor)
        if not rest:
            return quotient, rest
        number = divisor.constant
        if number is not None and number > 0:
            low, high = self.interval(p)
            if low is not None and high is not None and low // number == high // number:
                return poly(low // number), p - low // number * number
            low, high = self.interval(rest) if quotient else (low, high)
            if low is not None and high is not None and low // number == high // number:
                return quotient + low // number, rest - low // number * number
            if (factor := math.gcd(number, self.divisor(rest))) > 1 and factor == number:
                return quotient + rest_quotient(rest, divisor), Poly()
        if (number is None or self.known) and self.within(rest, divisor):
            return quotient, rest
        return quotient + rest_quotient(rest, divisor), rest_remainder(rest, divisor)

    def simplified(self, p: Poly) -> Poly:
        """The expression with every quotient, remainder, minimum and maximum taken away that the ranges decide."""
        result = Poly()
        for monomial, count in p.terms:
            product = poly(count)
            for atom in monomial:
                if isinstance(atom, Opaque):
                    product = product * self.combine(atom.op, self.simplified(atom.left), self.simplified(atom.right))
                else:
                    product = product * poly(atom)
            result = result + product
        return result


OWN = Ranges({}, others=None)
"""Nothing is known but what leaves know of themselves."""
