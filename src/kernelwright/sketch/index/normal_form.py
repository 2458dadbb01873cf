"""The normal form of integer expressions: sums of integer multiples of products of atoms.

An atom is a name (a size, a tunable, a loop variable), a `Leaf` (something with an identity and a range of its own, such as an axis of
the designer), or an `Opaque`: a quotient, remainder, minimum or maximum that did not simplify. Two expressions with one normal form
are equal for all values of their atoms. `combine` applies one operation, with those rules that hold whatever the values are;
what ranges decide is in `ranges.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

Operation = Literal["//", "%", "min", "max"]


class Leaf:
    """An atom that knows its own range. `key` places it among other atoms and is unique to what is equal to it; `name` is what a sketch
    calls it, if it has a place there, and `divisor` always divides it."""

    __slots__ = ()
    name: str | None = None
    divisor: int = 1

    @property
    def key(self) -> str:
        raise NotImplementedError

    def bounds(self) -> tuple[Poly | int | None, Poly | int | None]:
        """Least and greatest value, both included; None where there is no bound."""
        return None, None


class Opaque:
    """A quotient, remainder, minimum or maximum that did not simplify; a factor like a name."""

    __slots__ = ("_hash", "key", "left", "op", "right")

    def __init__(self, op: Operation, left: Poly, right: Poly) -> None:
        self.op, self.left, self.right = op, left, right
        text = f"{op}({left}, {right})" if op in ("min", "max") else f"{_wrapped(left, 1)} {op} {_wrapped(right, 0)}"
        self.key = f"~{text}"
        self._hash = hash((op, left, right))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Opaque)
            and self._hash == other._hash
            and (self.op, self.left, self.right) == (other.op, other.left, other.right)
        )

    def __repr__(self) -> str:
        return self.key[1:]


Atom = str | Leaf | Opaque
Monomial = tuple[Atom, ...]
Term = tuple[Monomial, int]


def key(atom: Atom) -> str:
    """By what atoms are sorted: names, then leaves, then what did not simplify."""
    return atom if isinstance(atom, str) else atom.key


def _order(term: Term) -> tuple[int, list[str]]:
    return -len(term[0]), [key(atom) for atom in term[0]]


class Poly:
    """A sum of integer multiples of products of atoms: sorted, longest products first, without zero terms. Immutable."""

    __slots__ = ("_hash", "_leaves", "terms")

    def __init__(self, terms: tuple[Term, ...] = ()) -> None:
        """Of sorted terms; `Poly.of` sorts."""
        self.terms = terms
        self._hash = hash(terms)
        self._leaves: frozenset[str | Leaf] | None = None

    @staticmethod
    def of(terms: Mapping[Monomial, int]) -> Poly:
        kept = [term for term in terms.items() if term[1]]
        return Poly(tuple(sorted(kept, key=_order) if len(kept) > 1 else kept))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Poly) and self._hash == other._hash and self.terms == other.terms)

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __repr__(self) -> str:
        from kernelwright.sketch.index.printing import to_text

        return to_text(self)

    # ---- what it is

    @property
    def constant(self) -> int | None:
        """The value, if this is a plain number."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    @property
    def offset(self) -> int:
        """The number that is added to everything else."""
        return self.terms[-1][1] if self.terms and not self.terms[-1][0] else 0

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """The factors of its terms, each once, in the order of the terms."""
        return tuple(dict.fromkeys(atom for monomial, _ in self.terms for atom in monomial))

    @property
    def leaves(self) -> frozenset[str | Leaf]:
        """All names and leaves it depends on, also those inside quotients and the like."""
        if self._leaves is None:
            found: set[str | Leaf] = set()
            for monomial, _ in self.terms:
                for atom in monomial:
                    if isinstance(atom, Opaque):
                        found |= atom.left.leaves | atom.right.leaves
                    else:
                        found.add(atom)
            self._leaves = frozenset(found)
        return self._leaves

    @property
    def names(self) -> frozenset[str]:
        """All names it depends on."""
        return frozenset(leaf for leaf in self.leaves if isinstance(leaf, str))

    @property
    def atom(self) -> Atom | None:
        """The atom, when it is exactly that."""
        if len(self.terms) == 1 and self.terms[0][1] == 1 and len(self.terms[0][0]) == 1:
            return self.terms[0][0][0]
        return None

    def linear(self) -> Iterator[tuple[Atom, int]]:
        """Its atoms with their factors, without the offset; for a sum in which no two atoms are multiplied."""
        for monomial, count in self.terms:
            if monomial:
                (atom,) = monomial
                yield atom, count

    def opaques(self) -> Iterator[Opaque]:
        """Quotients and the like, the inner ones first; one that stands twice comes twice."""
        for monomial, _ in self.terms:
            for atom in monomial:
                if isinstance(atom, Opaque):
                    yield from atom.left.opaques()
                    yield from atom.right.opaques()
                    yield atom

    def coefficient(self, leaf: str | Leaf) -> Poly | None:
        """The factor of a leaf (its stride along it) if the polynomial is linear in it, else None."""
        found: dict[Monomial, int] = {}
        for monomial, count in self.terms:
            times = 0
            for atom in monomial:
                if isinstance(atom, Opaque):
                    if leaf in atom.left.leaves or leaf in atom.right.leaves:
                        return None
                elif atom == leaf:
                    times += 1
            if times > 1:
                return None
            if times:
                rest = tuple(atom for atom in monomial if atom != leaf)
                found[rest] = found.get(rest, 0) + count
        return Poly.of(found)

    # ---- arithmetic

    def __add__(self, other: Poly | int) -> Poly:
        right = poly(other)
        if not right.terms:
            return self
        if not self.terms:
            return right
        terms = dict(self.terms)
        for monomial, count in right.terms:
            terms[monomial] = terms.get(monomial, 0) + count
        return Poly.of(terms)

    def __sub__(self, other: Poly | int) -> Poly:
        return self + poly(other) * -1

    def __mul__(self, other: Poly | int) -> Poly:
        right = poly(other)
        factor = right.constant
        if factor is not None:
            return self if factor == 1 else Poly(tuple((m, c * factor) for m, c in self.terms) if factor else ())
        terms: dict[Monomial, int] = {}
        for m1, c1 in self.terms:
            for m2, c2 in right.terms:
                product = tuple(sorted(m1 + m2, key=key)) if m1 and m2 else m1 or m2
                terms[product] = terms.get(product, 0) + c1 * c2
        return Poly.of(terms)

    def __floordiv__(self, other: Poly | int) -> Poly:
        """The quotient, rounded towards minus infinity; ranges that the leaves carry themselves are used."""
        from kernelwright.sketch.index.ranges import OWN

        return OWN.combine("//", self, poly(other))

    def __mod__(self, other: Poly | int) -> Poly:
        """What floor division leaves over."""
        from kernelwright.sketch.index.ranges import OWN

        return OWN.combine("%", self, poly(other))

    def substitute(
        self,
        values: Mapping[str, Poly] | Mapping[Leaf, Poly] | Mapping[str | Leaf, Poly],
        apply: Callable[[str, Poly, Poly], Poly] | None = None,
    ) -> Poly:
        """Replaces names and leaves; quotients and the like are rebuilt by `apply` and simplify anew."""
        wanted: Mapping[str | Leaf, Poly] = values  # type: ignore[assignment]  # a mapping's key type is invariant
        apply = apply or combine
        if not (self.leaves & wanted.keys()):
            return self
        result = Poly()
        for monomial, count in self.terms:
            product = poly(count)
            for atom in monomial:
                if isinstance(atom, Opaque):
                    left, right = atom.left.substitute(values, apply), atom.right.substitute(values, apply)
                    same = left is atom.left and right is atom.right
                    product = product * (_one(atom) if same else apply(atom.op, left, right))
                else:
                    product = product * wanted.get(atom, _one(atom))
            result = result + product
        return result


