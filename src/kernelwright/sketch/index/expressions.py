"""A sketch's integer expressions (`nodes.Index`) and their normal form: simplify, compare, substitute, bound, evaluate.

In: trees over sizes, tunables and loop variables. Out: the same in normal form, or as trees again; or numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from kernelwright.sketch.index.intervals import Interval
from kernelwright.sketch.index.normal_form import Leaf, Opaque, Poly, combine, poly
from kernelwright.sketch.index.ranges import Ranges
from kernelwright.sketch.nodes import Index, IndexOp, Int, Sym

# ---------------------------------------------------------------- trees to normal forms and back


@lru_cache(maxsize=65536)
def polynomial(index: Index) -> Poly:
    """The normal form of an expression."""
    match index:
        case Int(value):
            return poly(value)
        case Sym(name):
            return poly(name)
        case IndexOp(op, left, right):
            return combine(op, polynomial(left), polynomial(right))
    raise TypeError(f"not an index: {index!r}")


def from_index(index: Index, names: Mapping[str, Poly]) -> Poly:
    """The normal form under a reading of its names (a size is a number here, a loop variable is called otherwise)."""
    return polynomial(index).substitute(names)


def to_index(p: Poly) -> Index:
    """A normal form written out as a tree, in a fixed order (positive terms first)."""
    result: Index | None = None
    for monomial, count in sorted(p.terms, key=lambda term: term[1] < 0):
        negative = count < 0 and result is not None
        scale = -count if negative else count
        factors = [_atom(atom) for atom in monomial]
        if scale != 1 or not factors:
            factors.append(Int(scale))
        term = factors[0]
        for factor in factors[1:]:
            term = IndexOp("*", term, factor)
        result = term if result is None else IndexOp("-" if negative else "+", result, term)
    return result if result is not None else Int(0)


def _atom(atom: str | Leaf | Opaque) -> Index:
    if isinstance(atom, str):
        return Sym(atom)
    if isinstance(atom, Leaf):
        if atom.name is not None:
            return Sym(atom.name)
        raise TypeError(f"{atom!r} has no place in a sketch: put an expression for it")
    return IndexOp(atom.op, to_index(atom.left), to_index(atom.right))


# ---------------------------------------------------------------- building


def simplify(index: Index) -> Index:
    """The normal form, as a tree again: equal expressions become one tree."""
    return to_index(polynomial(index))


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


def substitute(index: Index, values: Mapping[str, Index | int]) -> Index:
    """The expression with names replaced, simplified."""
    given = {name: poly(value) if isinstance(value, int) else polynomial(value) for name, value in values.items()}
    return to_index(polynomial(index).substitute(given))


# ---------------------------------------------------------------- questions


def constant(index: Index) -> int | None:
    """The number an expression is, or None when names are left in it."""
    return polynomial(index).constant


def equal(left: Index, right: Index) -> bool:
    """True when both are the same for all values of their names (False may also mean "not seen to be")."""
    return left == right or polynomial(left) == polynomial(right)


def symbols(index: Index) -> frozenset[str]:
    """All names in an expression."""
    match index:
        case Sym(name):
            return frozenset({name})
        case IndexOp(_, left, right):
            return symbols(left) | symbols(right)
    return frozenset()


def bounds(index: Index, ranges: Mapping[str, Interval]) -> Interval:
    """The least and greatest value an expression can have when each name lies in its range; names without one are unbounded.

    Works on the normal form, so that terms which cancel do not widen the result.
    """
    return Ranges(dict(ranges), others=None).interval(polynomial(index))


def show(index: Index) -> str:
    """The expression as it is written in a sketch."""
    from kernelwright.sketch.print import index_source

    return index_source(index)


# ---------------------------------------------------------------- evaluation


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
