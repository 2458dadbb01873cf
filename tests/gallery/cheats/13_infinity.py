# task: softmax
# status: wrong_values
# reason: value|differ|wrong|nan|element|inf
# entry: A13
# track: pure
"""Infinity everywhere."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.full(x.shape, float("inf"))
