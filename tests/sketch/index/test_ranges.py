"""The algebra of indices is exact: each answer is compared with the values that an expression has at integers in range."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.sketch.index import (
    Leaf,
    Opaque,
    Poly,
    Ranges,
    combine,
    evaluate,
    poly,
    polynomial,
    rejoined,
    to_c,
    to_index,
    to_text,
)
from kernelwright.sketch.nodes import Index
from tests.sketch.random_sketches import Draw

NAMES = ("a", "b", "c")
LOW, HIGH = {"a": 0, "b": 1, "c": -3}, {"a": 12, "b": 9, "c": 4}
DIVISORS = {"a": 4, "b": 3}
KNOWN = Ranges({name: (LOW[name], HIGH[name]) for name in NAMES}, DIVISORS, others=None)


def values(seed: int, count: int = 30) -> list[dict[str, int]]:
    """Settings of the names that keep to their ranges and divisors."""
    rng = random.Random(seed)
    return [
        {n: rng.choice([v for v in range(LOW[n], HIGH[n] + 1) if v % DIVISORS.get(n, 1) == 0]) for n in NAMES}
        for _ in range(count)
    ]


def expression(seed: int, depth: int = 3) -> Index:
    return Draw(seed).index(NAMES, depth)


def value(p: Poly, env: dict[str, int]) -> int | None:
    try:
        return evaluate(to_index(p), env)
    except ZeroDivisionError:
        return None


@given(st.integers(0, 2**32), st.integers(0, 2**32), st.sampled_from(["+", "-", "*", "//", "%", "min", "max"]))
@settings(max_examples=400, deadline=None)
def test_operations_are_what_python_says(one: int, two: int, op: str) -> None:
    left, right = polynomial(expression(one, 2)), polynomial(expression(two, 2))
    python = {
        "+": int.__add__, "-": int.__sub__, "*": int.__mul__, "//": int.__floordiv__, "%": int.__mod__, "min": min, "max": max,
    }  # fmt: skip
    for env in values(one, 8):
        a, b = value(left, env), value(right, env)
        if a is None or b is None or (b == 0 and op in ("//", "%")):
            continue
        wanted = python[op](a, b)
        assert value(combine(op, left, right), env) == wanted
        assert value(KNOWN.combine(op, left, right), env) == wanted


@given(st.integers(0, 2**32))
@settings(max_examples=400, deadline=None)
def test_what_ranges_say_holds_for_all_values(seed: int) -> None:
    p = polynomial(expression(seed))
    simple, (low, high) = KNOWN.simplified(p), KNOWN.interval(p)
    below, above, divisor = KNOWN.lower(p), KNOWN.upper(p), KNOWN.divisor(p)
    never, joined = KNOWN.nonnegative(p), rejoined(p)
    for env in values(seed):
        v = value(p, env)
        if v is None:
            continue
        assert value(simple, env) in (v, None)
        assert value(joined, env) in (v, None)
        assert low is None or low <= v
        assert high is None or v <= high
        assert below is None or (value(below, env) or 0) <= v or value(below, env) is None
        assert above is None or (value(above, env) or 0) >= v or value(above, env) is None
        assert v % divisor == 0 if divisor else v == 0
        assert v >= 0 or not never


@given(st.integers(0, 2**32), st.integers(1, 24))
@settings(max_examples=300, deadline=None)
def test_divisibility(seed: int, by: int) -> None:
    p = polynomial(expression(seed, 2))
    quotient, rest = KNOWN.divide(p, poly(by))
    divides = KNOWN.divisible(p, by)
    for env in values(seed):
        v = value(p, env)
        if v is None:
            continue
        assert (value(quotient, env), value(rest, env)) == divmod(v, by)
        assert v % by == 0 or not divides


@given(st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_a_stride_is_what_one_step_moves(seed: int) -> None:
    p = polynomial(expression(seed))
    stride = p.coefficient("a")
    if stride is None:
        return
    for env in values(seed, 8):
        here, there = value(p, env), value(p, env | {"a": env["a"] + 1})
        assert here is None or there is None or there - here == value(stride, env)


def test_sizes_are_symbols() -> None:
    """A loop over a size that is no number: its position stays inside, a flat position is taken apart again."""
    n, i, j, tile = poly("N"), poly("i"), poly("j"), poly("t")
    known = Ranges(
        {"i": (0, poly("M") - 1), "j": (0, n - 1), "t": (0, combine("//", n, poly(16)) - 1), "N": (1, 4096)}, {"N": 16}
    )
    flat = i * n + j
    assert known.divide(flat, n) == (i, j)
    assert known.within(j, n)
    assert not known.within(j + 1, n)
    assert known.within(flat, poly("M") * n)
    assert [known.divisible(*it) for it in ((n, 16), (n * 3, 48), (n, 32))] == [True, True, False]
    assert known.combine("%", n, poly(8)) == poly(0)
    tiled = combine("//", n, poly(16)) * 16 + combine("%", n, poly(16))
    assert rejoined(tiled) == n
    assert known.equal(tiled, combine("//", n, poly(16)) * 16)
    assert known.interval(n * 4) == (4, 16384)
    assert flat.coefficient("i") == n
    assert known.combine("min", tile, tile + 1) == tile


def test_equal_symbols_are_one() -> None:
    n = poly("N")
    assert (n * 2 + 1) - (n + n) == poly(1)
    assert combine("min", n, poly("M")) == combine("min", poly("M"), n)
    assert hash(combine("//", n, poly(4))) == hash(combine("//", poly("N"), poly(4)))


@dataclass(frozen=True)
class Line(Leaf):
    """An axis with a range of its own."""

    name: str = ""
    extent: int | Poly = 0

    @property
    def key(self) -> str:
        return f"|{self.name}"

    def bounds(self) -> tuple[int, Poly]:
        return 0, poly(self.extent) - 1


def test_leaves_know_their_range() -> None:
    x, y = poly(Line("x", 12)), poly(Line("y", 5))
    flat = x * 5 + y
    assert (flat // 5, flat % 5) == (x, y)
    assert flat // 60 == poly(0)
    (only,) = (flat // 7).atoms
    assert isinstance(only, Opaque)
    assert (only.left, only.right) == (flat, poly(7))
    wide = poly(Line("w", poly("N")))
    assert (x * poly("N") + wide) // poly("N") == x


def test_texts() -> None:
    p = combine("//", poly("n") * 3 + 1, poly(4)) * 2 - poly("k") + 5
    assert to_text(p) == "(n * 3 + 1) // 4 * 2 + 5 - k"
    assert to_c(p) == "floor_div(n * 3 + 1, 4) * 2 + 5 - k"
    assert to_c(poly(2**31)) == "2147483648L"


@given(st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_the_greatest_divisor_is_not_missed_for_sums(seed: int) -> None:
    """For sums without quotients the divisor is the best there is: the gcd of factors times known divisors."""
    rng = random.Random(seed)
    factors = {name: rng.randint(-6, 6) for name in NAMES}
    p = sum((poly(name) * factor for name, factor in factors.items()), poly(0))
    assert KNOWN.divisor(p) == math.gcd(*(factors[n] * DIVISORS.get(n, 1) for n in NAMES))
