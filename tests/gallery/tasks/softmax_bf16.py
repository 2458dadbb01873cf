"""Softmax in bfloat16."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(128, 768).bfloat16()]


def get_init_inputs():
    return []
