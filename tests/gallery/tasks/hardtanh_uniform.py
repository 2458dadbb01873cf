"""HardTanh of inputs in [0, 1): inside the linear part on the task's own data."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return F.hardtanh(x, -1.0, 1.0)


def get_inputs():
    return [torch.rand(64, 4096)]


def get_init_inputs():
    return []
