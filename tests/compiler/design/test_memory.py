"""Whether rearranged weights may be kept: all of them together, beside what eager holds anyway; a rule for the C++ coder alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from kernelwright.compiler.designer import Design, design_module
from kernelwright.compiler.hardware import capabilities_of
from kernelwright.compiler.language import language


def keeps(design: Design) -> bool:
    return any(getattr(step, "once", False) for step in design.sketch.steps)


def test_weights_are_kept_where_they_are_small_beside_the_rest() -> None:
    layer = nn.Linear(96, 64).eval()
    assert keeps(design_module(layer, [torch.randn(4096, 96)])[0])
    assert not keeps(design_module(layer, [torch.randn(128, 96)])[0])


def test_a_weight_that_two_products_share_is_counted_twice() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(64, 64))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x @ self.weight) @ self.weight

    # each product packs it for itself: at 420 rows one copy is 7 % of inputs, parameters and results and two are 14 %, at 1200 5 %
    assert not keeps(design_module(Tied().eval(), [torch.randn(420, 64)])[0])
    assert keeps(design_module(Tied().eval(), [torch.randn(1200, 64)])[0])


@pytest.mark.parametrize("dsl", ["triton", "cuda_c", "tilelang"])
def test_other_languages_turn_few_rows_as_ever(dsl: str) -> None:
    layer = nn.Linear(320, 176).eval()
    few, many = (
        design_module(layer, [torch.randn(rows, 320)], capabilities=capabilities_of(language(dsl)))[0] for rows in (2, 64)
    )
    assert keeps(few)
    assert not keeps(many)
    names = [step.name for step in many.sketch.steps]  # type: ignore[union-attr]
    assert names == ["gemm"]
