"""Variants of a sketch: the same values whatever is chosen, and nothing that the checker objects to."""

from __future__ import annotations

import random

import pytest
import torch

from kernelwright.search.space import Space, bound, tunable
from kernelwright.sketch.check.rules import check
from kernelwright.sketch.interpret.interpreter import run
from kernelwright.sketch.parse import parse
from kernelwright.sketch.print import to_source

PRODUCT = """
name = "product"
a = tensor([96, 80], f32, role="input", source="0")
b = tensor([80, 96], f32, role="input", source="1")
out = tensor([96, 96], f32, role="output")

@kernel
def product():
    for i in parallel(0, 96, 32):
        for j in parallel(0, 96, 32):
            acc = full([32, 32], 0.0, f32, level="accumulator")
            for k in range(0, 80, 16):
                acc = gemm(load(a[i : i + 32, k : k + 16], pad=0.0), load(b[k : k + 16, j : j + 32], pad=0.0), acc)
            store(out[i : i + 32, j : j + 32], acc)

returns("out")
"""

RAGGED = """
name = "ragged"
x = tensor([1000], f32, role="input", source="0")
out = tensor([1000], f32, role="output")

@kernel
def double():
    for i in parallel(0, 1000, 50):
        store(out[i : i + 50], load(x[i : i + 50]) * 2.0)

returns("out")
"""


def test_every_tile_extent_of_a_product_is_free() -> None:
    space = Space.of(parse(PRODUCT))
    assert set(space.axes) == {"TILE_I", "TILE_J", "TILE_K", "order of i and j"}
    assert space.defaults == {"TILE_I": 32, "TILE_J": 32, "TILE_K": 16, "order of i and j": 0}
    assert space.size == len(list(space.points()))


def test_the_sketch_with_names_is_a_sketch_and_says_the_same() -> None:
    sketch = parse(PRODUCT)
    named = tunable(sketch)
    assert check(named) == []
    assert parse(to_source(named)).tunables == named.tunables
    assert bound(named, {}).steps == sketch.steps


@pytest.mark.parametrize("seed", range(6))
def test_variants_compute_what_the_sketch_computes(seed: int) -> None:
    space = Space.of(parse(PRODUCT))
    dice = random.Random(seed)
    values = {name: dice.choice(domain) for name, domain in space.axes.items()}
    inputs = {"a": torch.randn(96, 80), "b": torch.randn(80, 96)}
    variant = space.variant(values)
    assert variant is not None
    torch.testing.assert_close(run(variant, inputs)["out"], inputs["a"] @ inputs["b"], rtol=1e-4, atol=1e-4)


def test_a_tile_that_would_stick_out_where_it_may_not_is_no_choice() -> None:
    space = Space.of(parse(RAGGED))
    assert set(space.axes["TILE_I"]) == {25, 50, 100, 200}  # 12 does not divide 1000, and the load has no padding


def test_equal_extents_of_different_loops_are_told_apart() -> None:
    variant = Space.of(parse(PRODUCT)).variant({"TILE_I": 16, "TILE_J": 96})
    assert variant is not None
    assert "full([16, 96]" in to_source(variant)
