# task: distances
# track: hybrid
"""A library routine on track hybrid whose own steps (products, sums, roots) are its business, not the kernel's."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.cdist(a, b)
