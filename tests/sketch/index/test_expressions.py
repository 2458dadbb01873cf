"""Integer expressions: simplifying never changes a value, equal means equal, bounds contain every value."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.sketch.index import bounds, ceil_div, equal, evaluate, show, simplify, substitute, symbols
from kernelwright.sketch.nodes import Index, IndexOp, Int, Sym
from tests.sketch.random_sketches import Draw

NAMES = ("a", "b", "c")
a, b, c = map(Sym, NAMES)


def expression(seed: int) -> Index:
    return Draw(seed).index(NAMES, 3)


def environments(seed: int, count: int = 5) -> list[dict[str, int]]:
    rng = random.Random(seed)
    return [{name: rng.choice([0, 1, 2, 3, 7, 16, 64, -3]) for name in NAMES} for _ in range(count)]


@given(st.integers(0, 2**32))
@settings(max_examples=500, deadline=None)
def test_simplify_keeps_the_value(seed: int) -> None:
    index = expression(seed)
    simple = simplify(index)
    assert simplify(simple) == simple
    for env in environments(seed):
        try:
            wanted = evaluate(index, env)
        except ZeroDivisionError:
            continue
        assert evaluate(simple, env) == wanted


@given(st.integers(0, 2**32))
@settings(max_examples=500, deadline=None)
def test_bounds_contain_the_value(seed: int) -> None:
    index = expression(seed)
    rng = random.Random(seed)
    ranges = {name: tuple(sorted(rng.sample(range(-8, 20), 2))) for name in NAMES}
    low, high = bounds(index, ranges)
    for _ in range(20):
        env = {name: rng.randint(*ranges[name]) for name in NAMES}
        try:
            value = evaluate(index, env)
        except ZeroDivisionError:
            continue
        assert low is None or low <= value
        assert high is None or value <= high


@given(st.integers(0, 2**32), st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_substitute_is_evaluate_in_two_steps(seed: int, other: int) -> None:
    index = expression(seed)
    env = environments(other, 1)[0]
    try:
        wanted = evaluate(index, env)
        part = substitute(index, {"a": env["a"]})
        assert "a" not in symbols(part)
        assert evaluate(part, env) == wanted
    except ZeroDivisionError:
        pass


def test_normal_forms() -> None:
    assert simplify(IndexOp("-", IndexOp("+", a, b), a)) == b
    assert equal(IndexOp("*", IndexOp("+", a, Int(1)), b), IndexOp("+", IndexOp("*", b, a), b))
    assert simplify(IndexOp("//", IndexOp("*", a, b), b)) == a
    assert simplify(IndexOp("%", IndexOp("+", IndexOp("*", a, Int(8)), Int(3)), Int(4))) == Int(3)
    assert simplify(IndexOp("//", IndexOp("//", a, Int(4)), Int(8))) == IndexOp("//", a, Int(32))
    assert simplify(IndexOp("min", a, IndexOp("+", a, Int(2)))) == a
    assert show(ceil_div(Int(10), Int(4))) == "3"
    assert not equal(a, b)


def test_bounds_see_cancellation() -> None:
    around = IndexOp("-", IndexOp("+", a, Int(3)), a)
    assert bounds(around, {"a": (0, 100)}) == (3, 3)
    assert bounds(IndexOp("%", a, Int(8)), {"a": (0, None)}) == (0, 7)
    assert bounds(IndexOp("//", a, Int(8)), {"a": (0, 63)}) == (0, 7)
    assert bounds(IndexOp("min", a, Int(5)), {"a": (0, None)}) == (0, 5)
    assert bounds(b, {}) == (None, None)
