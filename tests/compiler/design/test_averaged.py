"""An average over windows behind a convolution is one convolution with longer strides, where that saves work."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from .harness import designed, kernels

Then = Callable[[torch.Tensor], torch.Tensor]

TOGETHER: dict[str, tuple[nn.Module, int, tuple[int, ...]]] = {
    "wide kernel": (nn.Conv2d(3, 6, 5, padding=2), 2, (2, 3, 10, 12)),
    "odd border": (nn.Conv2d(3, 6, 5, padding=1), 2, (2, 3, 10, 13)),
    "long windows": (nn.Conv2d(3, 6, 3), 4, (2, 3, 14, 18)),
    "grouped": (nn.Conv2d(4, 6, 5, groups=2), 3, (2, 4, 14, 17)),
    "strided": (nn.Conv2d(3, 6, 5, stride=2, padding=1), 2, (1, 3, 15, 20)),
    "transposed": (nn.ConvTranspose2d(3, 6, 3, stride=2, padding=1), 2, (2, 3, 5, 7)),
    "transposed, even": (nn.ConvTranspose2d(3, 6, 4, stride=2, padding=1), 2, (2, 3, 5, 7)),
    "transposed, grouped": (nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, groups=2), 4, (2, 4, 6, 7)),
    "transposed, wide": (nn.ConvTranspose2d(3, 6, 5, stride=2), 2, (2, 3, 5, 7)),
    "volume": (nn.ConvTranspose3d(2, 3, 3, stride=2, padding=1), 2, (1, 2, 3, 4, 5)),
}
APART: dict[str, tuple[nn.Module, int, tuple[int, ...]]] = {
    "pointwise": (nn.Conv2d(3, 6, 1), 2, (2, 3, 10, 12)),
    "three by three": (nn.Conv2d(3, 6, 3, padding=1), 2, (2, 3, 10, 12)),
    "dilated": (nn.Conv2d(3, 6, 5, dilation=2), 2, (2, 3, 14, 16)),
    "windows that phases straddle": (nn.ConvTranspose2d(3, 6, 3, stride=2), 3, (2, 3, 5, 7)),
}


def pooled(y: torch.Tensor, window: int) -> torch.Tensor:
    return {4: F.avg_pool2d, 5: F.avg_pool3d}[y.dim()](y, window)


class Averaged(nn.Module):
    """A convolution, what lies between, and the average behind it."""

    def __init__(self, layer: nn.Module, window: int, between: Then | None = None) -> None:
        super().__init__()
        self.layer, self.window, self.between = layer, window, between

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        return torch.tanh(pooled(self.between(y) if self.between else y, self.window))


@pytest.mark.parametrize("name", TOGETHER)
def test_one_kernel(name: str) -> None:
    layer, window, shape = TOGETHER[name]
    assert kernels(designed(Averaged(layer, window), torch.randn(shape))) == 1


@pytest.mark.parametrize("kernel", [2, 3, 4, 5])
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("padding", [0, 1, 2])
def test_every_border_of_a_transposed_convolution(kernel: int, stride: int, padding: int) -> None:
    """Zeros before and behind the input, taps of zeros, outputs that no window takes."""
    for more in range(stride):
        layer = nn.ConvTranspose2d(2, 3, kernel, stride=stride, padding=min(padding, kernel - 1), output_padding=more)
        designed(Averaged(layer, 2 * stride), torch.randn(1, 2, 7, 8))


@pytest.mark.parametrize("name", APART)
def test_convolution_and_average(name: str) -> None:
    layer, window, shape = APART[name]
    assert kernels(designed(Averaged(layer, window), torch.randn(shape))) == 2


def test_a_norm_of_channels_lies_between() -> None:
    layer, window, shape = TOGETHER["transposed"]
    norm = nn.BatchNorm2d(6)
    model = Averaged(layer, window, lambda y: 2.0 - norm(y) / 3.0)
    model.norm = norm  # type: ignore[assignment]
    assert kernels(designed(model, torch.randn(shape))) == 1


@pytest.mark.parametrize("between", [torch.relu, lambda y: y * torch.arange(13.0)])
def test_what_differs_between_places_is_averaged_as_it_is(between: Then) -> None:
    layer, window, shape = TOGETHER["transposed"]
    assert kernels(designed(Averaged(layer, window, between), torch.randn(shape))) == 2


class Shared(Averaged):
    """The convolution's output is used twice."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        return pooled(y, self.window).sum() + y


def test_a_convolution_that_somebody_else_uses_is_made_once() -> None:
    layer, window, shape = TOGETHER["transposed"]
    sketch = designed(Shared(layer, window), torch.randn(shape)).sketch
    assert sum(kernel.name.startswith("conv") for kernel in sketch.steps) == 1
