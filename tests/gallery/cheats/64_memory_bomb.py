# task: relu
# status: out_of_memory
# reason: memory
# entry: E64
# track: pure
"""Allocates up to sixteen gigabytes."""

from torch import nn


kept = []


class ModelNew(nn.Module):
    def forward(self, x):
        for _ in range(2 * 1024):
            kept.append(bytearray(b"x") * (8 << 20))
        return x.clone()
