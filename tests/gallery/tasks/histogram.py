"""How many elements fall into each of 32 bins."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        places = ((x + 4.0) * 4.0).long().clamp(0, 31)
        return torch.bincount(places.reshape(-1), minlength=32)


def get_inputs():
    return [torch.randn(512, 512)]


def get_init_inputs():
    return []
