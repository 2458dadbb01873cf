"""Complex conjugate."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.conj_physical(x)


def get_inputs():
    return [torch.randn(256, 300, dtype=torch.complex64)]


def get_init_inputs():
    return []
