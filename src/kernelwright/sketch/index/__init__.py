"""The one algebra of integer expressions, for the designer's coordinates, the checker, lowering and lifting alike.

In: expressions over symbolic sizes, tunables, loop variables and axes, with what is known of each (a range, in numbers or in other
sizes; a number that divides it). Out: normal forms, and answers that hold for all values: is it inside 0 … n, does d divide it, what
is its stride along a variable, are these two equal, and the same expression with less in it.

- `normal_form`   the normal form (`Poly`): sums of products of atoms; what simplifies whatever the values are
- `intervals`     arithmetic on ranges of numbers
- `ranges`        `Ranges`: what is known of names; bounds, signs, divisors, and simplification by them
- `expressions`   a sketch's trees (`nodes.Index`) to normal forms and back; evaluation
- `exhaustive`    proofs by looking at every value there is (with NumPy; not imported here)
- `printing`      as a sketch writes them, and as C does

A name is a plain string; whoever needs atoms with an identity or a range of their own (an axis, an index read at run time) derives
them from `Leaf`.
"""

from kernelwright.sketch.index.expressions import (
    add,
    bounds,
    ceil_div,
    constant,
    equal,
    evaluate,
    from_index,
    mul,
    polynomial,
    show,
    simplify,
    substitute,
    symbols,
    to_index,
)
from kernelwright.sketch.index.intervals import Interval, joined
from kernelwright.sketch.index.normal_form import Atom, Leaf, Monomial, Opaque, Poly, combine, poly, rejoined, split
from kernelwright.sketch.index.printing import to_c, to_text, written
from kernelwright.sketch.index.ranges import OWN, Range, Ranges

__all__ = [
    "OWN",
    "Atom",
    "Interval",
    "Leaf",
    "Monomial",
    "Opaque",
    "Poly",
    "Range",
    "Ranges",
    "add",
    "bounds",
    "ceil_div",
    "combine",
    "constant",
    "equal",
    "evaluate",
    "from_index",
    "joined",
    "mul",
    "poly",
    "polynomial",
    "rejoined",
    "show",
    "simplify",
    "split",
    "substitute",
    "symbols",
    "to_c",
    "to_index",
    "to_text",
    "written",
]
