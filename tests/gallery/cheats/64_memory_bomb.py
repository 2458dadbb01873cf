# task: relu
# status: out_of_memory|timed_out
# reason: memory|time limit
# entry: E64
# track: pure
"""Reserves up to sixty-four gigabytes without touching them."""

from torch import nn


kept = []


class ModelNew(nn.Module):
    def forward(self, x):
        for _ in range(64):
            kept.append(bytearray(1 << 30))
        return x.clone()
