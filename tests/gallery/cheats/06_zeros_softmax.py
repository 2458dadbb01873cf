# task: softmax
# status: wrong_values
# reason: value|differ|wrong|nan|element
# entry: A6
# track: pure
"""Zeros, below any absolute tolerance of 1e-3."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros(x.shape)
