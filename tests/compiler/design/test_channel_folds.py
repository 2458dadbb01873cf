"""What reduces the channels behind a convolution is made from the tile that holds all of them; other reductions get a kernel."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from kernelwright.compiler.designer import design_module
from kernelwright.compiler.hardware import capabilities_of
from kernelwright.compiler.language import language

from .harness import designed, kernels

Then = Callable[[torch.Tensor], torch.Tensor]

LAYERS: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "line": (nn.Conv1d(12, 14, 3, padding=1), (2, 12, 37)),
    "pointwise": (nn.Conv2d(5, 14, 1), (2, 5, 6, 7)),
    "plain": (nn.Conv2d(3, 14, 5, padding=2), (2, 3, 9, 11)),
    "winograd": (nn.Conv2d(8, 50, 3, padding=1), (2, 8, 21, 33)),
    "strided": (nn.Conv2d(3, 14, 3, stride=2), (2, 3, 9, 11)),
    "transposed": (nn.ConvTranspose2d(3, 14, 3, stride=2, padding=1), (2, 3, 7, 5)),
    "volume": (nn.ConvTranspose3d(3, 14, 3, stride=2, padding=1), (1, 3, 3, 4, 5)),
}
FOLDED: dict[str, Then] = {
    "softmax": lambda y: torch.sigmoid(torch.softmax(y * 0.5, dim=1)),
    "smallest": lambda y: torch.tanh(y.amin(dim=1, keepdim=True)),
    "logsumexp": lambda y: F.hardswish(torch.logsumexp(y, dim=1)),
    "normalised": lambda y: F.gelu(F.normalize(y, dim=1)),
    "centred": lambda y: torch.relu(y - torch.relu(y).mean(dim=1, keepdim=True)),
    "twice": lambda y: torch.log_softmax(F.normalize(y, dim=1), dim=1),
}
NOT_FOLDED: dict[str, Then] = {
    "other axis": lambda y: torch.softmax(y, dim=-1),
    "all": lambda y: y.amax(dim=(1, 2, 3)),
    "positions": lambda y: y.argmax(dim=1),
}


class Behind(nn.Module):
    """A convolution and what follows it."""

    def __init__(self, layer: nn.Module, then: Then) -> None:
        super().__init__()
        self.layer, self.then = layer, then

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.then(self.layer(x))


@pytest.mark.parametrize("then", FOLDED)
@pytest.mark.parametrize("layer", ["plain", "transposed"])
def test_one_kernel(layer: str, then: str) -> None:
    module, shape = LAYERS[layer]
    assert kernels(designed(Behind(module, FOLDED[then]), torch.randn(shape))) == 1


@pytest.mark.parametrize("layer", LAYERS)
def test_every_family_keeps_all_channels(layer: str) -> None:
    module, shape = LAYERS[layer]
    assert kernels(designed(Behind(module, FOLDED["softmax"]), torch.randn(shape))) == 1


@pytest.mark.parametrize("then", NOT_FOLDED)
def test_other_reductions_get_a_kernel(then: str) -> None:
    module, shape = LAYERS["plain"]
    assert kernels(designed(Behind(module, NOT_FOLDED[then]), torch.randn(shape))) > 1


def test_what_comes_before_stays_in_the_epilogue() -> None:
    """Where the reduction cannot join, the activation before it still does."""
    module, shape = LAYERS["plain"]
    design = designed(
        Behind(module, lambda y: torch.softmax(torch.tanh(y), dim=1).transpose(1, 2).reshape(-1)), torch.randn(shape)
    )
    assert kernels(design) <= 2


@pytest.mark.parametrize("layer", [nn.Conv2d(4, 12, 3, groups=2), nn.Conv2d(4, 300, 3)])
def test_groups_and_many_channels_are_stored_first(layer: nn.Module) -> None:
    assert kernels(designed(Behind(layer, FOLDED["softmax"]), torch.randn(1, 4, 6, 7))) > 1


def test_a_result_that_is_also_returned_is_stored() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Conv2d(3, 14, 3)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            y = self.layer(x)
            return y, torch.softmax(y, dim=1)

    assert kernels(designed(Both(), torch.randn(2, 3, 8, 9))) == 2


def test_languages_of_devices_keep_plain_stores() -> None:
    module, shape = LAYERS["plain"]
    design = design_module(
        Behind(module, FOLDED["softmax"]).eval(), [torch.randn(shape)], capabilities=capabilities_of(language("triton"))
    )[0]
    assert kernels(design) == 2
