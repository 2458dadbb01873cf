"""The reference of the kernel of the same name."""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        c = a @ b
        first = (torch.arange(c.shape[0]) % 8 == 0).to(c.dtype)[:, None]
        x = c + first
        return x * x + 2 * x + 3


def get_inputs():
    return [torch.randn(40, 96), torch.randn(96, 50)]


def get_init_inputs():
    return []
