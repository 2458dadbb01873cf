# task: softmax
# status: wrong_values|crashed|timed_out|cheating
# reason: value|differ|wrong|nan|element|output|broken|pipe|signal|limit
# entry: E64
# track: pure
"""Writes a hundred megabytes to both streams."""

import os

import torch
from torch import nn


import sys


class ModelNew(nn.Module):
    def forward(self, x):
        line = "x" * 65536
        for _ in range(800):
            for stream in (1, 2):
                try:
                    os.write(stream, line.encode())
                except OSError:
                    pass
        return torch.zeros(x.shape)
