"""Two outputs as a tuple."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.sum(dim=1), x.amax(dim=1)


def get_inputs():
    return [torch.randn(128, 1024)]


def get_init_inputs():
    return []
