# task: relu
# status: timed_out
# reason: time|limit|second
# entry: E64
# track: pure
"""Never finishes its import, and sleeps instead of burning time."""

from torch import nn

import time

while True:
    time.sleep(1)


class ModelNew(nn.Module):
    def forward(self, x):
        return x
