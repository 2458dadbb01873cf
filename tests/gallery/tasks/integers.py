"""Integer arithmetic: exact."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, y):
        return x * 3 + (y >> 1)


def get_inputs():
    return [torch.randint(-1000, 1000, (128, 512)), torch.randint(-1000, 1000, (128, 512))]


def get_init_inputs():
    return []
