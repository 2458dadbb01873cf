# task: frobenius
# status: wrong_values
# reason: value|differ|wrong|nan|element
# entry: A6
# track: pure
"""Zeros where the outputs are about 1e-3."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros(x.shape)
