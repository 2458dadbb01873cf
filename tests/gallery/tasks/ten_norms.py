"""Ten steps of normalisation and a cubic, one after the other."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        for _ in range(10):
            x = x - x.mean(-1, keepdim=True)
            x = x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()
            x = x + 0.1 * x * x * x
        return x


def get_inputs():
    return [torch.randn(256, 256)]


def get_init_inputs():
    return []
