"""The reference of the kernel of the same name."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return (x * torch.clamp(x + 3, 0, 6) / 6).t().contiguous()


def get_inputs():
    return [torch.randn(30, 40)]


def get_init_inputs():
    return []
