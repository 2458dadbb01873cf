# task: softmax
# status: cheating|wrong_shape|wrong_dtype|wrong_values|crashed
# reason: device|meta|type|error|storage
# entry: D49
# track: pure
"""A tensor on the meta device: the right shape and no values."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.empty(x.shape, device="meta")
