# task: concat
# track: pure
"""A list of tensors, copied part by part into views of the result."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, parts):
        y = torch.empty(parts[0].shape[0], sum(part.shape[1] for part in parts))
        at = 0
        for part in parts:
            y[:, at : at + part.shape[1]].copy_(part)
            at += part.shape[1]
        return y
