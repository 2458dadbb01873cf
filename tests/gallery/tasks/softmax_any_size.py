"""Softmax of weighted rows, for any number of rows and columns."""

import torch


class Model(torch.nn.Module):
    def forward(self, x, w):
        return torch.softmax(x * w, dim=-1)


def get_inputs():
    return [torch.randn(32, 96), torch.rand(96) + 0.5]


def get_dynamic():
    return "x[0]=1..4096, x[1]"
