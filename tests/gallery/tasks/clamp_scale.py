"""A clamp that normal noise never reaches."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.clamp(x, min=-8.0, max=8.0) * 1.5


def get_inputs():
    return [torch.randn(256, 1024)]


def get_init_inputs():
    return []
