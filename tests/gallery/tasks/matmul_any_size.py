"""A product of which all three sizes vary."""

import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.relu(a @ b)


def get_inputs():
    return [torch.randn(48, 64), torch.randn(64, 32)]


def get_dynamic():
    return {"a": {0: (1, 2048), 1: (1, 2048)}, "b": {1: (1, 2048)}}
