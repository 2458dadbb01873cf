"""The reference of the kernel of the same name."""

import torch


class Model(torch.nn.Module):
    def __init__(self, g, c):
        super().__init__()
        self.gn = torch.nn.GroupNorm(g, c)

    def forward(self, x):
        return self.gn(x)


def get_inputs():
    return [torch.randn(2, 8, 5, 6)]


def get_init_inputs():
    return [4, 8]
