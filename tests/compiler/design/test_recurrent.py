"""Recurrent layers: walked through time by one kernel a direction, in every form that torch has."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from .harness import designed, kernels


class Layer(nn.Module):
    """A recurrent layer with or without given states; returns everything or what `pick` names."""

    def __init__(self, layer: nn.Module, pick: int | None = None) -> None:
        super().__init__()
        self.layer = layer
        self.pick = pick

    def forward(self, x: Tensor, *states: Tensor) -> Any:
        given = states if len(states) > 1 else states[0] if states else None
        out, last = self.layer(x, given)
        flat = (out, *(last if isinstance(last, tuple) else (last,)))
        return flat if self.pick is None else flat[self.pick]


@pytest.mark.parametrize(
    ("layer", "inputs", "pick"),
    [
        (nn.LSTM(5, 7, 2, batch_first=True), [torch.randn(3, 4, 5)], None),
        (nn.LSTM(5, 7, bidirectional=True), [torch.randn(4, 3, 5), torch.randn(2, 3, 7), torch.randn(2, 3, 7)], None),
        (nn.LSTM(5, 19), [torch.randn(4, 1, 5), torch.randn(1, 1, 19), torch.randn(1, 1, 19)], 2),
        (nn.GRU(5, 7, 2, bidirectional=True), [torch.randn(3, 2, 5), torch.randn(4, 2, 7)], None),
        (nn.GRU(5, 18, bias=False, batch_first=True), [torch.randn(2, 3, 5)], 1),
        (nn.RNN(5, 7), [torch.randn(3, 2, 5)], 0),
        (nn.RNN(5, 7, nonlinearity="relu", bias=False), [torch.randn(4, 5)], None),
        (nn.LSTM(5, 6).double(), [torch.randn(3, 2, 5, dtype=torch.float64)], 1),
    ],
    ids=["lstm", "both ways", "one row", "gru", "gru without bias", "rnn", "rnn unbatched", "double"],
)
def test_recurrent_layers(layer: nn.Module, inputs: list[Tensor], pick: int | None) -> None:
    designed(Layer(layer, pick), *inputs)


def test_length_does_not_multiply_kernels() -> None:
    short, long = (designed(Layer(nn.LSTM(4, 8), 0), torch.randn(steps, 2, 4)) for steps in (2, 9))
    assert kernels(short) == kernels(long)
