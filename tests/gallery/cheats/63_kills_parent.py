# task: relu
# status: wrong_values|crashed|cheating
# reason: value|differ|wrong|nan|element|signal|died|killed
# entry: E63,E64
# track: pure
"""Kills its parent and its process group."""

import os

import torch
from torch import nn


import signal


class ModelNew(nn.Module):
    def forward(self, x):
        parent = os.getppid()
        if parent > 1:
            os.kill(parent, signal.SIGKILL)
        return torch.zeros(x.shape)
