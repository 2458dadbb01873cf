"""Winograd's convolution: where it applies, in the interpreter and through the C++ coder, and how exact it is."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from building import DESKTOP, compiled, conv_sketches
from torch.nn import functional

from kernelwright.sketch.check.rules import check
from kernelwright.sketch.interpret.interpreter import run
from kernelwright.sketch.nodes import Int, Sketch

CASES: list[tuple[tuple[int, ...], tuple[int, ...], bool, dict[str, Any]]] = [
    ((2, 9, 15, 25), (10, 9, 3, 3), False, {"padding": 1}),  # the last patches reach beyond the image
    ((1, 8, 12, 130), (50, 8, 3, 3), False, {}),  # several blocks of columns and of output channels
    ((1, 16, 13, 26), (20, 8, 3, 3), False, {"groups": 2, "padding": (0, 2)}),
    ((1, 3, 5, 9, 26), (8, 3, 3, 3, 3), False, {"padding": 1, "stride": (2, 1, 1)}),  # taps in depth join the channels
    ((2, 4, 25, 53), (9, 4, 5, 5), False, {"stride": 2, "padding": 2}),  # phases of a stride join the channels
    ((1, 6, 30, 60), (16, 3, 6, 6), False, {"stride": 2, "groups": 2}),
    ((1, 3, 37, 60), (8, 3, 8, 3), False, {"stride": (3, 1), "padding": (1, 0)}),
    ((1, 2, 5, 21, 53), (8, 2, 3, 5, 5), False, {"padding": 1, "stride": (1, 2, 2)}),
    ((2, 8, 11, 27), (8, 9, 3, 3), True, {"padding": 1}),
    ((1, 16, 8, 24), (16, 8, 3, 3), True, {"groups": 2}),
    ((2, 12, 101), (14, 12, 5), False, {"padding": 2}),  # along one axis: two outputs of five taps at a time
    ((1, 24, 67), (24, 12, 3), False, {"groups": 2}),
    ((1, 12, 40), (12, 12, 4), False, {"padding": 3}),
]


def winograd_sketches(x: torch.Tensor, w: torch.Tensor, transposed: bool = False, **numbers: Any) -> list[Sketch]:
    sketches = conv_sketches(x, w, DESKTOP, transposed=transposed, **numbers)
    return [s for s in sketches if any(getattr(step, "name", "").startswith("winograd") for step in s.steps)]


def points(sketch: Sketch) -> int:
    """At how many points the weights are evaluated: 24 for two columns of outputs, 36 for four."""
    weights = next(tensor for tensor in sketch.tensors if tensor.name.startswith("weight_points"))
    assert isinstance(weights.shape[0], Int)
    return weights.shape[0].value


def reference(x: torch.Tensor, w: torch.Tensor, transposed: bool, numbers: dict[str, Any]) -> torch.Tensor:
    kind = "conv_transpose" if transposed else "conv"
    result: torch.Tensor = getattr(functional, f"{kind}{x.dim() - 2}d")(x.double(), w.double(), **numbers)
    return result


@pytest.mark.parametrize(("image", "kernel", "transposed", "numbers"), CASES)
def test_agrees_with_torch(image: tuple[int, ...], kernel: tuple[int, ...], transposed: bool, numbers: dict[str, Any]) -> None:
    x, w = torch.randn(image), torch.randn(kernel)
    sketches = winograd_sketches(x, w, transposed, **numbers)
    expected = reference(x, w, transposed, numbers)
    for sketch in sketches:
        assert not check(sketch)
        exact = (6e-5 if points(sketch) == 36 else 2e-5) * float(expected.abs().max())
        torch.testing.assert_close(compiled(sketch, x, w=w).double(), expected, rtol=0, atol=exact)
    assert {points(sketch) for sketch in sketches} == ({6} if x.dim() == 3 else {24, 36})


def test_the_sketch_itself_is_right() -> None:
    x, w = torch.randn(1, 8, 6, 26), torch.randn(9, 8, 3, 3)
    for sketch in winograd_sketches(x, w, padding=1):
        out = run(sketch, {"x": x, "w": w}, strict=True, shuffle=1)["out"]
        torch.testing.assert_close(out.double(), reference(x, w, False, {"padding": 1}), rtol=0, atol=2e-4)


def test_is_nearly_as_exact_as_a_plain_sum() -> None:
    torch.manual_seed(0)
    x, w = torch.randn(1, 64, 40, 48), torch.randn(24, 64, 3, 3)
    found = winograd_sketches(x, w)
    first, rougher = (next(s for s in found if points(s) == count) for count in (24, 36))
    truth = reference(x, w, False, {})
    scale = float(truth.square().mean().sqrt()) * torch.finfo(torch.float32).eps
    errors = [float((compiled(sketch, x, w=w) - truth).abs().max()) for sketch in (first, rougher)]
    assert errors[0] < 60 * scale
    assert errors[0] < errors[1] < 200 * scale


def test_what_rounds_more_is_never_the_first_choice() -> None:
    x, w = torch.randn(2, 128, 28, 28), torch.randn(128, 128, 3, 3)  # where a quarter of the multiplications counts most
    first, *others = conv_sketches(x, w, DESKTOP, padding=1)
    assert points(first) == 24
    assert 36 in [points(sketch) for sketch in others if sketch in winograd_sketches(x, w, padding=1)]


@pytest.mark.parametrize("numbers", [{"stride": 2}, {"dilation": 2}, {"groups": 8}], ids=["strided", "dilated", "depthwise"])
def test_leaves_other_convolutions_alone(numbers: dict[str, Any]) -> None:
    w = torch.randn(8, 8 // numbers.get("groups", 1), 3, 3)
    assert not winograd_sketches(torch.randn(1, 8, 20, 26), w, **numbers)
