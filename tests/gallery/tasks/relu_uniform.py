"""ReLU of inputs in [0, 1): on the task's own data it is the identity."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.rand(256, 1024)]


def get_init_inputs():
    return []
