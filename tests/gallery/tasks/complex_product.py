"""Elementwise complex product and its modulus."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, x, y):
        z = x * y
        return z, z.abs()


def get_inputs():
    return [torch.randn(64, 700, dtype=torch.complex64), torch.randn(64, 700, dtype=torch.complex64)]


def get_init_inputs():
    return []
