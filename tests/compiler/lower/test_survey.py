"""A dry run over a kernel finds the dimensions of its blocks, and the plan cuts them to size: for every language of tile programs alike."""

from __future__ import annotations

from kernelwright.compiler.lower.tile_programs.grid import LaunchBuilder, launch_bodies
from kernelwright.sketch.parse import parse
from kernelwright.target import Capabilities, Target

SOFTMAX = """
N = size(4)
C = size({columns})
x = tensor([N, C], f32, role="input", source="0")
y = tensor([N, C], f32, role="output")

@kernel
def work():
    for i in parallel(0, N):
        row = load(x[i, 0:C])
        e = exp(row - reduce_max(row, axis=0))
        store(y[i, 0:C], e / reduce_sum(e, axis=0))

returns("y")
"""


def planned(columns: int):
    sketch = parse(SOFTMAX.format(columns=columns))
    kernel = sketch.steps[0]
    (body,) = launch_bodies(kernel)
    return LaunchBuilder(sketch, kernel, body, set(), Capabilities.of(Target.load("h100"), "blocks")).planned()


def test_a_row_that_is_reduced_and_stored_is_one_dimension() -> None:
    plan, _, survey = planned(1000)
    rows = {dim.name for name, dim in plan.of.items() if survey.extent[name] == 1000}
    assert len(rows) == 1, "the maximum, the sum and the store walk over one dimension"
    assert next(dim for dim in plan.of.values() if dim.extent == 1000).size == 1024


def test_a_row_too_long_for_a_block_is_walked() -> None:
    plan, _, _ = planned(100_000)
    assert all(dim.walk == "loop" and dim.size <= 8192 for dim in plan.of.values() if dim.extent == 100_000)


def test_short_rows_share_a_program() -> None:
    _, lanes, _ = planned(8)
    assert lanes, "rows of eight make poor blocks: neighbours are lanes of one"
