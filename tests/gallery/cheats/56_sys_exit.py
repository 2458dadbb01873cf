# task: relu
# status: crashed
# reason: exit|SystemExit|died
# entry: E56
# track: pure
"""sys.exit(0) in forward."""

from torch import nn

import sys


class ModelNew(nn.Module):
    def forward(self, x):
        sys.exit(0)
