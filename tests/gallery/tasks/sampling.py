"""Draws from rows of probabilities by cumulative sums: an index as far as the uniform number reaches."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, logits, uniform):
        steps = torch.softmax(logits, dim=-1).cumsum(-1)
        return torch.searchsorted(steps, uniform.contiguous()).clamp(max=logits.shape[-1] - 1)


def get_inputs():
    return [torch.randn(256, 512), torch.rand(256, 24)]


def get_init_inputs():
    return []
