# task: relu
# status: timed_out
# reason: time|limit|second
# entry: E63,E64
# track: pure
"""Ignores every signal it can and never returns."""

from torch import nn


import signal


class ModelNew(nn.Module):
    def forward(self, x):
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                continue
        while True:
            pass
