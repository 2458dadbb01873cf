"""Windows folded one axis after another: which are, and that the C++ of them is right at every border."""

from __future__ import annotations

import types
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from kernelwright.compiler.backends.cpp.emit import lower
from kernelwright.compiler.designer import design_module
from kernelwright.compiler.hardware import capabilities_of
from kernelwright.compiler.language import language
from kernelwright.sketch.print import to_source

from .harness import Wrapped

Function = Callable[[torch.Tensor], torch.Tensor]


def text(function: Function, *shape: int, dsl: str = "cpp") -> str:
    return to_source(
        design_module(Wrapped(function), [torch.randn(shape)], capabilities=capabilities_of(language(dsl)))[0].sketch
    )


def run(function: Function, x: torch.Tensor) -> torch.Tensor:
    module = types.ModuleType("pool")
    exec(compile(lower(design_module(Wrapped(function), [x])[0].sketch), "pool.py", "exec"), module.__dict__)
    made: torch.Tensor = module.ModelNew()(x)
    return made


POOLS: dict[str, tuple[Function, tuple[int, ...]]] = {
    "stride": (lambda x: F.max_pool2d(x, 3, 2, 1), (2, 3, 21, 83)),
    "own": (lambda x: F.avg_pool2d(x, 5), (2, 3, 25, 90)),
    "dilated": (lambda x: F.max_pool2d(x, 3, 1, 1, dilation=2), (2, 2, 19, 77)),
    "volume": (lambda x: F.max_pool3d(x, 3, 2, 1), (2, 2, 9, 11, 43)),
    "blocks": (lambda x: F.avg_pool2d(x, 3, 1, 1), (1, 1, 8, 1100)),
    "counted": (lambda x: F.avg_pool2d(x, (3, 4), 2, 1, count_include_pad=False, ceil_mode=True), (2, 2, 14, 75)),
    "powers": (lambda x: F.lp_pool2d(x.abs() + 0.1, 2.0, 3, 2), (2, 2, 19, 77)),
    "around": (lambda x: F.relu(F.max_pool2d(x * 2.0 + 1.0, 3, 2, 1)) + 0.5, (2, 3, 21, 83)),
}


@pytest.mark.parametrize("name", POOLS)
def test_rows_first_then_columns(name: str) -> None:
    function, shape = POOLS[name]
    assert "line = " in text(function, *shape)
    assert "line = " not in text(function, *shape, dsl="triton")  # a block of threads reads windows from memory
    x = torch.randn(shape)
    torch.testing.assert_close(run(function, x), function(x))


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_a_maximum_sees_nan_and_infinity_in_every_window(value: float) -> None:
    function: Function = lambda x: F.max_pool2d(x, 3, 2, 1)  # noqa: E731
    for at in [(0, 0), (0, 40), (10, 82), (20, 0), (20, 82), (7, 64)]:
        x = torch.randn(2, 3, 21, 83)
        x[(..., *at)] = value
        torch.testing.assert_close(run(function, x), function(x), equal_nan=True)


def test_what_has_no_rows_or_no_line_is_left_alone() -> None:
    assert "line = " not in text(lambda x: F.max_pool1d(x, 5, 2, 2), 2, 3, 200)
    assert "line = " not in text(lambda x: F.max_pool2d(x, (3, 1), 2), 2, 3, 40, 200)
    assert "line = " not in text(lambda x: F.max_pool2d(x, 2, 1), 2, 3, 40, 200)  # four loads, or two, one kept and two again
