# task: mean_noise
# status: wrong_values
# reason: value|differ|wrong|nan|element
# entry: A7
# track: pure
"""Zeros, by the law of large numbers."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros(x.shape[0])
