"""Rows that lie one behind the other are one loop; rows that do not, or that are counted, stay what they are."""

from __future__ import annotations

import pytest
from lowering import check

from kernelwright.sketch.parse import parse

MAP = """
x = tensor([6, 8, 7, 20], f32, role="input", source="0")
b = tensor([8], f32, role="input", source="1")
r = tensor([20], f32, role="input", source="2")
y = tensor([6, 8, {tall}, {wide}], f32, role="output")

@kernel
def work():
    for n in parallel(0, 6):
        tile = load(x[n, 0:8, {rows}, {columns}])
        channel = unsqueeze(unsqueeze(load(b[0:8]), axis=1), axis=2)
        store(y[n, 0:8, 0:{tall}, {columns}], {value})

returns("y")
"""


@pytest.mark.parametrize(
    ("rows", "tall", "columns", "wide", "value", "loop"),
    [
        ("0:7", 7, "0:20", 20, "tile + 1.0", "< 1120;"),
        ("0:7", 7, "0:20", 20, "tile * channel", "< 140;"),
        ("1:5", 4, "0:20", 20, "tile * channel", "< 80;"),
        ("0:7", 7, "0:20", 20, "tile + load(r[0:20])", "< 20;"),
        ("0:7", 7, "0:16", 16, "tile + 1.0", "< 16;"),
        ("0:7", 7, "0:20", 20, "tile * cast(iota(20), f32)", "< 20;"),
    ],
    ids=["all axes", "two", "some rows", "a value for each column", "another pitch", "counted columns"],
)
def test_maps(rows: str, tall: int, columns: str, wide: int, value: str, loop: str) -> None:
    sketch = parse(MAP.format(rows=rows, tall=tall, columns=columns, wide=wide, value=value))
    module = check(sketch)
    body = module.SOURCE[module.SOURCE.index("static void work") :]
    assert loop in body.replace("<= ", "< ")


SUMS = """
x = tensor([6, 8, 7, 20], f32, role="input", source="0")
y = tensor([6, 8], f32, role="output")
z = tensor([6, 20], f32, role="output")

@kernel
def work():
    for n in parallel(0, 6):
        tile = load(x[n, 0:8, 0:7, 0:20])
        store(y[n, 0:8], reshape(reduce_sum(tile * tile, axis=(1, 2)), [8]))
        store(z[n, 0:20], reshape(reduce_sum(tile, axis=(0, 1)), [20]))

returns(["y", "z"])
"""


def test_sums() -> None:
    module = check(parse(SUMS), rtol=1e-5, atol=1e-5)
    body = module.SOURCE[module.SOURCE.index("static void work") :]
    assert "< 140" in body.replace("<= ", "< ")


ONE = """
x = tensor([5, {wide}], f32, role="input", source="0")
y = tensor([5], f32, role="output")

@kernel
def work():
    for n in parallel(0, 5):
        tile = load(x[n, 0:{wide}])
        top = reduce_max(tile, axis=0)
        total = reduce_sum(exp(tile - top), axis=0)
        store(y[n], squeeze(top + log(total), axis=0))

returns("y")
"""


@pytest.mark.parametrize("wide", [1, 2])
def test_a_reduction_of_one_element_is_that_element(wide: int) -> None:
    """Its accumulator was never set: attention of one token gave whatever had been in the register."""
    check(parse(ONE.format(wide=wide)), rtol=1e-5, atol=1e-5)
