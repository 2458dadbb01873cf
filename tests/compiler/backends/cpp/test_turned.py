"""Transposed tiles, turned in registers: whole blocks, what is left over at the edges, other dtypes, sums with what is not turned."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest
import torch

from kernelwright.compiler.backends.cpp.emit import lower
from kernelwright.compiler.designer import design_module


class Wrapped(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


CASES: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "whole blocks": (lambda x: x.transpose(1, 2).contiguous(), (torch.randn(2, 128, 64),)),
    "edges": (lambda x: x.transpose(1, 2).contiguous(), (torch.randn(3, 131, 77),)),
    "channels last": (lambda x: x.permute(0, 2, 3, 1).contiguous(), (torch.randn(2, 48, 30, 31),)),
    "computed on the way": (lambda x, y: x.t() * 2.0 + y, (torch.randn(300, 203), torch.randn(203, 300))),
    "with itself": (lambda x: x + x.t(), (torch.randn(200, 200),)),
    "whole numbers": (lambda x: x.t().contiguous(), (torch.randint(0, 9, (300, 201), dtype=torch.int32),)),
    "doubles": (lambda x: x.t().contiguous(), (torch.randn(150, 201, dtype=torch.float64),)),
}


def built(function: Callable[..., Any], inputs: tuple[torch.Tensor, ...]) -> tuple[str, Any]:
    text = lower(design_module(Wrapped(function).eval(), inputs)[0].sketch)
    module = types.ModuleType("kernel_under_test")
    exec(compile(text, "kernel_under_test.py", "exec"), module.__dict__)
    return text, module.ModelNew()


@pytest.mark.parametrize("name", CASES)
def test_turned(name: str) -> None:
    function, inputs = CASES[name]
    text, model = built(function, inputs)
    assert "transpose_copy(&" in text
    torch.testing.assert_close(model(*inputs), function(*inputs), rtol=1e-6, atol=1e-6)


def test_a_large_transposition_fills_lines_past_the_caches() -> None:
    """Rows of a tile are short, but each fills whole lines: they are streamed; rows that begin within a line are not."""
    torch.manual_seed(0)
    for rows, streams in ((512, True), (509, False)):
        x = torch.randn(16, rows, 512)
        text, model = built(lambda x: x.transpose(1, 2).contiguous(), (x,))
        assert ("stream_vector(&out" in text) is streams
        assert torch.equal(model(x), x.transpose(1, 2))
