# task: relu
# status: out_of_memory|crashed
# reason: memory|bad_alloc|signal|killed
# entry: E64
# track: pure
"""The same by tensors."""

import torch
from torch import nn


kept = []


class ModelNew(nn.Module):
    def forward(self, x):
        while len(kept) < 128:
            kept.append(torch.ones(32 << 20))
        return x.clone()
