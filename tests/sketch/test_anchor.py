"""Kernels that work on different parts of tensors become one, and compute the same there."""

from __future__ import annotations

import math

import pytest
import torch

from kernelwright.sketch import nodes
from kernelwright.sketch.anchor import anchored
from kernelwright.sketch.interpret.interpreter import call
from kernelwright.sketch.parse import parse
from kernelwright.sketch.structure import StructuralKeys

TEXT = """
name = "step"
x = tensor([9, 4, 6], f32, role="input", source="0")
y = tensor([60], f32, role="output")

@kernel
def zero():
    store(y[0:60], full([60], 0.0, f32))

@kernel
def step():
    for i in parallel(0, 4, 2):
        t = load(x[{t}, i : i + 2, {first} : {first} + 3])
        store(y[i * 3 + {place} : i * 3 + {place} + 6], reshape(t * 2.0, [6]))

returns("y")
"""


def step(**numbers: int) -> nodes.Sketch:
    return parse(TEXT.format(**({"t": 0, "first": 0, "place": 0} | numbers)))


def moved(sketch: nodes.Sketch) -> tuple[nodes.Sketch, dict[str, int]]:
    kernel, seen, offsets = anchored(sketch.steps[1], {t.name: t for t in sketch.tensors})  # type: ignore[arg-type]
    tensors = tuple(seen.get(t.name, t) for t in sketch.tensors)
    return nodes.Sketch("s", "", (), (), tensors, (kernel,), sketch.returns), offsets


def test_places_in_a_tensor_do_not_matter() -> None:
    one, here = moved(step(t=2, place=12))
    other, there = moved(step(t=7, place=24))
    numbers: dict[object, int] = {}
    keys = [StructuralKeys(s, numbers=numbers).of(s.steps[0])[0] for s in (one, other)]  # type: ignore[arg-type]
    assert keys[0] == keys[1]
    assert (here, there) == ({"x": 48, "y": 12}, {"x": 168, "y": 24})


@pytest.mark.parametrize("numbers", [{"t": 3, "place": 5}, {"t": 0, "first": 2, "place": 1}, {"t": 8, "first": 3, "place": 48}])
def test_the_moved_kernel_computes_the_same_elsewhere(numbers: dict[str, int]) -> None:
    whole = step(**numbers)
    part, offsets = moved(whole)
    x = torch.randn(9, 4, 6)
    want = call(whole, [x], {})
    seen = next(t for t in part.tensors if t.name == "x")
    shape = [e.value for e in seen.shape if isinstance(e, nodes.Int)]
    inside = x.reshape(-1)[offsets.get("x", 0) :][: math.prod(shape)].reshape(shape)
    got = call(part, [inside], {}).reshape(-1)
    start = offsets.get("y", 0)
    torch.testing.assert_close(got, want[start : start + len(got)])


def test_what_stands_still_is_left_alone() -> None:
    sketch = step()
    kernel, seen, offsets = anchored(sketch.steps[1], {t.name: t for t in sketch.tensors})  # type: ignore[arg-type]
    assert (kernel, seen, offsets) == (sketch.steps[1], {}, {})
