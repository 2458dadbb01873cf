"""Index arithmetic: integer polynomials over names, with what is known about each name's range.

In: `nodes.Index` trees and C loop variables. Out: normal forms that can be compared, divided, bounded and printed as C.
Everything an emitter wants to know about an access (is it inside the tensor, what is its stride along a loop) is asked here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from kernelwright.sketch import nodes


@dataclass(frozen=True)
class Opaque:
    """A quotient, remainder, minimum or maximum that did not simplify; a factor like a name."""

    op: Literal["//", "%", "min", "max"]
    left: Poly
    right: Poly


Atom = str | Opaque
Monomial = tuple[Atom, ...]


def _order(monomial: Monomial) -> tuple[int, str]:
    return (-len(monomial), repr(monomial))


@dataclass(frozen=True)
class Poly:
    """A sum of integer multiples of products of atoms, sorted, without zero terms."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    @staticmethod
    def of(terms: Mapping[Monomial, int]) -> Poly:
        return Poly(tuple(sorted(((m, c) for m, c in terms.items() if c), key=lambda t: _order(t[0]))))

    @cached_property
    def constant(self) -> int | None:
        """The value, if this is a plain number."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and not self.terms[0][0]:
            return self.terms[0][1]
        return None

    @cached_property
    def atoms(self) -> frozenset[Atom]:
        return frozenset(atom for monomial, _ in self.terms for atom in monomial)

    @cached_property
    def names(self) -> frozenset[str]:
        """All names, also those inside quotients and the like."""
        found: set[str] = set()
        for atom in self.atoms:
            if isinstance(atom, str):
                found.add(atom)
            else:
                found |= atom.left.names | atom.right.names
        return frozenset(found)

    def __add__(self, other: Poly | int) -> Poly:
        terms = dict(self.terms)
        for monomial, count in poly(other).terms:
            terms[monomial] = terms.get(monomial, 0) + count
        return Poly.of(terms)

    def __sub__(self, other: Poly | int) -> Poly:
        return self + poly(other) * -1

    def __mul__(self, other: Poly | int) -> Poly:
        terms: dict[Monomial, int] = {}
        for m1, c1 in self.terms:
            for m2, c2 in poly(other).terms:
                product = tuple(sorted(m1 + m2, key=repr))
                terms[product] = terms.get(product, 0) + c1 * c2
        return Poly.of(terms)

    def coefficient(self, name: str) -> Poly | None:
        """The factor of `name` if the polynomial is linear in it, else None."""
        found: dict[Monomial, int] = {}
        for monomial, count in self.terms:
            if (
                any(isinstance(a, Opaque) and name in (a.left.names | a.right.names) for a in monomial)
                or monomial.count(name) > 1
            ):
                return None
            if name in monomial:
                rest = tuple(a for a in monomial if a != name)
                found[rest] = found.get(rest, 0) + count
        return Poly.of(found)

    def substitute(self, values: Mapping[str, Poly]) -> Poly:
        """Replaces names; quotients and the like are rebuilt and simplify anew."""
        if not (self.names & values.keys()):
            return self
        result = Poly()
        for monomial, count in self.terms:
            product = poly(count)
            for atom in monomial:
                product = product * _substitute_atom(atom, values)
            result = result + product
        return result


def _substitute_atom(atom: Atom, values: Mapping[str, Poly]) -> Poly:
    if isinstance(atom, str):
        return values[atom] if atom in values else poly(atom)
    return combine(atom.op, atom.left.substitute(values), atom.right.substitute(values))


def rejoined(p: Poly) -> Poly:
    """`by * (x // by) + x % by` written as `x` again: a flat position that a reshape took apart and memory puts together."""
    for monomial, count in p.terms:
        if len(monomial) == 1 and isinstance(monomial[0], Opaque) and monomial[0].op == "%":
            rest = monomial[0]
            whole = combine("//", rest.left, rest.right) * rest.right * count
            smaller = p - whole
            if len(smaller.terms) < len(p.terms):
                return rejoined(smaller - Poly(((monomial, count),)) + rest.left * count)
    return p


def poly(value: Poly | int | str) -> Poly:
    """A number or a name as a polynomial."""
    if isinstance(value, Poly):
        return value
    if isinstance(value, str):
        return Poly((((value,), 1),))
    return Poly((((), value),)) if value else Poly()


Range = tuple[Poly | None, Poly | None]
"""Smallest and largest value of a name, both included; None where unknown."""


@dataclass
class Ranges:
    """What is known of each name. Names that are missing (dynamic sizes) are at least zero."""

    known: dict[str, Range]

    def lower(self, p: Poly) -> Poly | None:
        """A polynomial free of ranged names that is never above `p`."""
        return self._bound(p, 0)

    def upper(self, p: Poly) -> Poly | None:
        return self._bound(p, 1)

    def _bound(self, p: Poly, side: int) -> Poly | None:
        for _ in range(64):
            name = next((n for n in sorted(p.names, reverse=True) if n in self.known), None)
            if name is None:
                break
            factor = p.coefficient(name)
            if factor is None:
                return self._bound_opaque(p, side)
            low_sign = self._sign(factor)
            if low_sign is None:
                return None
            chosen = self.known[name][side if low_sign > 0 else 1 - side]
            if chosen is None:
                return None
            p = p.substitute({name: chosen})
        if any(isinstance(a, Opaque) for a in p.atoms):
            return self._bound_opaque(p, side)
        return p

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
            elif any(isinstance(a, Opaque) for a in monomial):
                return None
            else:
                plain[monomial] = count
        rest = self._bound(Poly.of(plain), side)
        return None if rest is None else total + rest

    def _bound_atom(self, atom: Opaque, side: int) -> Poly | None:
        if atom.op == "%":
            return (atom.right - 1 if side else Poly()) if self._sign(atom.right) == 1 else None
        left = self._bound(atom.left, side)
        right = self._bound(atom.right, side)
        if atom.op == "//":
            divisor = atom.right.constant
            if left is None or divisor is None or divisor <= 0:
                return None
            return combine("//", left, atom.right)
        if left is None or right is None:
            # one side of a min bounds it from above, of a max from below
            return (left or right) if (atom.op == "min") == bool(side) else None
        if left.constant is not None and right.constant is not None:
            return combine(atom.op, left, right)
        return left if (atom.op == "min") == bool(side) else None

    def _sign(self, p: Poly) -> int | None:
        if p.constant is not None:
            return 1 if p.constant >= 0 else -1
        if self.nonnegative(p):
            return 1
        if self.nonnegative(p * -1):
            return -1
        return None

    def nonnegative(self, p: Poly) -> bool:
        """True only if `p >= 0` for all values in range (unknown names are sizes: at least 0)."""
        if p.constant is not None:
            return p.constant >= 0
        low = self.lower(p) if any(n in self.known for n in p.names) or any(isinstance(a, Opaque) for a in p.atoms) else p
        if low is None:
            return False
        return all(count >= 0 and all(isinstance(a, str) for a in monomial) for monomial, count in low.terms)

    def below(self, p: Poly, limit: Poly) -> bool:
        """True only if `p < limit` always."""
        return self.nonnegative(limit - p - 1)

    def divide(self, p: Poly, divisor: Poly) -> tuple[Poly, Poly]:
        """(p // divisor, p % divisor), split where the divisible part shows."""
        number = divisor.constant
        if number == 1:
            return p, Poly()
        quotient: dict[Monomial, int] = {}
        rest: dict[Monomial, int] = {}
        factors = divisor.terms[0] if len(divisor.terms) == 1 else None
        for monomial, count in p.terms:
            split = _divide_term(monomial, count, factors) if factors else None
            if split is None:
                rest[monomial] = count
                continue
            whole_monomial, whole, left = split
            if whole:
                quotient[whole_monomial] = quotient.get(whole_monomial, 0) + whole
            if left:
                rest[monomial] = left
        remainder = Poly.of(rest)
        if self.nonnegative(remainder) and self.below(remainder, divisor):
            return Poly.of(quotient), remainder
        return Poly.of(quotient) + combine("//", remainder, divisor), combine("%", remainder, divisor)


def _divide_term(monomial: Monomial, count: int, factors: tuple[Monomial, int]) -> tuple[Monomial, int, int] | None:
    """A term divided by a single-term divisor: (monomial of the quotient, its count, count left over in the remainder)."""
    names, number = factors
    rest = list(monomial)
    for atom in names:
        if atom not in rest:
            return None
        rest.remove(atom)
    if number <= 0 or (monomial and count % number):
        return None if monomial or number <= 0 else (tuple(rest), count // number, count % number)
    return tuple(rest), count // number, count % number


def combine(op: str, left: Poly, right: Poly) -> Poly:
    """One operation of `nodes.IndexOp` on polynomials, folded where both are numbers."""
    if op == "+":
        return left + right
    if op == "-":
        return left - right
    if op == "*":
        return left * right
    a, b = left.constant, right.constant
    if a is not None and b is not None and not (op in ("//", "%") and b == 0):
        return poly({"//": lambda: a // b, "%": lambda: a % b, "min": lambda: min(a, b), "max": lambda: max(a, b)}[op]())
    if op in ("min", "max"):
        gap = (left - right).constant
        if gap is not None:
            return left if (gap <= 0) == (op == "min") else right
    if op == "//" and b == 1:
        return left
    if op == "%" and b == 1:
        return Poly()
    return Poly((((Opaque(op, left, right),), 1),))  # type: ignore[arg-type]


def from_index(index: nodes.Index, names: Mapping[str, Poly]) -> Poly:
    """A sketch index; `names` gives sizes, tunables and loop variables their meaning here."""
    if isinstance(index, nodes.Int):
        return poly(index.value)
    if isinstance(index, nodes.Sym):
        return names.get(index.name, poly(index.name))
    return combine(index.op, from_index(index.left, names), from_index(index.right, names))


def to_c(p: Poly) -> str:
    """C text; sums are not wrapped in parentheses."""
    if not p.terms:
        return "0"
    text = ""
    for monomial, count in sorted(p.terms, key=lambda t: t[1] < 0):
        factors = [_atom_to_c(atom) for atom in monomial]
        size = abs(count)
        if size != 1 or not factors:
            factors.append(str(size) if size < 2**31 else f"{size}L")
        product = " * ".join(factors)
        text = (
            (f"{text} - {product}" if count < 0 else f"{text} + {product}")
            if text
            else (f"-{product}" if count < 0 else product)
        )
    return text


def factor_to_c(p: Poly) -> str:
    """C text that can stand beside `*`."""
    text = to_c(p)
    return text if len(p.terms) <= 1 and not text.startswith("-") and " " not in text else f"({text})"


def _atom_to_c(atom: Atom) -> str:
    if isinstance(atom, str):
        return atom
    left, right = to_c(atom.left), to_c(atom.right)
    name = {"//": "floor_div", "%": "floor_mod", "min": "min_of<int64_t>", "max": "max_of<int64_t>"}[atom.op]
    return f"{name}({left}, {right})"
