"""Means of the first few elements of rows, by length."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, lengths):
        keep = torch.arange(x.shape[1]) < lengths[:, None]
        return (x * keep).sum(1) / lengths.clamp(min=1)


def get_inputs():
    return [torch.randn(128, 256), torch.randint(16, 257, (128,))]


def get_init_inputs():
    return []
