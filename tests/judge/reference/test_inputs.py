"""Other distributions and layouts of a task's inputs: legal ones only."""

from __future__ import annotations

import pytest
import torch

from kernelwright.judge.reference import inputs


@pytest.mark.parametrize("name", inputs.DISTRIBUTIONS)
def test_a_distribution_keeps_shape_and_dtype_and_is_repeatable(name: str) -> None:
    drawn = [torch.rand(16, 32), torch.randint(0, 9, (4,)), 3, [torch.rand(5).half()]]
    one = inputs.redistribute(drawn, name, 7)
    two = inputs.redistribute(drawn, name, 7)
    assert one is not None
    assert two is not None
    assert one[0].shape == drawn[0].shape
    assert one[0].dtype == torch.float32
    assert one[3][0].dtype == torch.float16
    assert torch.equal(one[0], two[0])
    assert not torch.equal(one[0], drawn[0])
    assert torch.equal(one[1], drawn[1]), "integers keep what the task drew"
    assert one[2] == 3


def test_kinds_that_mean_something_are_kept() -> None:
    assert inputs.kind(torch.randint(0, 5, (8,))) == "integer"
    assert inputs.kind(torch.randint(0, 2, (8,)).float()) == "whole"
    assert inputs.kind(torch.rand(8, 5).softmax(-1)) == "probability"
    assert inputs.kind(torch.rand(8, 5)) == "real"
    changed = inputs.redistribute([torch.rand(8, 5).softmax(-1)], "large", 0)
    assert changed is not None
    assert torch.allclose(changed[0].sum(-1), torch.ones(8), atol=1e-3)
    assert inputs.redistribute([torch.randint(0, 2, (8,)).float()], "large", 0) is None


def test_positive_values_for_tasks_that_need_them() -> None:
    changed = inputs.redistribute([torch.rand(100)], "normal", 0, positive=True)
    assert changed is not None
    assert bool((changed[0] > 0).all())


def test_only_one_of_several_inputs() -> None:
    drawn = [torch.rand(10), torch.rand(10)]
    changed = inputs.redistribute(drawn, "negative", 0, only=1)
    assert changed is not None
    assert changed[0] is drawn[0]
    assert bool((changed[1] < 0).all())


@pytest.mark.parametrize("seed", range(6))
def test_the_same_values_in_memory_with_gaps(seed: int) -> None:
    drawn = [torch.rand(6, 8), torch.rand(7), torch.tensor(3.0)]
    changed = inputs.strided(drawn, seed)
    assert changed is not None
    assert all(torch.equal(one, two) for one, two in zip(drawn, changed, strict=True))
    assert not changed[0].is_contiguous()
    assert not changed[1].is_contiguous()


def test_touched_inputs_differ_in_few_places_away_from_the_ends() -> None:
    drawn = [torch.rand(100, 100)]
    changed = inputs.touched(drawn, 1)[0]
    places = (changed != drawn[0]).flatten().nonzero().flatten()
    assert 1 <= len(places) <= inputs.TOUCHED
    assert int(places.min()) >= 2500
    assert int(places.max()) < 7500