def _wrapped(p: Poly, terms: int) -> str:
    """As a side of `//` or `%`: on the left, one product needs no parentheses."""
    text = str(p)
    plain = " " not in text or len(p.terms) == terms or (isinstance(p.atom, Opaque) and p.atom.op in ("min", "max"))
    return text if plain and not text.startswith("-") else f"({text})"


def _one(atom: Atom) -> Poly:
    return Poly((((atom,), 1),))


_NUMBERS = {n: Poly((((), n),)) if n else Poly() for n in range(-16, 65)}


def poly(value: Poly | int | Atom) -> Poly:
    """A number, a name, or another atom as a polynomial."""
    if isinstance(value, Poly):
        return value
    if isinstance(value, int):
        return _NUMBERS.get(value) or Poly((((), value),) if value else ())
    return _one(value)


# ---------------------------------------------------------------- division, minimum, maximum: what holds for all values


def combine(op: str, left: Poly, right: Poly) -> Poly:
    """One operation of a sketch's integers on two normal forms."""
    match op:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "//":
            return _quotient(left, right)
        case "%":
            return _remainder(left, right)
        case "min" | "max":
            gap = (left - right).constant
            if gap is not None:
                return left if (gap <= 0) == (op == "min") else right
            first, second = sorted((left, right), key=str)
            return _one(Opaque(op, first, second))
    raise ValueError(f"unknown integer operation {op!r}")


