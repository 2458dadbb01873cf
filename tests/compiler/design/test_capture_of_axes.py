"""Two axes over the same tensor stay two where both are needed at once: a reduction inside another may not take its axis."""

from collections.abc import Callable

import pytest
import torch

from tests.compiler.design.harness import designed


def outer(x: torch.Tensor) -> torch.Tensor:
    """Each element times the sum of its row; twice over, that sum is read at two places of one axis."""
    return (x[..., None] * x[..., None, :]).sum(-1)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x[:, None] - x[None, :]).abs().amax(1).mean(),
        lambda x: (x[:, None] - x[None, :]).square().sum((1, 2)).amin(),
        lambda x: (x[:, None, 0] * x[None, :, 0]).amax(1).sum(),
        lambda x: outer(outer(x)),
        lambda x: (x[:, None, 0] - x[None, :, 0] + x[:, None, 1]).argmin(1).float().mean(),
        lambda x: torch.softmax(x, 0).amax(0).sum(),
    ],
)
def test_pairs_of_rows_are_pairs(f: Callable[[torch.Tensor], torch.Tensor]) -> None:
    designed(f, torch.randn(12, 5, generator=torch.Generator().manual_seed(1)))
