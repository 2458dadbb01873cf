"""Wrong elements in words."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernelwright.judge.reference import regions


def mask(*shape: int, at: Any = None) -> Any:
    wrong = torch.zeros(shape, dtype=torch.bool)
    if at is not None:
        wrong[at] = True
    return wrong


ALL = slice(None)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (mask(4, 4), "nothing"),
        (mask(4, 4, at=...), "everything"),
        (mask(64, 100, at=(ALL, slice(93, None))), "last 7 columns"),
        (mask(64, 100, at=(slice(None, None, 16),)), "every 16th row"),
        (mask(64, 100, at=(slice(32, 48), slice(0, 32))), "rows 32..47 × first 32 columns"),
        (mask(64, 100, at=(0,)), "first row only"),
        (mask(64, 100, at=(5,)), "row 5 only"),
        (mask(64, 100, at=(3, 9)), "one element, at [3, 9]"),
        (mask(4, 8, 16, at=(ALL, 3)), "index 3 of dim 1 only"),
        (mask(4, 8, 16, at=(..., slice(1, None, 2))), "every 2nd index of dim 2 from 1"),
        (mask(100, at=(slice(90, None),)), "last 10 elements"),
        (torch.tensor(True), "everything"),
    ],
)
def test_regions(wrong: Any, words: str) -> None:
    assert regions.describe(wrong) == words


def test_scattered_elements() -> None:
    wrong = torch.rand(64, 100, generator=torch.Generator().manual_seed(0)) < 0.01
    assert regions.describe(wrong).startswith("scattered")


def test_samples_show_index_expected_and_got() -> None:
    assert regions.samples(torch.tensor([1, 9]), torch.tensor([1, 2]), torch.tensor([False, True])) == (
        "[1]: expected 2, got 9",
    )


def test_the_map_says_how_much_of_each_block_is_wrong() -> None:
    wrong = torch.zeros(2, 100, 7, 64, dtype=torch.bool)
    wrong[:, 50:, :, 10] = True
    found = regions.heat(wrong)
    assert found is not None
    assert (found["axes"], found["rows"], found["columns"]) == ([1, 3], 24, 48)
    share = torch.tensor(found["share"]).reshape(24, 48)
    assert not share[:12].any()
    assert share[12:].sum(1).eq(share[12].sum()).all(), "the same in every row of blocks"
    column = next(c for c in range(48) if c * 64 // 48 <= 10 < (c + 1) * 64 // 48)
    assert share[12, column] == 1 / ((column + 1) * 64 // 48 - column * 64 // 48)
    assert share[12:].count_nonzero() == 12


@pytest.mark.parametrize("shape", [(5,), (3, 1), (1, 1000), (4, 4, 4)])
def test_a_map_of_everything_is_full(shape: tuple[int, ...]) -> None:
    found = regions.heat(torch.ones(shape, dtype=torch.bool))
    assert found is not None
    assert set(found["share"]) == {1.0}
    assert len(found["share"]) == found["rows"] * found["columns"]


def test_a_single_value_has_no_map() -> None:
    assert regions.heat(torch.tensor(True)) is None
