# task: transpose
# track: pure
"""A view of its input, as the reference returns too."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return x.t()
