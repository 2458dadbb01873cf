"""What timed blocks give away, and what they do not: an accusation rests on figures that no honest kernel has."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from kernelwright.judge.honesty.suspicion import suspicion
from kernelwright.judge.timing.contender import Block, Contender


def contender(seconds: float, handing: float, megabytes: float = 0.0) -> Contender:
    """A contender of seven equal blocks of eight calls."""
    blocks = [Block(seconds / 8, 8, seconds, seconds + 1e-5, 1e-3, 0.125) for _ in range(7)]
    return Contender("x", cast(Any, None), 1.0, blocks, handing=[handing] * 7, handed_bytes=int(megabytes * 1e6))


def test_outputs_computed_when_asked_for_are_told() -> None:
    found = suspicion(contender(0.004, 0.020, 4), contender(0.016, 0.004, 4), 0.0)
    assert found is not None
    assert "handing them over" in found["reason"]


def test_outputs_that_have_left_the_cache_may_take_longer_to_hand_over() -> None:
    """A kernel with streaming stores: 64 MB come from memory, eager's partly from the cache."""
    assert suspicion(contender(0.020, 0.034, 64), contender(0.018, 0.016, 64), 0.0) is None


def test_a_few_loaded_moments_are_no_accusation() -> None:
    """Most blocks of the kernel received their inputs as eager's did."""
    mine, theirs = contender(0.001, 0.0), contender(0.001, 0.0)
    mine.blocks = [replace(block, preparing=0.004 if n % 2 else 0.001) for n, block in enumerate(mine.blocks)]
    assert suspicion(mine, theirs, 0.0) is None
    mine.blocks = [replace(block, preparing=0.004) for block in mine.blocks]
    assert "receiving its inputs" in (suspicion(mine, theirs, 0.0) or {})["reason"]
