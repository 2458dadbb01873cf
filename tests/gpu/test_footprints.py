"""What a wave of blocks reads together, by what single blocks share."""

from __future__ import annotations

import pytest

from kernelwright.gpu.profile.sampling import Footprint

NEVER, ALWAYS = (0.0,) * 8, (1.0,) * 8


def test_blocks_that_share_nothing_read_as_often_as_there_are_blocks() -> None:
    assert Footprint(10.0, False, (NEVER, (1.0,), (1.0,))).over((108.0, 1.0, 1.0)) == pytest.approx(1080.0)


def test_groups_of_eight_rows_read_eight_tiles_of_one_operand_and_few_of_the_other() -> None:
    rows = Footprint(10.0, False, ((0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0), (1.0,), (1.0,)))
    columns = Footprint(10.0, False, ((1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0), (1.0,), (1.0,)))
    assert rows.over((128.0, 1.0, 1.0)) == pytest.approx(80.0)
    assert columns.over((128.0, 1.0, 1.0)) == pytest.approx(160.0)
    assert columns.over((6.0, 1.0, 1.0)) == pytest.approx(10.0)


def test_further_axes_multiply() -> None:
    assert Footprint(10.0, False, (ALWAYS, (0.5,), (0.0,))).over((64.0, 3.0, 2.0)) == pytest.approx(10 * 2 * 2)
