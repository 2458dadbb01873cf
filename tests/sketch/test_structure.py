"""Kernels that are the same but for names are found to be alike; anything else that differs tells them apart."""

from __future__ import annotations

import pytest

from kernelwright.sketch.parse import parse
from kernelwright.sketch.structure import StructuralKeys

TEXT = """
name = "pair"
M = size(8)
x = tensor([M, 4], f32, role="input", source="0")
a = tensor([M, 4], f32, role="temp")
flat = tensor([32], f32, role="view", source="a")
y = tensor([M, 4], f32, role="output")

@kernel
def first():
    for i in parallel(0, M):
        t = load(x[i, 0:4])
        store(a[i, 0:4], maximum(t, 0.0) * 2.0)

@kernel
def second():
    for row in parallel(0, {stop}):
        # this one has a remark
        tile = load({source})
        store({target}, maximum(tile, 0.0) * {factor})

returns("y")
"""
SAME = {"stop": "M", "source": "a[row, 0:4]", "target": "y[row, 0:4]", "factor": "2.0"}


def keys_of(**changes: str) -> tuple[object, object]:
    sketch = parse(TEXT.format(**(SAME | changes)))
    table = StructuralKeys(sketch)
    first, second = (table.of(step) for step in sketch.steps)  # type: ignore[arg-type]
    return first, second


def test_names_do_not_matter() -> None:
    (one, tensors), (other, others) = keys_of()  # type: ignore[misc]
    assert one == other
    assert tensors == ("x", "a")
    assert others == ("a", "y")


@pytest.mark.parametrize(
    "changes",
    [
        {"factor": "3.0"},
        {"factor": "2"},
        {"stop": "7"},
        {"source": "flat[0:4]"},
        {"source": "x[row, 0:4]", "target": "x[row, 0:4]"},
    ],
    ids=["number", "kind of number", "bound", "view", "one tensor for two"],
)
def test_what_differs_tells_apart(changes: dict[str, str]) -> None:
    (one, _), (other, _) = keys_of(**changes)  # type: ignore[misc]
    assert one != other
