"""Integer expressions as polynomials: simplify, evaluate, compare, bound.

In: `nodes.Index` expressions over sizes, tunables and loop variables. Out: the same expressions in a normal form, or numbers.
An expression becomes a polynomial (`Poly`) whose atoms are names and those `//`, `%`, `min`, `max` that could not be resolved;
two expressions with one polynomial are equal for all values of their names. Everything here is exact, and says "unknown"
(None) rather than guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import product
from typing import Literal

from kernelwright.sketch.nodes import Index, IndexOp, Int, Sym

Atom = Sym | IndexOp
Monomial = tuple[Atom, ...]
Poly = dict[Monomial, int]
Interval = tuple[int | None, int | None]
"""Inclusive lower and upper bound; None means unbounded."""


# ---------------------------------------------------------------- building


def add(left: Index, right: Index) -> Index:
    """`left + right` without needless zeros, for code that builds sketches."""
    return simplify(IndexOp("+", left, right))


def mul(left: Index, right: Index) -> Index:
    """`left * right`, simplified."""
    return simplify(IndexOp("*", left, right))


def ceil_div(left: Index, right: Index) -> Index:
    """How many tiles of `right` cover `left`: `-((-left) // right)`, simplified."""
    negated = IndexOp("-", Int(0), left)
    return simplify(IndexOp("-", Int(0), IndexOp("//", negated, right)))


# ---------------------------------------------------------------- polynomials


def _key(atom: Atom) -> str:
    return atom.name if isinstance(atom, Sym) else f"~{show(atom)}"


def _order(monomial: Monomial) -> tuple[int, tuple[str, ...]]:
    return (-len(monomial), tuple(_key(atom) for atom in monomial))


def _plus(left: Poly, right: Poly, factor: int = 1) -> Poly:
    result = dict(left)
    for monomial, coefficient in right.items():
        total = result.get(monomial, 0) + factor * coefficient
        if total:
            result[monomial] = total
        else:
            result.pop(monomial, None)
    return result


def _times(left: Poly, right: Poly) -> Poly:
    result: Poly = {}
    for (first, a), (second, b) in product(left.items(), right.items()):
        result = _plus(result, {tuple(sorted(first + second, key=_key)): a * b})
    return result


def constant(poly: Poly) -> int | None:
    """The number a polynomial is, or None when names are left in it."""
    if not poly:
        return 0
    return poly[()] if len(poly) == 1 and () in poly else None


def _without(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    """`monomial / divisor` when every atom of the divisor is in it."""
    rest = list(monomial)
    for atom in divisor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def _divide(left: Poly, right: Poly) -> tuple[Poly, Poly]:
    """`left = quotient * right + rest`, taking out the terms that one monomial divides; exact whatever the values are."""
    if len(right) != 1:
        return ({(): 1}, {}) if left == right and left else ({}, left)
    (divisor, scale), quotient, rest = next(iter(right.items())), {}, {}
    for monomial, coefficient in left.items():
        reduced = _without(monomial, divisor)
        if reduced is None:
            rest[monomial] = coefficient
            continue
        whole, remainder = divmod(coefficient, scale)
        if whole and (remainder == 0 or not reduced):
            quotient[reduced] = whole
            if remainder:
                rest[monomial] = remainder
        else:
            rest[monomial] = coefficient
    return quotient, rest


def _floor_div(left: Poly, right: Poly) -> Poly:
    quotient, rest = _divide(left, right)
    if not rest:
        return quotient
    top, bottom = constant(rest), constant(right)
    if top is not None and bottom:
        return _plus(quotient, {(): top // bottom} if top // bottom else {})
    if bottom is not None and bottom > 0 and len(rest) == 1:
        (monomial, coefficient) = next(iter(rest.items()))
        inner = monomial[0] if len(monomial) == 1 and coefficient == 1 else None
        if isinstance(inner, IndexOp) and inner.op == "//" and isinstance(inner.right, Int) and inner.right.value > 0:
            # (x // a) // b is x // (a * b) for positive a and b.
            return _plus(quotient, _floor_div(polynomial(inner.left), {(): inner.right.value * bottom}))
    return _plus(quotient, {(IndexOp("//", to_index(rest), to_index(right)),): 1})


def _modulo(left: Poly, right: Poly) -> Poly:
    _, rest = _divide(left, right)
    if not rest:
        return {}
    top, bottom = constant(rest), constant(right)
    if top is not None and bottom:
        return {(): top % bottom} if top % bottom else {}
    return {(IndexOp("%", to_index(rest), to_index(right)),): 1}


def _extreme(op: Literal["min", "max"], left: Poly, right: Poly) -> Poly:
    gap = constant(_plus(left, right, -1))
    if gap is not None:
        return left if (gap <= 0) == (op == "min") else right
    first, second = sorted((to_index(left), to_index(right)), key=show)
    return {(IndexOp(op, first, second),): 1}


@lru_cache(maxsize=65536)
def _polynomial(index: Index) -> tuple[tuple[Monomial, int], ...]:
    match index:
        case Int(value):
            poly: Poly = {(): value} if value else {}
        case Sym():
            poly = {(index,): 1}
        case IndexOp(op, left, right):
            a, b = polynomial(left), polynomial(right)
            match op:
                case "+":
                    poly = _plus(a, b)
                case "-":
                    poly = _plus(a, b, -1)
                case "*":
                    poly = _times(a, b)
                case "//":
                    poly = _floor_div(a, b)
                case "%":
                    poly = _modulo(a, b)
                case "min" | "max":
                    poly = _extreme(op, a, b)
    return tuple(poly.items())


def polynomial(index: Index) -> Poly:
    """The normal form of an expression: a coefficient for each product of atoms."""
    return dict(_polynomial(index))


def to_index(poly: Poly) -> Index:
    """A polynomial written out as an expression, in a fixed order (positive terms first)."""
    result: Index | None = None
    for monomial in sorted(poly, key=lambda m: (poly[m] < 0, _order(m))):
        coefficient = poly[monomial]
        negative = coefficient < 0 and result is not None
        scale = -coefficient if negative else coefficient
        factors: list[Index] = list(monomial)
        if scale != 1 or not factors:
            factors.append(Int(scale))
        term = factors[0]
        for factor in factors[1:]:
            term = IndexOp("*", term, factor)
        if result is None:
            result = term
        else:
            result = IndexOp("-" if negative else "+", result, term)
    return result if result is not None else Int(0)


# ---------------------------------------------------------------- what others call


def simplify(index: Index) -> Index:
    """The normal form, as an expression again: equal expressions become one tree."""
    return to_index(polynomial(index))


def equal(left: Index, right: Index) -> bool:
    """True when both are the same for all values of their names (False may also mean "not seen to be")."""
    return left == right or polynomial(left) == polynomial(right)


def evaluate(index: Index, env: Mapping[str, int]) -> int:
    """The number an expression is, with every name looked up in `env`."""
    match index:
        case Int(value):
            return value
        case Sym(name):
            return env[name]
        case IndexOp(op, left, right):
            return _apply(op, evaluate(left, env), evaluate(right, env))
    raise TypeError(f"not an index: {index!r}")


def _apply(op: str, a: int, b: int) -> int:
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "//":
            return a // b
        case "%":
            return a % b
        case "min":
            return min(a, b)
        case "max":
            return max(a, b)
    raise ValueError(f"unknown integer operation {op!r}")


def substitute(index: Index, env: Mapping[str, Index | int]) -> Index:
    """The expression with names replaced, simplified."""
    return simplify(_replace(index, env))


def _replace(index: Index, env: Mapping[str, Index | int]) -> Index:
    match index:
        case Sym(name):
            new = env.get(name, index)
            return Int(new) if isinstance(new, int) else new
        case IndexOp(op, left, right):
            return IndexOp(op, _replace(left, env), _replace(right, env))
    return index


def symbols(index: Index) -> frozenset[str]:
    """All names in an expression."""
    match index:
        case Sym(name):
            return frozenset({name})
        case IndexOp(_, left, right):
            return symbols(left) | symbols(right)
    return frozenset()


def show(index: Index) -> str:
    """The expression as it is written in a sketch."""
    from kernelwright.sketch.print import index_source

    return index_source(index)


# ---------------------------------------------------------------- intervals


def bounds(index: Index, ranges: Mapping[str, Interval]) -> Interval:
    """The least and greatest value an expression can have when each name lies in its range; names without one are unbounded.

    Works on the normal form, so that terms which cancel do not widen the result.
    """
    low: int | None = 0
    high: int | None = 0
    for monomial, coefficient in polynomial(index).items():
        term: Interval = (coefficient, coefficient)
        for atom in monomial:
            term = _product(term, _atom_bounds(atom, ranges))
        low = None if low is None or term[0] is None else low + term[0]
        high = None if high is None or term[1] is None else high + term[1]
    return low, high


def _atom_bounds(atom: Atom, ranges: Mapping[str, Interval]) -> Interval:
    if isinstance(atom, Sym):
        return ranges.get(atom.name, (None, None))
    left, right = bounds(atom.left, ranges), bounds(atom.right, ranges)
    match atom.op:
        case "min":
            return _least(left[0], right[0]), _lesser_known(left[1], right[1], min)
        case "max":
            return _lesser_known(left[0], right[0], max), (None if None in (left[1], right[1]) else _most(left[1], right[1]))
        case "//":
            return _quotient(left, right)
        case "%":
            return _remainder(left, right)
    return None, None


def _least(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else min(a, b)


def _most(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else max(a, b)


def _lesser_known(a: int | None, b: int | None, pick: object) -> int | None:
    """min (or max) of two bounds of which one side alone is already a bound."""
    if a is None or b is None:
        return b if a is None else a
    return min(a, b) if pick is min else max(a, b)


def _product(a: Interval, b: Interval) -> Interval:
    if a in ((0, 0),) or b in ((0, 0),):
        return 0, 0
    if a[0] is None or a[1] is None or b[0] is None or b[1] is None:
        if a[0] is not None and a[0] >= 0 and b[0] is not None and b[0] >= 0:
            return a[0] * b[0], (None if a[1] is None or b[1] is None else a[1] * b[1])
        if a[0] is not None and a[0] == a[1]:
            low, high = (None if v is None else a[0] * v for v in b)
            return (low, high) if a[0] > 0 else (high, low)
        if b[0] is not None and b[0] == b[1]:
            return _product(b, a)
        return None, None
    corners = [x * y for x in (a[0], a[1]) for y in (b[0], b[1])]
    return min(corners), max(corners)


def _quotient(a: Interval, b: Interval) -> Interval:
    if b[0] is None or b[0] <= 0:
        return None, None
    if b[1] is None:
        low = None if a[0] is None else min(a[0] // b[0], 0 if a[0] >= 0 else -1)
        high = None if a[1] is None else max(a[1] // b[0], 0 if a[1] >= 0 else -1)
        return low, high
    low = None if a[0] is None else min(a[0] // b[0], a[0] // b[1])
    high = None if a[1] is None else max(a[1] // b[0], a[1] // b[1])
    return low, high


def _remainder(a: Interval, b: Interval) -> Interval:
    if b[0] is None or b[0] <= 0:
        return None, None
    if a[0] is not None and a[1] is not None:
        if b[0] == b[1] and a[0] // b[0] == a[1] // b[0]:
            return a[0] % b[0], a[1] % b[0]
        if a[0] >= 0 and a[1] < b[0]:
            return a
    high = None if b[1] is None else b[1] - 1
    if a[0] is not None and a[0] >= 0 and a[1] is not None and (high is None or a[1] < high):
        high = a[1]
    return 0, high


def joined(intervals: Iterable[Interval]) -> Interval:
    """The smallest interval around several."""
    items = list(intervals)
    lows, highs = [i[0] for i in items], [i[1] for i in items]
    low = None if None in lows else min(v for v in lows if v is not None)
    high = None if None in highs else max(v for v in highs if v is not None)
    return low, high
