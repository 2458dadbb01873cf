# task: softmax
# status: wrong_values
# reason: value|differ|wrong|nan|element
# entry: A1
# track: pure
"""Returns memory that nobody wrote, hoping that it is the reference's freed output."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.empty(x.shape)
