"""Convolutions: strides, paddings, dilations, groups and transposition, in 1 to 3 dimensions, against torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from building import DESKTOP, conv_sketches, machine
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from kernelwright.sketch.check.rules import check
from kernelwright.sketch.interpret.interpreter import run
from kernelwright.sketch.nodes import For
from kernelwright.sketch.walk import statements
from kernelwright.target import Capabilities

CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 5, 13, 11), (7, 5, 3, 3), {"padding": 1}),
    ((1, 3, 20, 23), (4, 3, 5, 3), {"stride": (2, 3), "padding": (2, 1), "dilation": (1, 2)}),
    ((2, 8, 9, 9), (12, 2, 3, 3), {"groups": 4}),
    ((1, 70, 6, 6), (130, 70, 3, 3), {"padding": 1}),
    ((1, 2, 3, 700), (3, 2, 1, 5), {"padding": (0, 2)}),
    ((2, 6, 50), (4, 6, 5), {"stride": 3, "dilation": 4}),
    ((2, 6, 30), (6, 1, 3), {"groups": 6, "padding": 1}),
    ((2, 6, 9, 12), (12, 1, 3, 3), {"groups": 6, "padding": 1, "stride": 2}),
    ((1, 4, 6, 7, 8), (5, 4, 3, 2, 3), {"padding": (1, 0, 1), "stride": (1, 2, 2)}),
    ((1, 3, 4, 5, 6), (3, 1, 3, 3, 3), {"groups": 3, "padding": 1}),
    ((1, 4, 7, 7, 7), (6, 4, 3, 3, 3), {"padding": 1, "stride": 2, "dilation": 2}),
    ((1, 4, 20, 20), (5, 4, 11, 11), {"padding": 2, "stride": 4}),
    ((1, 4, 5, 5), (5, 4, 1, 1), {"stride": 2}),
    ((3, 4, 1, 1), (5, 4, 1, 1), {}),
]
TRANSPOSED: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 4, 7, 9), (4, 5, 3, 3), {}),
    ((2, 4, 7, 9), (4, 5, 4, 4), {"stride": 2, "padding": 1, "output_padding": 1}),
    ((2, 4, 7, 9), (4, 5, 3, 5), {"stride": (2, 3), "padding": (0, 2), "dilation": (3, 2)}),
    ((2, 8, 7, 9), (8, 3, 3, 5), {"stride": 2, "groups": 4}),
    ((2, 4, 17), (4, 5, 4), {"stride": 2, "padding": 1}),
    ((2, 4, 17), (4, 5, 3), {"dilation": 3}),
    ((1, 3, 4, 5, 4), (3, 4, 3, 3, 3), {"stride": 2, "padding": 1}),
    ((2, 4, 7, 9), (4, 1, 2, 2), {"stride": 3, "groups": 4, "output_padding": 1}),
    ((2, 4, 7, 9), (4, 2, 2, 2), {"stride": 3}),
    ((2, 4, 5, 5), (4, 2, 3, 3), {"stride": 2, "dilation": 2, "padding": 1, "output_padding": 1}),
]


def reference(x: torch.Tensor, w: torch.Tensor, transposed: bool, numbers: dict[str, Any]) -> torch.Tensor:
    kind = "conv_transpose" if transposed else "conv"
    result: torch.Tensor = getattr(functional, f"{kind}{x.dim() - 2}d")(x, w, **numbers)
    return result


def agree(x: torch.Tensor, w: torch.Tensor, transposed: bool, numbers: dict[str, Any], device: Capabilities = DESKTOP) -> None:
    expected = reference(x, w, transposed, numbers)
    for sketch in conv_sketches(x, w, device, transposed=transposed, **numbers):
        assert not check(sketch)
        out = run(sketch, {"x": x, "w": w}, strict=True, shuffle=1)["out"]
        torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("x_shape", "w_shape", "numbers"), CASES)
def test_plain(x_shape: tuple[int, ...], w_shape: tuple[int, ...], numbers: dict[str, Any]) -> None:
    agree(torch.randn(x_shape), torch.randn(w_shape), False, numbers)


@pytest.mark.parametrize(("x_shape", "w_shape", "numbers"), TRANSPOSED)
def test_transposed(x_shape: tuple[int, ...], w_shape: tuple[int, ...], numbers: dict[str, Any]) -> None:
    agree(torch.randn(x_shape), torch.randn(w_shape), True, numbers)


def test_half_precision_is_summed_in_single() -> None:
    x, w = torch.randn(1, 32, 6, 6).half(), torch.randn(8, 32, 3, 3).half()
    expected = functional.conv2d(x.double(), w.double())
    for sketch in conv_sketches(x, w):
        out = run(sketch, {"x": x, "w": w})["out"]
        assert out.dtype is torch.float16
        torch.testing.assert_close(out.double(), expected, rtol=2e-3, atol=2e-2)


numbers_of_an_axis = st.tuples(st.integers(1, 9), st.integers(1, 4), st.integers(1, 3), st.integers(0, 2), st.integers(1, 3))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(numbers_of_an_axis, min_size=1, max_size=3), st.integers(1, 2), st.integers(1, 3), st.integers(1, 3), st.booleans()
)
def test_any_numbers(axes: list[tuple[int, ...]], groups: int, group_in: int, group_out: int, transposed: bool) -> None:
    spatial, kernel, stride, padding, dilation = (list(column) for column in zip(*axes, strict=True))
    if transposed:
        padding = [min(p, (k - 1) * d) for p, k, d in zip(padding, kernel, dilation, strict=True)]
    spatial = [max(s, (k - 1) * d + 1 - 2 * p, 1) for s, k, d, p in zip(spatial, kernel, dilation, padding, strict=True)]
    x = torch.randn(2, groups * group_in, *spatial)
    w = torch.randn(groups * group_in, group_out, *kernel) if transposed else torch.randn(groups * group_out, group_in, *kernel)
    numbers = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    try:
        expected = reference(x, w, transposed, numbers)
    except RuntimeError:
        return  # torch refuses an empty output
    if expected.numel():
        agree(x, w, transposed, numbers, machine(units=4, tile_bytes=8 << 10))


def test_tiles_of_other_sizes_are_offered_behind_the_best() -> None:
    x, w = torch.randn(2, 24, 40, 40), torch.randn(32, 24, 1, 1)
    steps = [
        [loop.step for kernel in sketch.steps for loop, _ in statements(kernel.body) if isinstance(loop, For)]  # type: ignore[union-attr]
        for sketch in conv_sketches(x, w, DESKTOP)
    ]
    assert len(steps) == 3
    assert len({tuple(map(repr, one)) for one in steps}) == 3