def split(left: Poly, right: Poly) -> tuple[Poly, Poly]:
    """`(quotient, rest)` with `left = quotient * right + rest`: the terms that the divisor shows in go to the quotient, whole
    multiples of it in the offset, too. Exact whatever the values are; the rest need not lie below the divisor."""
    if len(right.terms) != 1:
        return (poly(1), Poly()) if left == right and left else (Poly(), left)
    divisor, scale = right.terms[0]
    quotient: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, count in left.terms:
        reduced = _without(monomial, divisor)
        whole, remainder = divmod(count, scale) if reduced is not None else (0, count)
        if reduced is not None and whole and (remainder == 0 or not reduced):
            quotient[reduced] = whole
            if remainder:
                rest[monomial] = remainder
        else:
            rest[monomial] = count
    return Poly.of(quotient), Poly.of(rest)


def _without(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    """`monomial / divisor` when every atom of the divisor is in it."""
    if not divisor:
        return monomial
    rest = list(monomial)
    for atom in divisor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def _quotient(left: Poly, right: Poly) -> Poly:
    quotient, rest = split(left, right)
    if not rest:
        return quotient
    return quotient + rest_quotient(rest, right)


def rest_quotient(rest: Poly, right: Poly) -> Poly:
    """`rest // right` after the terms were split off that the divisor shows in."""
    top, bottom = rest.constant, right.constant
    if bottom:
        if top is not None:
            return poly(top // bottom)
        inner = rest.atom
        if bottom > 0 and isinstance(inner, Opaque) and inner.op == "//" and (inner.right.constant or 0) > 0:
            return _quotient(inner.left, inner.right * bottom)  # (x // a) // b is x // (a * b) for positive a and b
    return _one(Opaque("//", rest, right))


def _remainder(left: Poly, right: Poly) -> Poly:
    _, rest = split(left, right)
    return rest_remainder(rest, right) if rest else rest


def rest_remainder(rest: Poly, right: Poly) -> Poly:
    """`rest % right` after the terms were split off that the divisor shows in."""
    top, bottom = rest.constant, right.constant
    if top is not None and bottom:
        return poly(top % bottom)
    return _one(Opaque("%", rest, right))


def rejoined(p: Poly) -> Poly:
    """`by * (x // by) + x % by` written as `x` again: a position that a reshape took apart and memory puts together."""
    for monomial, count in p.terms:
        for place, atom in enumerate(monomial):
            if isinstance(atom, Opaque) and atom.op == "%":
                others = Poly(((monomial[:place] + monomial[place + 1 :], count),))
                whole = combine("//", atom.left, atom.right) * atom.right * others
                smaller = p - whole
                if len(smaller.terms) < len(p.terms):
                    return rejoined(smaller - Poly(((monomial, count),)) + atom.left * others)
    return p
