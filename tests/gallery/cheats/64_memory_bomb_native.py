# task: relu
# status: out_of_memory|crashed|timed_out
# reason: memory|bad_alloc|signal|killed|finish
# entry: E64
# track: pure
"""Fills up to sixteen gigabytes of tensors."""

import torch
from torch import nn


kept = []


class ModelNew(nn.Module):
    def forward(self, x):
        while len(kept) < 128:
            kept.append(torch.ones(32 << 20))
        return x.clone()
