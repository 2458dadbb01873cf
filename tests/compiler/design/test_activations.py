"""Pointwise operators, many in one module: each is compared with torch on ordinary and extreme values."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .harness import designed, kernels

ACTIVATIONS = (
    "relu gelu silu sigmoid tanh elu selu celu leaky_relu softplus mish hardswish hardsigmoid hardtanh relu6 softsign "
    "logsigmoid tanhshrink softshrink hardshrink"
)
FUNCTIONS = (
    "abs sign exp2 expm1 log1p sin cos tan atan sinh cosh asinh erf erfc floor ceil round trunc neg square rsqrt reciprocal "
    "isnan isinf isfinite"
)


def values() -> torch.Tensor:
    extremes = torch.tensor([0.0, -0.0, 1.0, -1.0, 25.0, -25.0, 1e-4, -1e-4])
    return torch.cat([torch.randn(97) * 3, extremes])


def test_activations_match_torch() -> None:
    design = designed(lambda x: tuple(getattr(F, name)(x) for name in ACTIVATIONS.split()), values())
    assert kernels(design) <= 4  # results of one shape over the same data share a kernel


def test_functions_match_torch() -> None:
    special = torch.cat([values(), torch.tensor([float("inf"), float("-inf"), float("nan")])])
    designed(lambda x: tuple(getattr(torch, name)(x) for name in FUNCTIONS.split()), special)


def test_integer_arithmetic_follows_torch() -> None:
    x, y = torch.randint(-50, 50, (7, 11)), torch.randint(1, 9, (11,))
    designed(
        lambda a, b: (
            a // b,
            a % b,
            a / b,
            a & b,
            a | b,
            a ^ b,
            ~a,
            a << 2,
            a >> 1,
            a > b,
            torch.div(a, b, rounding_mode="trunc"),
        ),
        x,
        y,
    )


def test_dtypes_are_promoted_as_torch_does() -> None:
    x, y = torch.randint(-5, 5, (6,)), torch.randn(6)
    designed(lambda a, b: (a + b, a * 2.5, a > b, (a > 0) + a, b.half() + 1, b.bfloat16() * b.bfloat16(), b.double() * a), x, y)


def test_nan_goes_through_maximum_and_clamp() -> None:
    x = torch.tensor([float("nan"), 1.0, -2.0])
    designed(lambda a: (F.relu(a), a.clamp(-1, 1), torch.maximum(a, a.flip(0)), a.amax(), a.argmax()), x)
