"""A product of 8-bit integers with a scale."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, x, w, s):
        return (x.int() @ w.int().t()).float() * s


def get_inputs():
    return [
        torch.randint(-128, 128, (64, 256), dtype=torch.int8),
        torch.randint(-128, 128, (96, 256), dtype=torch.int8),
        torch.rand(96) + 0.5,
    ]


def get_init_inputs():
    return []
