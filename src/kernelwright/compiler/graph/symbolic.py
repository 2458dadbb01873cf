"""Sizes that are not known when a kernel is designed: numbers with a name, a range, and an example to choose by.

In: a `Region`, with a `SizeLeaf` for each size that varies. Out: `Size`, an expression over them that behaves like the plain number it
stands for in the code that handles shapes:

* arithmetic gives further sizes (a plain number where nothing is left of the names);
* `==` is a question about expressions: two sizes are equal if they are for all values. A size is never equal to 0 or 1, although it may
  have that value: what is written for any extent is right for these, too;
* `<` and its kin are proved for the whole region where the algebra can; else the example answers, and the answer is written down as a
  condition of the design (`Region.conditions`): outside of it, the kernel says no, or has another variant;
* whatever needs a plain number (`range`, a literal in the code) is refused, with the size's name: nothing is specialised silently.

Decisions that concern speed alone ask `likely(extent)`, the number in the example, and rest on nothing.

To the type checker a Size is an int, since what handles shapes is written for ints; when the code runs it is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from kernelwright.core.errors import UnsupportedOperator
from kernelwright.sketch import nodes
from kernelwright.sketch.index import OWN, Leaf, Poly, poly, to_index, to_text


@dataclass
class Region:
    """Where a design is valid: the sizes that vary, by name, and the conditions (polynomials that must not be negative) under which the
    example's answers hold."""

    sizes: dict[str, SizeLeaf] = field(default_factory=dict)
    conditions: dict[Poly, None] = field(default_factory=dict)

    def size(self, name: str, example: int, low: int = 0, high: int | None = None, multiple_of: int = 1) -> Size:
        """A new size that varies."""
        leaf = self.sizes[name] = SizeLeaf(name, example, low, high, multiple_of, self)
        return Size(poly(leaf), self)

    def declared(self) -> tuple[nodes.Size, ...]:
        """The sizes as a sketch declares them, within the conditions."""
        low = {name: leaf.low for name, leaf in self.sizes.items()}
        high = {name: leaf.high for name, leaf in self.sizes.items()}
        for condition in self.conditions:
            name, least, most = _limit(condition)
            if least is not None:
                low[name] = max(low[name], least)
            if most is not None:
                high[name] = min(most, known) if (known := high[name]) is not None else most
        return tuple(
            nodes.Size(name, leaf.example, True, low[name], high[name], leaf.divisor) for name, leaf in self.sizes.items()
        )


