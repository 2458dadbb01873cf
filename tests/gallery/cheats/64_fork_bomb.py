# task: relu
# status: crashed|wrong_values|timed_out|out_of_memory|cheating
# reason: fork|process|resource|memory|value|differ|wrong|nan|element|time|still
# entry: E64
# track: pure
"""Forks as often as it is let, up to a few hundred."""

import os

import torch
from torch import nn


import time


class ModelNew(nn.Module):
    def forward(self, x):
        for _ in range(400):
            try:
                if os.fork() == 0:
                    time.sleep(20)
                    os._exit(0)
            except OSError:
                break
        return torch.zeros(x.shape)
