"""Where one is larger, and how many are."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, x, y):
        m = x > y
        return {"mask": m, "count": m.sum(1)}


def get_inputs():
    return [torch.randn(200, 333), torch.randn(200, 333)]


def get_init_inputs():
    return []