def _limit(condition: Poly) -> tuple[str, int | None, int | None]:
    """The range of the one size for which a condition holds."""
    leaves = [leaf for leaf in condition.leaves if isinstance(leaf, SizeLeaf)]
    if len(leaves) == 1 and (factor := condition.coefficient(leaves[0])) is not None and factor.constant:
        zero: dict[Leaf, Poly] = {leaves[0]: poly(0)}
        rest = condition.substitute(zero).constant
        if rest is not None:
            by = factor.constant
            return (leaves[0].name, -(rest // by), None) if by > 0 else (leaves[0].name, None, rest // -by)
    raise UnsupportedOperator(
        "these dynamic sizes",
        f"the design depends on whether {to_text(condition)} is negative, which a range of one size cannot say",
    )


class SizeLeaf(Leaf):
    """One size that varies."""

    __slots__ = ("divisor", "example", "high", "low", "name", "region")
    name: str
    divisor: int

    def __init__(self, name: str, example: int, low: int, high: int | None, divisor: int, region: Region) -> None:
        self.name, self.example, self.low, self.high, self.divisor, self.region = name, example, low, high, divisor, region

    @property
    def key(self) -> str:
        return f" {self.name}"

    def __repr__(self) -> str:
        return self.name

    def bounds(self) -> tuple[int, int | None]:
        return self.low, self.high


class Size(int if TYPE_CHECKING else object):  # type: ignore[misc]
    """An extent that depends on sizes that vary. See above for what may be asked of it."""

    __slots__ = ("poly", "region")

    def __init__(self, value: Poly, region: Region) -> None:
        self.poly, self.region = value, region

    def __hash__(self) -> int:
        return hash(self.poly)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and self.poly == other.poly

    def __repr__(self) -> str:
        return to_text(self.poly)

    def __bool__(self) -> bool:
        return True

    # ---- arithmetic

    def _with(self, op: str, other: object, *, swapped: bool = False) -> int:
        if not isinstance(other, int | Size):
            self._refuse()
        right = other.poly if isinstance(other, Size) else poly(int(other))
        left, right = (right, self.poly) if swapped else (self.poly, right)
        return sized(OWN.simplified(OWN.combine(op, left, right)), self.region)

    def __add__(self, other: int) -> int:
        return self._with("+", other)

    def __radd__(self, other: int) -> int:
        return self._with("+", other)

    def __sub__(self, other: int) -> int:
        return self._with("-", other)

    def __rsub__(self, other: int) -> int:
        return self._with("-", other, swapped=True)

    def __mul__(self, other: int) -> int:
        return self._with("*", other)

    def __rmul__(self, other: int) -> int:
        return self._with("*", other)

    def __floordiv__(self, other: int) -> int:
        return self._with("//", other)

    def __rfloordiv__(self, other: int) -> int:
        return self._with("//", other, swapped=True)

    def __mod__(self, other: int) -> int:
        return self._with("%", other)

    def __rmod__(self, other: int) -> int:
        return self._with("%", other, swapped=True)

    def __divmod__(self, other: int) -> tuple[int, int]:
        return self._with("//", other), self._with("%", other)

    def __neg__(self) -> int:
        return self._with("*", -1)

    # ---- order: proved, or a condition

    def _holds(self, gap: int) -> bool:
        """Whether `gap >= 0`."""
        if isinstance(gap, int):
            return gap >= 0
        if OWN.nonnegative(gap.poly):
            return True
        if OWN.nonnegative(gap.poly * -1 - 1):
            return False
        answer = likely(gap) >= 0
        self.region.conditions[gap.poly if answer else gap.poly * -1 - 1] = None
        return answer

    def __ge__(self, other: int) -> bool:
        return self._holds(self - other)

    def __gt__(self, other: int) -> bool:
        return self._holds(self - other - 1)

    def __le__(self, other: int) -> bool:
        return self._holds(other - self)

    def __lt__(self, other: int) -> bool:
        return self._holds(other - self - 1)

    # ---- what would need a plain number

    def _refuse(self) -> NoReturn:
        raise UnsupportedOperator("a dynamic size", f"this operator is designed for a plain number where {self} stands")

    def __index__(self) -> int:
        self._refuse()

    def __int__(self) -> int:
        self._refuse()

    def __float__(self) -> float:
        self._refuse()

    def __truediv__(self, other: object) -> float:
        self._refuse()

    def __rtruediv__(self, other: object) -> float:
        self._refuse()


Extent = int
"""A number, or a Size."""


def sized(value: Poly, region: Region) -> int:
    """A normal form as a plain number where it is one."""
    return found if (found := value.constant) is not None else Size(value, region)


def size_poly(extent: int) -> Poly:
    """An extent as a normal form."""
    return extent.poly if isinstance(extent, Size) else poly(extent)


def size_index(extent: int) -> nodes.Index:
    """An extent as a sketch writes it."""
    return to_index(extent.poly) if isinstance(extent, Size) else nodes.Int(extent)


def largest(left: int, right: int) -> int:
    """The larger of two extents, whatever the sizes are."""
    return _either("max", left, right)


def smallest(left: int, right: int) -> int:
    """The smaller of two extents, whatever the sizes are."""
    return _either("min", left, right)


def certainly_less(left: int, right: int) -> bool:
    """Whether one extent is below another, whatever the sizes are; no condition."""
    if isinstance(left, int) and isinstance(right, int):
        return left < right
    return OWN.below(size_poly(left), size_poly(right))


def _either(op: str, left: int, right: int) -> int:
    region = next((e.region for e in (left, right) if isinstance(e, Size)), None)
    if region is None:
        assert isinstance(left, int)
        assert isinstance(right, int)
        return max(left, right) if op == "max" else min(left, right)
    first, second = size_poly(left), size_poly(right)
    if OWN.nonnegative(first - second):
        chosen = first if op == "max" else second
    elif OWN.nonnegative(second - first):
        chosen = second if op == "max" else first
    else:
        chosen = OWN.combine(op, first, second)
    return sized(chosen, region)


def likely(extent: int) -> int:
    """The number that an extent is in the example: for what concerns speed alone."""
    if not isinstance(extent, Size):
        return extent
    given: dict[Leaf, Poly] = {leaf: poly(leaf.example) for leaf in extent.poly.leaves if isinstance(leaf, SizeLeaf)}
    value = extent.poly.substitute(given).constant
    assert value is not None
    return value


def likely_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """The extents in the example."""
    return tuple(map(likely, shape))
