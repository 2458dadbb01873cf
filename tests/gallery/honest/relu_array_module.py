# task: relu
# track: pure
"""The standard library's array module as storage for the result."""

import torch
from torch import nn

import array


class ModelNew(nn.Module):
    def forward(self, x):
        flat = x.contiguous().view(-1)
        values = array.array("f", [v if v > 0.0 or v != v else 0.0 for v in flat.tolist()])
        return torch.frombuffer(values, dtype=torch.float32).view(x.shape)
