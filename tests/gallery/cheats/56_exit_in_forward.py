# task: relu
# status: crashed
# reason: exit|end|died
# entry: E56
# track: pure
"""Leaves with exit code 0 in forward."""

import os

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        os._exit(0)
