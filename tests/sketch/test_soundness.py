"""What the checker accepts, the strict interpreter finds nothing wrong with: random accesses in random loops.

The interpreter watches every element, so it knows the truth; the checker may refuse too much, never accept too much.
"""

from __future__ import annotations

import random

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.core.errors import SketchError
from kernelwright.sketch import nodes
from kernelwright.sketch.check.rules import check
from kernelwright.sketch.interpret import interpreter
from kernelwright.sketch.nodes import At, DType, For, Index, IndexOp, Int, Span, Sym

SIZES = {"M": 6, "N": 4}
DOMAIN = (1, 2, 3)


class Accesses:
    """Draws a sketch with one nest of loops around loads and stores whose positions are random."""

    def __init__(self, seed: int, general: bool = False) -> None:
        self.random = random.Random(seed)
        self.general = general

    def number(self, *values: int) -> Index:
        """One of these, or (in general sketches) the tunable."""
        return Sym("B") if self.general and self.random.random() < 0.4 else Int(self.random.choice(values))

    def position(self, variables: list[str]) -> Index:
        r = self.random
        base: Index = Sym(r.choice(variables)) if variables else Int(0)
        for _ in range(r.randint(0, 2)):
            match r.randint(0, 6):
                case 0:
                    base = IndexOp("+", base, Int(r.randint(-1, 2)))
                case 1:
                    base = IndexOp("*", base, self.number(-1, 1, 2, 3))
                case 2:
                    base = IndexOp("//", base, self.number(2, 3, 4))
                case 3:
                    base = IndexOp("%", base, self.number(2, 3, 4))
                case 4 if variables:
                    base = IndexOp("+", base, Sym(r.choice(variables)))
                case 5:
                    base = IndexOp(r.choice(["min", "max"]), base, Int(r.randint(0, 9)))
                case _:
                    base = IndexOp("-", r.choice([Int(r.randint(0, 6)), IndexOp("-", Sym("M"), Int(1))]), base)
        return base

    def axis(self, variables: list[str]) -> nodes.Axis:
        start = self.position(variables)
        if self.random.random() < 0.5:
            return At(start)
        return Span(start, self.number(1, 2, 3), Int(self.random.choice([1, 1, 2, -1])))

    def body(self, variables: list[str]) -> tuple[nodes.Statement, ...]:
        result: list[nodes.Statement] = []
        if self.random.random() < 0.4:
            region = (self.axis(variables), self.axis(variables))
            result.append(nodes.Assign("t", nodes.Load(self.random.choice(["x", "y"]), region)))
        for _ in range(self.random.randint(1, 2)):
            region = (self.axis(variables), self.axis(variables))
            mode = self.random.choice(["set", "set", "set", "add"])
            result.append(nodes.Store("y", region, nodes.Number(float(self.random.randint(1, 9))), mode))
        return tuple(result)

    def nest(self, variables: list[str], depth: int) -> tuple[nodes.Statement, ...]:
        if depth == 0:
            return self.body(variables)
        variable = f"i{depth}"
        start = Int(self.random.choice([0, 0, 1]))
        stop: Index = self.random.choice([Sym("M"), Sym("N"), Int(3), IndexOp("*", Sym("M"), Sym("N"))])
        step = self.number(1, 1, 2, 4)
        kind = self.random.choice(["parallel", "parallel", "range"])
        inner = self.nest([*variables, variable], depth - 1)
        return (For(variable, kind, start, stop, step, inner),)

    def sketch(self) -> nodes.Sketch:
        m, n = Sym("M"), Sym("N")
        fill = nodes.Kernel("fill", (nodes.Store("y", (Span(Int(0), m), Span(Int(0), n)), nodes.Number(0.0)),))
        kernel = nodes.Kernel("k", self.nest([], self.random.choice([1, 2, 2])))
        tensors = (
            nodes.Tensor("x", (m, n), DType.f32, "input", "0"),
            nodes.Tensor("y", (m, n), DType.f32, "output"),
        )
        sizes = tuple(nodes.Size(name, value, dynamic=self.general and name == "M") for name, value in SIZES.items())
        tunables = (nodes.Tunable("B", 2, DOMAIN),) if self.general else ()
        return nodes.Sketch("random", "", sizes, tunables, tensors, (fill, kernel), '"y"')


@given(st.integers(0, 2**40))
@settings(max_examples=150, deadline=None)
def test_what_checks_runs_without_a_fault(seed: int) -> None:
    sketch = Accesses(seed).sketch()
    if check(sketch):
        return
    x = torch.arange(24.0).reshape(6, 4)
    first = interpreter.run(sketch, {"x": x}, strict=True)
    again = interpreter.run(sketch, {"x": x}, shuffle=seed)
    torch.testing.assert_close(first["y"], again["y"])


@given(st.integers(0, 2**40))
@settings(max_examples=150, deadline=None)
def test_what_checks_runs_for_every_size_and_setting(seed: int) -> None:
    sketch = Accesses(seed, general=True).sketch()
    if check(sketch):
        return
    for rows in (0, 1, 6):
        for setting in DOMAIN:
            interpreter.run(sketch, {"x": torch.zeros(rows, 4)}, tunables={"B": setting}, strict=True)


def test_random_accesses_are_a_fair_test() -> None:
    """Enough of them check, and enough are refused, for the property above to mean something."""
    for general in (False, True):
        verdicts = [not check(Accesses(seed, general).sketch()) for seed in range(200)]
        assert 20 < sum(verdicts) < 180


def test_refusals_are_mostly_deserved() -> None:
    """The checker refuses few sketches in which the strict interpreter finds no fault."""
    needless = deserved = 0
    x = torch.zeros(6, 4)
    for seed in range(150):
        sketch = Accesses(seed).sketch()
        if not check(sketch):
            continue
        try:
            interpreter.run(sketch, {"x": x}, strict=True)
            needless += 1
        except SketchError:
            deserved += 1
    assert needless < 0.2 * deserved, (needless, deserved)
