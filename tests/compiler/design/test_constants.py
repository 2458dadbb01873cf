"""Tensors that a module keeps for itself: recognised by rule, written as tables, or refused with a reason."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kernelwright.compiler.designer import design_module
from kernelwright.compiler.frontend.capture import dtype_of
from kernelwright.compiler.frontend.constants import collapsed, recognised
from kernelwright.core.errors import UnsupportedOperator

from .harness import designed


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tril(torch.ones(5, 7)),
        torch.triu(torch.full((6, 6), -math.inf), 1),
        torch.ones(4, 4, dtype=torch.bool).tril(-2).reshape(1, 1, 4, 4),
        torch.arange(3, 60, 4, dtype=torch.int32),
        torch.arange(9.0).flip(0).reshape(1, 9, 1),
        torch.full((2, 3), math.nan),
        torch.arange(4).expand(3, 4),
    ],
    ids=["lower", "causal", "mask", "ramp", "downwards", "nan", "repeated"],
)
def test_rules_give_the_tensor_back(tensor: Tensor) -> None:
    assert recognised(collapsed(tensor), dtype_of(tensor.dtype)) is not None

    class Holder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("held", tensor, persistent=False)

        def forward(self, x: Tensor) -> Any:
            return self.held, x + 1

    assert not designed(Holder(), torch.randn(3)).sketch.constants


@pytest.mark.parametrize(
    "tensor",
    [torch.linspace(0, 1, 7), torch.eye(4), torch.tensor([[0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]), torch.arange(4.0) * 0.1],
)
def test_what_has_no_rule_is_a_table(tensor: Tensor) -> None:
    assert recognised(collapsed(tensor), dtype_of(tensor.dtype)) is None


class Stateful(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = torch.zeros(3, 4)
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor, hidden: Tensor | None = None) -> Tensor:
        if hidden is not None:
            self.hidden.copy_(hidden)
        self.hidden = torch.tanh(self.linear(self.hidden + x))
        return self.hidden * 2


def test_a_state_that_is_overwritten_first_is_no_matter() -> None:
    model = Stateful()
    designed(model, torch.randn(3, 4), torch.randn(3, 4))
    assert "hidden" in vars(model)


def test_a_state_that_is_read_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedOperator, match="forward reads hidden and changes it"):
        design_module(Stateful(), [torch.randn(3, 4)])


def test_what_cannot_be_recorded_is_said_in_one_sentence() -> None:
    class Choosing(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 2 if x.sum() > 0 else x

    with pytest.raises(UnsupportedOperator, match=r"torch.export cannot record it: [^\n]+$"):
        design_module(Choosing(), [torch.randn(3)])


@pytest.mark.filterwarnings("ignore:A model attribute")
def test_what_is_recorded_but_cannot_be_decomposed_is_said_in_one_sentence() -> None:
    """torch.export records a gradient that forward takes of a function; only to bring it to core ATen fails."""

    class Slope(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.func.grad(lambda y: (y * y).sum())(x)

    recorded = torch.export.export(Slope(), (torch.randn(3),), strict=False)
    with pytest.raises(RuntimeError), torch.no_grad():
        recorded.run_decompositions(torch.export.default_decompositions())
    with pytest.raises(UnsupportedOperator, match=r"this module.*torch.export cannot record it: [^\n]+$") as refused:
        design_module(Slope(), [torch.randn(3)])
    assert isinstance(refused.value.__cause__, RuntimeError)


def test_an_unknown_constant_matters_only_where_it_is_used() -> None:
    drawn = frozenset({"hidden"})
    model = Stateful()
    model.hidden = torch.randn(3, 4)
    assert design_module(model, [torch.randn(3, 4), torch.randn(3, 4)], drawn=drawn)
    with pytest.raises(UnsupportedOperator, match="drawn at random"):
        design_module(model, [torch.randn(3, 4)], drawn=drawn)
