"""A kernel file for several input shapes: one program each, chosen by the shapes of the call, parameters shared."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from kernelwright.compiler.backends.cpp.emit import lower
from kernelwright.compiler.designer import design_module


class Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(17, 9)
        self.scale = nn.Parameter(torch.randn(9))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.linear(x) * self.scale, 1)


@pytest.fixture(scope="module")
def pair() -> tuple[nn.Module, Any]:
    model = Head().eval().requires_grad_(False)
    sketches = [design_module(model, [torch.randn(rows, 17)])[0].sketch for rows in (5, 8, 33)]
    state = [(name, tuple(value.shape), "float32", False) for name, value in model.state_dict().items()]
    namespace: dict[str, Any] = {"__name__": "kernel"}
    exec(lower(sketches[0], state=state, shapes=sketches[1:]), namespace)
    return model, namespace["ModelNew"]()


@pytest.mark.parametrize("rows", [5, 8, 33])
def test_every_shape_has_its_program(pair: tuple[nn.Module, Any], rows: int) -> None:
    model, kernel = pair
    kernel.load_state_dict(model.state_dict())
    x = torch.randn(rows, 17)
    torch.testing.assert_close(kernel(x), model(x))


def test_prepared_weights_follow_the_parameters(pair: tuple[nn.Module, Any]) -> None:
    model, kernel = pair
    x = torch.randn(8, 17)
    kernel.load_state_dict(model.state_dict())
    kernel(x)
    with torch.no_grad():
        model.linear.weight.mul_(2)  # type: ignore[union-attr,operator]
    kernel.load_state_dict(model.state_dict())
    torch.testing.assert_close(kernel(x), model(x))


def test_another_shape_is_refused_in_words(pair: tuple[nn.Module, Any]) -> None:
    with pytest.raises(ValueError, match="made for inputs of the shapes"):
        pair[1](torch.randn(6, 17))
