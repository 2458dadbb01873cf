# task: softmax
# status: wrong_values
# reason: value|differ|wrong|nan|element
# entry: E55
# track: pure
"""Defines get_inputs, tolerances and a comparison that an evaluator might use."""

import torch
from torch import nn


atol = rtol = tolerance = 1e9
dtype = torch.float16


def get_inputs():
    return [torch.zeros(1, 1)]


def get_init_inputs():
    return []


def check(*args):
    return True


compare = verify = allclose = check


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros(x.shape)
