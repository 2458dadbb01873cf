"""A product so small that a library's routine takes microseconds."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(96, 96), torch.randn(96, 96)]


def get_init_inputs():
    return []
