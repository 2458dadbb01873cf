# task: transpose
# track: pure
"""The same values in memory of its own."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[1], x.shape[0])
        y.copy_(x.t())
        return y
