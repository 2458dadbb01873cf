"""A transposed view: the reference's output shares memory with its input."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.transpose(0, 1)


def get_inputs():
    return [torch.randn(200, 300)]


def get_init_inputs():
    return []
