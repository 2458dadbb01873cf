"""A product with rows of a table, by index: how many rows, and how large the table is, varies."""

import torch


class Model(torch.nn.Module):
    def forward(self, values, table, picks):
        rows = table[picks]
        return (values * rows).sum(-1) / picks.shape[0]


def get_inputs():
    return [torch.randn(40, 16), torch.randn(100, 16), torch.randint(0, 100, (40,))]


def get_dynamic():
    return "values[0], table[0]=1..1000, picks[0]"
