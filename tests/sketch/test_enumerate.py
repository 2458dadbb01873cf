"""Races that only looking at every iteration rules out: a store under a mask, tiles dealt out to programs; and those that are there."""

from __future__ import annotations

import pytest

from kernelwright.sketch.check.rules import check
from kernelwright.sketch.parse import parse

HEAD = 'name = "s"\n\nx = tensor([30, 16], f32, role="input", source="0")\ny = tensor([30, 16], f32, role="output")\n'
TAIL = '\n\nreturns("y")\n'
DEALT = """
@kernel
def s():
    for p in parallel(0, 4):
        for t in range(p, 30, STEP):
            store(y[t % 30, 0:16], load(x[t, 0:16]))
"""
MASKED = """
@kernel
def s():
    for i in parallel(0, 30):
        row = load(x[i, 0:16])
        at = where(row > 0.0, iota(16) + i * STEP, 480)
        store(flat[pick(at)], row)
"""
FLAT = 'flat = tensor([480], f32, role="view", source="y")\n'


def faults(text: str) -> list[str]:
    return [error.reason for error in check(parse(text)) if "may meet" in error.reason]


def test_tiles_that_a_few_programs_share_out_are_apart() -> None:
    assert faults(HEAD + DEALT.replace("STEP", "4") + TAIL) == []
    assert faults(HEAD + DEALT.replace("STEP", "3") + TAIL) != []


@pytest.mark.parametrize(("step", "apart"), [("16", True), ("8", False)])
def test_a_mask_that_depends_on_data_counts_as_both_sides(step: str, apart: bool) -> None:
    found = faults(HEAD + FLAT + MASKED.replace("STEP", step) + TAIL)
    assert (found == []) is apart


def test_positions_that_are_data_cannot_be_looked_at() -> None:
    text = HEAD + FLAT + MASKED.replace("iota(16) + i * STEP", "cast(row, i64)") + TAIL
    assert faults(text) != []
