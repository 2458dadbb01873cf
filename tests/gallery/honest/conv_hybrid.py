# task: conv
# track: hybrid
"""A library convolution on track hybrid."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)

    def forward(self, x):
        return torch.nn.functional.conv2d(x, self.conv.weight, self.conv.bias, padding=1)
