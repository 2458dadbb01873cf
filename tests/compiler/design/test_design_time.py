"""Unrolled loops are designed in a time that grows with their length, not with its exponential: these would never end."""

import pytest
import torch

from tests.compiler.design.harness import designed


class Normalised(torch.nn.Module):
    """Rows and columns in turn, as in Sinkhorn's iteration."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(10):
            x = x / x.sum(-1, keepdim=True)
            x = x / x.sum(-2, keepdim=True)
        return x


class Steps(torch.nn.Module):
    """A state that each step uses twice."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = x[:, 0] * 0
        for k in range(64):
            state = torch.sigmoid(state) * 0.9 + x[:, k] * state
        return state


@pytest.mark.timeout(120)
def test_ten_rounds_of_normalisation() -> None:
    designed(Normalised(), torch.rand(8, 6) + 0.1)


@pytest.mark.timeout(120)
def test_sixty_four_steps() -> None:
    designed(Steps(), torch.randn(2, 64, 3))
