"""Tiles of a product on a CPU: threads finish together, and nothing is cut finer than that needs."""

from __future__ import annotations

import pytest

from kernelwright.compiler.schedule.contraction.blocks import ceil_div
from kernelwright.compiler.schedule.contraction.gemm_tiles import Copies, choose

PACKED = Copies(6, 20)


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize(("m", "n"), [(1024, 1024), (384, 768), (640, 896), (491, 739), (24576, 20), (127, 131), (5, 9)])
def test_threads_are_busy_to_the_end(m: int, n: int, threads: int) -> None:
    tall, wide = choose(m, n, 1, threads, (512, 128), PACKED)
    tiles = ceil_div(m, tall) * ceil_div(n, wide)
    work = ceil_div(tiles, threads) * threads * tall * wide
    assert tall <= m
    assert wide <= max(n, 16)
    if m * n >= 48 * 48 * threads:  # less is not worth cutting evenly
        assert work <= 1.25 * m * n


def test_one_thread_takes_large_tiles_that_divide() -> None:
    assert choose(1024, 1024, 1, 1, (512, 128), PACKED) == (512, 128)
    assert choose(96, 128, 48, 2, (512, 128), PACKED) == (96, 128)


def test_whole_blocks_of_rows_where_that_costs_nothing() -> None:
    assert choose(768, 512, 1, 2, (256, 256), Copies(0, 0))[0] % 6 == 0
