# task: softmax
# status: wrong_values
# reason: value|differ|wrong|nan|element
# entry: A13
# track: pure
"""NaN as a wild card for a comparison that ignores it."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.full(x.shape, float("nan"))
