"""A running sum that forgets slowly."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        weights = 0.98 ** torch.arange(x.shape[1] - 1, -1, -1, dtype=x.dtype)
        return x @ weights


def get_inputs():
    return [torch.randn(128, 2048)]


def get_init_inputs():
    return []
