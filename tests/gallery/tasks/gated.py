"""Several parameters, a buffer and dropout: constructed with keywords."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.gate = nn.Linear(features, hidden, bias=False)
        self.up = nn.Linear(features, hidden)
        self.dropout = nn.Dropout(0.5)
        self.register_buffer("mask", (torch.arange(hidden) % 3 != 0).float())

    def forward(self, x):
        return self.dropout(F.silu(self.gate(x)) * self.up(x) * self.mask)


def get_inputs():
    return [torch.randn(64, 96)]


def get_init_inputs():
    return [{"features": 96, "hidden": 160}]
