"""Means of rows by group."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, x, g):
        s = torch.zeros(40, x.shape[1]).index_add_(0, g, x)
        c = torch.zeros(40).index_add_(0, g, torch.ones(x.shape[0]))
        return s / c.clamp(min=1)[:, None]


def get_inputs():
    return [torch.randn(3000, 64), torch.randint(0, 40, (3000,))]


def get_init_inputs():
    return []
