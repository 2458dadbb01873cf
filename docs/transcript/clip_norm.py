"""Scale a tensor down to a given norm if its norm is larger. The branch depends on data, so torch.export cannot capture it."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, limit: float) -> None:
        super().__init__()
        self.limit = limit

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        norm = x.square().sum().sqrt()
        if norm > self.limit:
            return x * (self.limit / norm)
        return x.clone()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(512, 1024)]


def get_init_inputs() -> list[float]:
    return [100.0]
