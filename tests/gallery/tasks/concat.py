"""A list of tensors as one argument."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, parts):
        return torch.cat(parts, dim=1)


def get_inputs():
    return [[torch.randn(64, 100), torch.randn(64, 37), torch.randn(64, 211)]]


def get_init_inputs():
    return []
