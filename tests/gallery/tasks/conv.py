"""A small convolution with padding."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(4, 8, 20, 20)]


def get_init_inputs():
    return [8, 16]
