# task: matmul_square
# track: pure
"""A slow correct kernel: plain Python loops over lists."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        columns = b.t().tolist()
        return torch.tensor([[sum(p * q for p, q in zip(row, column)) for column in columns] for row in a.tolist()])
