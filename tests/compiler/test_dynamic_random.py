"""Random modules with random dimensions that vary: the C++ kernel against torch at 0, 1, primes and more than the example."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from test_dynamic import Of, check

from kernelwright.core.errors import UnsupportedOperator

Step = Callable[[torch.Tensor], torch.Tensor]
STEPS: dict[str, Step] = {
    "gelu": F.gelu,
    "softmax": lambda x: torch.softmax(x, -1),
    "softmax across": lambda x: torch.softmax(x, 0),
    "mean": lambda x: x - x.mean(-1, keepdim=True),
    "root mean square": lambda x: x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5),
    "largest": lambda x: x - x.amax(-1, keepdim=True),
    "sum across": lambda x: x + x.sum(0, keepdim=True) * 0.1,
    "running sum": lambda x: x.cumsum(-1) * 0.1,
    "transposed": lambda x: x.transpose(-1, -2),
    "with itself": lambda x: torch.cat([x, x * 2], -1),
    "beside itself": lambda x: torch.cat([x, -x], 0),
    "half": lambda x: x[..., : x.shape[-1] // 2],
    "without the last": lambda x: x[..., :-1],
    "padded": lambda x: F.pad(x, (1, 2)),
    "by its size": lambda x: x * x.shape[-1] / 10,
    "product": lambda x: x @ x.transpose(-1, -2) / 8,
    "flat and back": lambda x: x.flatten().relu().view(x.shape),
}
SHAPES = {2: (6, 20), 3: (3, 6, 20)}


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[str], str]:
    """Steps, and the dimensions that vary: `n.m`."""
    steps = draw(st.lists(st.sampled_from([*STEPS]), min_size=1, max_size=3))
    rank = draw(st.sampled_from([*SHAPES]))
    moving = draw(st.lists(st.booleans(), min_size=rank, max_size=rank).filter(any))
    return steps, "".join(letter if moves else "." for letter, moves in zip("nmk", moving, strict=False))


def right(case: tuple[list[str], str]) -> None:
    steps, dims = case

    def forward(x: torch.Tensor) -> torch.Tensor:
        for step in steps:
            x = STEPS[step](x)
        return x

    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        try:
            check(Of(forward), [torch.randn(SHAPES[len(dims)])], dims, Path(folder))
        except UnsupportedOperator:  # sizes that the module couples, or that torch.export cannot keep apart
            reject()


@settings(max_examples=3, deadline=None, derandomize=True, database=None)
@given(cases())
def test_a_random_module_is_right_at_all_sizes(case: tuple[list[str], str]) -> None:
    right(case)


@pytest.mark.slow
@settings(max_examples=80, deadline=None, database=None)
@given(cases())
def test_random_modules_are_right_at_all_sizes(case: tuple[list[str], str]) -> None:
    right(case)


@pytest.mark.slow
def test_an_outer_product_of_an_outer_product(tmp_path: Path) -> None:
    def outer(x: torch.Tensor) -> torch.Tensor:
        return (x.unsqueeze(-1) * x.unsqueeze(-2)).sum(-1) * 0.1

    check(Of(lambda x: outer(outer(x))), [torch.randn(6, 20)], "n.", tmp_path)
