# task: relu
# status: timed_out
# reason: time|limit|second
# entry: E64
# track: pure
"""Never returns."""

from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        while True:
            pass
