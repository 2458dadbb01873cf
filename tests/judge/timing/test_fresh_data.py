"""Independent data: what every timed call gets to see."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from kernelwright.judge.timing import fresh_data
from kernelwright.judge.timing.fresh_data import FreshData, Law, rescale
from kernelwright.workers import bundle


def drawing(make: Any) -> FreshData:
    def draw(seed: int) -> list[Any]:
        torch.manual_seed(seed)
        return list(make())

    return FreshData(draw)


def sets(fresh: FreshData, calls: int, seed: int) -> list[list[Any]]:
    packed = fresh.packed(calls, seed)
    try:
        return list(bundle.unpack(packed.header, packed.fd))
    finally:
        packed.close()


@pytest.mark.parametrize("slow", [False, True], ids=["drawn", "filled"])
def test_no_two_calls_share_a_row(slow: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if slow:
        monkeypatch.setattr(fresh_data, "BLOCK_SECONDS", 0.0)
    fresh = drawing(lambda: [torch.randn(64, 128)])
    drawn = [inputs[0] for inputs in (*sets(fresh, 3, 1), *sets(fresh, 3, 2))]
    for place, one in enumerate(drawn):
        for other in drawn[:place]:
            likeness = (one * other).sum(1).abs() / (one.norm(dim=1) * other.norm(dim=1))
            assert float(likeness.max()) < 0.5, "no row is a multiple of another"


@pytest.mark.parametrize("make", [lambda: torch.rand(96, 96) * 3 - 1, lambda: torch.randn(100, 100) * 2 + 5])
def test_a_law_gives_the_same_distribution(make: Any) -> None:
    tensor = make()
    law = Law.of(tensor)
    assert law is not None
    filled = torch.empty_like(tensor)
    law.fill(filled, 3)
    assert abs(float(filled.mean() - tensor.mean())) < 0.2
    assert abs(float(filled.std() - tensor.std())) < 0.1


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randn(128, 128).sort(dim=1).values,
        torch.softmax(torch.randn(128, 128), 1),
        torch.nn.functional.normalize(torch.randn(128, 128)),
        torch.randn(128, 128).tril(),
        (lambda x: x + x.T)(torch.randn(128, 128)),
        torch.randn(128, 1).expand(128, 128).contiguous(),
        torch.randn(128, 128) * torch.logspace(-3, 3, 128)[:, None],
        torch.randint(0, 9, (128, 128)),
    ],
    ids=["sorted", "rows of probability", "unit rows", "triangle", "symmetric", "repeated", "scaled rows", "integers"],
)
def test_structure_is_left_to_the_task(tensor: torch.Tensor) -> None:
    assert Law.of(tensor) is None


def test_inputs_that_never_change_are_rescaled() -> None:
    fresh = drawing(lambda: [torch.linspace(1, 2, 4096), torch.arange(10)])
    (one, kept), (other, _) = sets(fresh, 2, 1)
    assert (one / other).unique().numel() > 100
    assert torch.equal(kept, torch.arange(10))


def test_rescaling_keeps_zeros_and_signs_and_never_grows() -> None:
    tensor = torch.randn(50, 40)
    tensor[:, 3] = 0
    other = tensor.clone()
    rescale(other, random.Random(1))
    assert not torch.equal(other, tensor)
    assert torch.equal(other.sign(), tensor.sign())
    assert bool((other.abs() <= tensor.abs()).all())
