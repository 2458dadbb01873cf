"""Distances between all pairs of rows, and losses built on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from .harness import designed

X, Y = torch.randn(7, 5), torch.randn(4, 5)


@pytest.mark.parametrize("order", [0.0, 1.0, 2.0, 3.5, float("inf")])
def test_all_pairs_of_two_sets(order: float) -> None:
    mode = "donot_use_mm_for_euclid_dist"
    designed(lambda x, y: torch.cdist(x, y, order, compute_mode=mode), X, Y)
    designed(lambda x, y: torch.cdist(x, y, order, compute_mode=mode), torch.randn(3, 2, 5), torch.randn(3, 6, 5))


@pytest.mark.parametrize("rows", [1, 2, 3, 13])
def test_pairs_within_one_set_come_in_order(rows: int) -> None:
    designed(lambda x: torch.pdist(x), torch.randn(rows, 5))
    designed(lambda x: torch.pdist(x, 1.0), torch.randn(rows, 5))


@pytest.mark.parametrize(
    "loss",
    [
        lambda x, y: F.cosine_embedding_loss(x, y, torch.tensor([1, -1, 1, -1]), margin=0.2),
        lambda x, y: F.hinge_embedding_loss(x, torch.where(y > 0, 1.0, -1.0)),
        lambda x, y: F.pairwise_distance(x, y, 1.5),
    ],
    ids=["cosine", "hinge", "pairwise"],
)
def test_losses_of_distances(loss: Callable[..., Any]) -> None:
    x: Tensor = X[:4]
    designed(loss, x, Y)
