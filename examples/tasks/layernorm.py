"""Layer normalisation over the last two dimensions, with affine weights."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.norm = nn.LayerNorm(shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def get_inputs():
    return [torch.randn(64, 256, 256)]


def get_init_inputs():
    return [(256, 256)]
