"""Loops that visit several places of memory in turn: every row is done once, and loops whose neighbours share what they read keep
their order."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

from kernelwright.compiler.backends.cpp.emit import lower
from kernelwright.compiler.designer import design_module


class Wrapped(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def made(function: Callable[..., Any], *inputs: torch.Tensor) -> str:
    return lower(design_module(Wrapped(function).eval(), inputs)[0].sketch)


ROWS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "a count that four divides": (lambda x: x.sum(dim=2), (16, 256, 512)),
    "a count that it does not": (lambda x: x.amin(dim=-1), (4099, 517)),
    "two outputs": (lambda x: x.max(dim=-1), (4099, 517)),
    "a sum of everything, by parts": (lambda x: x.sum(), (2048, 2048)),
    "rows of two pages": (lambda x: x.sum(dim=1), (2048, 2048)),
    "a pointwise map": (lambda x: torch.relu(x), (4099, 517)),
    "a norm of short rows": (lambda x: x / x.abs().sum(dim=1, keepdim=True), (4099, 700)),
}


@pytest.mark.parametrize("name", ROWS)
def test_short_rows_in_turn(name: str) -> None:
    function, shape = ROWS[name]
    torch.manual_seed(0)
    x = torch.randn(*shape)
    text = made(function, x)
    assert "places in turn" in text
    module = types.ModuleType("kernel_under_test")
    exec(compile(text, "kernel_under_test.py", "exec"), module.__dict__)
    got, wanted = module.ModelNew()(x), function(x)
    for g, w in zip(got if isinstance(got, tuple) else [got], wanted if isinstance(wanted, tuple) else [wanted], strict=True):
        torch.testing.assert_close(g, w, rtol=1e-4, atol=1e-4)


KEPT: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "little data": (lambda x: x.sum(dim=1), (512, 512)),
    "long rows": (lambda x: x.sum(dim=1), (256, 32768)),
    "windows that overlap": (lambda x: functional.max_pool2d(x, 3, stride=1, padding=1), (4, 16, 256, 256)),
    "columns": (lambda x: x.sum(dim=1), (16, 512, 512)),
    "arithmetic that takes longer than memory": (lambda x: torch.sigmoid(x), (2048, 2048)),
}


@pytest.mark.parametrize("name", KEPT)
def test_order_that_stays(name: str) -> None:
    function, shape = KEPT[name]
    assert "places in turn" not in made(function, torch.randn(*shape))


def test_a_row_is_read_from_its_beginning_to_its_end() -> None:
    """Written out whole, the loop over a short row read it in steps of several lines, at 40 % of the speed from memory."""
    assert "#pragma GCC unroll 1\n" in made(lambda x: x.sum(dim=1), torch.randn(64, 512))


def test_rows_chosen_at_run_time_are_copied_in_vectors() -> None:
    """An embedding's row lies somewhere, but in one piece."""
    torch.manual_seed(0)
    table, x = torch.randn(50, 100), torch.randint(0, 50, (8, 20))
    text = made(lambda x, table: functional.embedding(x, table) + 1.0, x, table)
    assert "load_vector(&" in text
    module = types.ModuleType("kernel_under_test")
    exec(compile(text, "kernel_under_test.py", "exec"), module.__dict__)
    torch.testing.assert_close(module.ModelNew()(x, table), functional.embedding(x, table) + 1.0)


FETCHED: dict[str, tuple[Callable[[Any], Any], tuple[int, ...], int]] = {
    "rows, within themselves": (lambda x: x.sum(dim=1), (512, 4096), 1),
    "columns, the next four rows": (lambda x: x.sum(dim=1), (16, 512, 512), 4),
    "what the next nest reads as a whole row": (lambda x: torch.softmax(x, dim=1), (512, 4096), 1),
    "rows far apart, each one's neighbour": (lambda x: x.mean(dim=(0, 2)), (16, 512, 512), 1),
    "little data": (lambda x: x.sum(dim=1), (512, 512), 0),
    "arithmetic that takes longer than memory": (lambda x: torch.sigmoid(x), (2048, 2048), 0),
}


@pytest.mark.parametrize("name", FETCHED)
def test_large_tensors_are_fetched_ahead(name: str) -> None:
    function, shape, count = FETCHED[name]
    x = torch.randn(*shape)
    text = made(function, x)
    assert text.count("__builtin_prefetch") == count
    module = types.ModuleType("kernel_under_test")
    exec(compile(text, "kernel_under_test.py", "exec"), module.__dict__)
    torch.testing.assert_close(module.ModelNew()(x), function(x), rtol=1e-4, atol=1e-4)


def test_the_next_row_is_fetched_while_one_is_picked_from() -> None:
    """Also where the picks end in the middle of a piece; a row of which little is wanted is not fetched."""
    torch.manual_seed(0)
    x, i = torch.randn(700, 2000), torch.randint(0, 2000, (700, 1111))
    text = made(lambda x, i: torch.gather(x, 1, i), x, i)
    assert "__builtin_prefetch(&inputs_0[" in text
    module = types.ModuleType("kernel_under_test")
    exec(compile(text, "kernel_under_test.py", "exec"), module.__dict__)
    torch.testing.assert_close(module.ModelNew()(x, i), torch.gather(x, 1, i))
    assert "__builtin_prefetch(&inputs_0[" not in made(lambda x, i: torch.gather(x, 1, i), x, i[:, :9].contiguous())


def test_the_next_row_is_fetched_beside_the_writes() -> None:
    """A norm reads its row three times: the next one is fetched in the pass that writes; beside an exponential where there is one."""
    x = torch.randn(4096, 1500)
    text = made(lambda x: functional.layer_norm(x, (1500,)), x)
    assert text.count("__builtin_prefetch") == 1
    assert text.index("__builtin_prefetch") > text.rindex("_lanes")
    text = made(lambda x: torch.log_softmax(x, 1), x)
    assert text.count("__builtin_prefetch") == 1
    assert text.index("__builtin_prefetch") < text.rindex("exp_of(")
