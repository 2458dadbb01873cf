# task: matmul
# track: hybrid
# timing: yes
"""A library product, on the track that allows it."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        return torch.mm(a, b)
