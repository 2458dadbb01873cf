"""Rows with a single one, at the place of the row's largest value."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        y = torch.zeros(x.shape[0], 1024)
        return y.scatter_(1, x.argmax(1, keepdim=True), 1.0)


def get_inputs():
    return [torch.randn(8192, 8)]


def get_init_inputs():
    return []
