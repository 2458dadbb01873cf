"""The reference of the kernel of the same name."""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.bmm(a.transpose(1, 2), b)


def get_inputs():
    return [torch.randn(3, 80, 40), torch.randn(3, 80, 50)]


def get_init_inputs():
    return []
