"""Sums over the outputs of a linear map are taken before the product; other sums are left alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from kernelwright.sketch import nodes
from kernelwright.sketch.print import to_source

from .harness import designed


class Summed(nn.Module):
    """A linear layer and what follows it."""

    def __init__(self, then: Callable[[torch.Tensor], torch.Tensor], bias: bool = True) -> None:
        super().__init__()
        self.base = nn.Linear(24, 40, bias=bias)
        self.then = then

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.then(self.base(x))


SAVED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sum": lambda y: y.sum(dim=-1),
    "mean, kept axis": lambda y: y.mean(dim=-1, keepdim=True),
    "shifted and scaled": lambda y: ((y - 3.0) / 2.0).sum(dim=1, keepdim=True) * 1.5,
    "row factor": lambda y: (y * torch.arange(1.0, 7.0).unsqueeze(1)).sum(dim=1),
}
NOT_SAVED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "activation": lambda y: torch.relu(y).sum(dim=-1),
    "other axis": lambda y: y.sum(dim=0),
    "squares": lambda y: (y * y).sum(dim=-1),
    "maximum": lambda y: y.amax(dim=-1),
}


def has_whole_product(sketch: nodes.Sketch) -> bool:
    return "gemm(" in to_source(sketch)


@pytest.mark.parametrize("name", SAVED)
@pytest.mark.parametrize("bias", [True, False])
def test_one_column_instead_of_all(name: str, bias: bool) -> None:
    design = designed(Summed(SAVED[name], bias), torch.randn(6, 24))
    assert not has_whole_product(design.sketch)


@pytest.mark.parametrize("name", NOT_SAVED)
def test_what_is_not_linear_needs_the_product(name: str) -> None:
    assert has_whole_product(designed(Summed(NOT_SAVED[name]), torch.randn(6, 24)).sketch)


def test_leading_axes() -> None:
    design = designed(Summed(lambda y: y.mean(dim=-1)), torch.randn(2, 3, 24))
    assert not has_whole_product(design.sketch)


CONVOLUTIONS: dict[str, Callable[[], nn.Module]] = {
    "plain": lambda: nn.Conv2d(3, 20, 3, padding=1),
    "strided": lambda: nn.Conv2d(3, 20, 3, stride=2, bias=False),
    "transposed": lambda: nn.ConvTranspose2d(3, 20, 3, stride=2, padding=1),
}


class Convolved(nn.Module):
    """A convolution and what follows it."""

    def __init__(self, layer: nn.Module, then: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.layer, self.then = layer, then

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.then(self.layer(x))


def convolves_into(sketch: nodes.Sketch, channels: int) -> bool:
    """Whether packed or transformed weights have so many output channels."""
    packed = [t for t in sketch.tensors if t.name.startswith("weight_") and t.role == "temp"]
    return any(t.shape[-2] == nodes.Int(channels) for t in packed)


@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_one_channel_instead_of_all(kind: str) -> None:
    def then(y: torch.Tensor) -> torch.Tensor:
        return torch.tanh(((y - 0.5) / 2.0).mean(dim=1, keepdim=True))

    sketch = designed(Convolved(CONVOLUTIONS[kind](), then), torch.randn(2, 3, 7, 9)).sketch
    assert convolves_into(sketch, 1)


@pytest.mark.parametrize("then", [lambda y: torch.relu(y).sum(dim=1), lambda y: y.sum(dim=2), lambda y: y.amax(dim=1)])
def test_other_sums_need_all_channels(then: Callable[[torch.Tensor], torch.Tensor]) -> None:
    sketch = designed(Convolved(CONVOLUTIONS["plain"](), then), torch.randn(2, 3, 7, 9)).sketch
    assert convolves_into(sketch, 20)


def test_groups_keep_their_channels() -> None:
    layer = nn.Conv2d(4, 20, 3, groups=2)
    sketch = designed(Convolved(layer, lambda y: y.sum(dim=1)), torch.randn(2, 4, 7, 9)).sketch
    assert convolves_into(sketch, 20)


def test_a_convolution_that_somebody_else_uses_is_made_once() -> None:
    sketch = designed(
        Convolved(CONVOLUTIONS["plain"](), lambda y: y - y.mean(dim=1, keepdim=True)), torch.randn(2, 3, 7, 9)
    ).sketch
    assert not convolves_into(sketch, 1)
