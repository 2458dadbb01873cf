"""Integer expressions written out: as a sketch writes them, and as C does."""

from __future__ import annotations

from collections.abc import Callable

from kernelwright.sketch.index.normal_form import Leaf, Opaque, Poly

_C_NAMES = {"//": "floor_div", "%": "floor_mod", "min": "min_of<int64_t>", "max": "max_of<int64_t>"}
INT_END = 2**31
"""From here on, a C literal is a long."""


def written(p: Poly, atom: Callable[[str | Leaf | Opaque, bool], str], number: Callable[[int], str]) -> str:
    """A sum in a fixed order, positive terms first; not wrapped in parentheses. `atom` writes a factor (is it the first?)."""
    if not p.terms:
        return "0"
    text = ""
    for monomial, count in sorted(p.terms, key=lambda term: term[1] < 0):
        factors = [atom(factor, place == 0) for place, factor in enumerate(monomial)]
        size = abs(count)
        if size != 1 or not factors:
            factors.append(number(size))
        product = " * ".join(factors)
        if text:
            text = f"{text} - {product}" if count < 0 else f"{text} + {product}"
        else:
            text = f"-{product}" if count < 0 else product
    return text


def to_text(p: Poly) -> str:
    """As in a sketch: `//`, `%`, `min`, `max`."""
    return written(p, _text, str)


def _text(atom: str | Leaf | Opaque, first: bool) -> str:
    if isinstance(atom, str):
        return atom
    if isinstance(atom, Leaf):
        return repr(atom)
    return str(atom) if first or atom.op in ("min", "max") else f"({atom})"


def to_c(p: Poly) -> str:
    """As in C; quotients and the like are functions of the prelude."""
    return written(p, _c, lambda size: str(size) if size < INT_END else f"{size}L")


def _c(atom: str | Leaf | Opaque, first: bool) -> str:
    if isinstance(atom, str):
        return atom
    if isinstance(atom, Leaf):
        raise TypeError(f"{atom!r} has no place in C: put a name or a number for it")
    return f"{_C_NAMES[atom.op]}({to_c(atom.left)}, {to_c(atom.right)})"
