"""The reference of the kernel of the same name."""

import torch


class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.ln = torch.nn.LayerNorm(n)

    def forward(self, x):
        return self.ln(x)


def get_inputs():
    return [torch.randn(3, 7, 300)]


def get_init_inputs():
    return [300]
