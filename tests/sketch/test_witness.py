"""The witness tells what went into one element, and keeps silent about places that do not exist."""

from __future__ import annotations

import torch

from kernelwright.sketch.interpret import interpreter
from kernelwright.sketch.interpret.witness import Witness
from kernelwright.sketch.parse import parse

SOURCE = """
name = "scaled"

M = size(6)
N = size(8)

x = tensor([M, N], f32, role="input", source="0")
total = tensor([M, 1], f32, role="temp")
y = tensor([M, N], f32, role="output")

@kernel
def sums():
    for i in parallel(0, M):
        store(total[i:i + 1, :], reduce_sum(load(x[i:i + 1, :]), axis=1))

@kernel
def divide():
    for i in parallel(0, M, 2):
        t = load(x[i:i + 2, :])
        s = load(total[i:i + 2, :])
        store(y[i:i + 2, :], t / s)

returns("y")
"""


def seen(place: tuple[int, ...]) -> tuple[tuple[str, ...], torch.Tensor]:
    sketch = parse(SOURCE)
    x = torch.arange(48.0).reshape(6, 8)
    witness = Witness(sketch, "y", place)
    interpreter.call(sketch, [x], witness=witness)
    return witness.lines, x


def test_the_iteration_and_the_tiles_of_an_element() -> None:
    lines, x = seen((3, 5))
    assert lines[0].startswith("y[3, 5] is stored by line ")
    assert "at i = 2:" in lines[0]
    assert f"  t: [1, 5] = {x[3, 5]:g} of 2x8, 16 to 31" in lines
    assert f"  s: [1, 0] = {x[3].sum():g} of 2x1, 156 to 220" in lines
    assert lines[-1] == f"  stored: {x[3, 5] / x[3].sum():.6g}"


def test_a_place_outside_has_no_witness() -> None:
    assert seen((6, 0))[0] == ()
    assert seen((1,))[0] == ()
