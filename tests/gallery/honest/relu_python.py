# task: relu
# track: pure
"""A slow correct kernel without any library: one element at a time."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        values = [v if v > 0.0 or v != v else 0.0 for v in x.flatten().tolist()]
        return torch.tensor(values).view(x.shape)
