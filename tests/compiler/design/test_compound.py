"""Operators that are written in terms of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .harness import designed

IDS = torch.randint(0, 20, (12,))
TABLE = torch.randn(20, 5)


@pytest.mark.parametrize(
    ("function", "inputs"),
    [
        (torch.hypot, [torch.tensor([3.0, 0.0, 1e30, 1e-30, float("inf")]), torch.tensor([4.0, 0.0, 1e30, 1e-30, 1.0])]),
        (F.rrelu, [torch.randn(3, 4)]),
        (nn.Bilinear(5, 6, 4), [torch.randn(3, 5), torch.randn(3, 6)]),
        (lambda i, t: F.embedding_bag(i.reshape(3, 4), t, mode="mean"), [IDS, TABLE]),
        (lambda i, t: F.embedding_bag(i.reshape(3, 4), t, mode="max"), [IDS, TABLE]),
        (
            lambda i, t, w: F.embedding_bag(i.reshape(3, 4), t, per_sample_weights=w, mode="sum"),
            [IDS, TABLE, torch.randn(3, 4)],
        ),
        (lambda i, t, o: F.embedding_bag(i, t, o, mode="sum"), [IDS, TABLE, torch.tensor([0, 2, 2, 9])]),
        (lambda i, t, o: F.embedding_bag(i, t, o, mode="mean"), [IDS, TABLE, torch.tensor([0, 2, 2, 9])]),
        (lambda i, t, o: F.embedding_bag(i, t, o, mode="max"), [IDS, TABLE, torch.tensor([0, 2, 2, 9])]),
    ],
    ids=["hypot", "rrelu", "bilinear", "bags", "bags max", "weighted", "ragged", "ragged mean", "ragged max"],
)
def test_compound(function: Callable[..., Any], inputs: list[Tensor]) -> None:
    designed(function, *inputs)
