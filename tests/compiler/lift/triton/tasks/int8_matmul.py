"""The reference of the kernel of the same name."""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b, sa, sb):
        return (a.int() @ b.int()).float() * sa[:, None] * sb[None, :]


def get_inputs():
    a = torch.randint(-100, 100, (64, 64), dtype=torch.int8)
    b = torch.randint(-100, 100, (64, 96), dtype=torch.int8)
    return [a, b, torch.rand(64), torch.rand(96)]


def get_init_inputs():
    return []
