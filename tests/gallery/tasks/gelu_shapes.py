"""GELU at several shapes."""

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return F.gelu(x)


def get_inputs():
    return [torch.randn(128, 1024)]


def get_inputs_dyn_list():
    return [[torch.randn(128, 1024)], [torch.randn(3, 1001)], [torch.randn(1, 17)]]


def get_init_inputs():
    return []
