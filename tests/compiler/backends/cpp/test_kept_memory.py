"""What a kernel keeps beside its parameters: no second copy of large weights, small ones at most once, and never a stale one."""

from __future__ import annotations

import types
from typing import Any

import pytest
import torch
from torch import nn

from kernelwright.compiler.backends.cpp.emit import lower
from kernelwright.compiler.designer import Design, design_module


def loaded(design: Design, model: nn.Module, *shapes: Design) -> Any:
    """The kernel of a design, with the model's parameters."""
    file = types.ModuleType("kernel_under_test")
    text = lower(design.sketch, shapes=[other.sketch for other in shapes])
    exec(compile(text, "kernel.py", "exec"), file.__dict__)
    kernel = file.ModelNew().eval()
    kernel.load_state_dict(model.state_dict())
    return kernel


def kept_bytes(kernel: nn.Module) -> int:
    """Bytes of all tensors that are reachable from a kernel beside its parameters and buffers."""
    own = {id(t) for t in (*kernel.parameters(), *kernel.buffers())}
    found: dict[int, int] = {}
    seen: set[int] = set()
    stack: list[Any] = [kernel]
    while stack:
        at = stack.pop()
        if id(at) in seen:
            continue
        seen.add(id(at))
        if isinstance(at, torch.Tensor):
            if id(at) not in own:
                found[at.data_ptr()] = at.numel() * at.element_size()
        elif isinstance(at, dict):
            stack += at.values()
        elif isinstance(at, list | tuple):
            stack += at
        elif hasattr(at, "__dict__"):
            stack += vars(at).values()
    return sum(found.values())


@pytest.mark.parametrize("rows", [1, 3, 64, 200])
def test_a_large_linear_layer_keeps_nothing(rows: int) -> None:
    model = nn.Linear(320, 176).eval()
    x = torch.randn(rows, 320)
    kernel = loaded(design_module(model, [x])[0], model)
    with torch.no_grad():
        torch.testing.assert_close(kernel(x), model(x), rtol=1e-4, atol=1e-4)
        kernel.weight.mul_(2.0), model.weight.mul_(2.0)
        torch.testing.assert_close(kernel(x), model(x), rtol=1e-4, atol=1e-4)
    assert kept_bytes(kernel) == 0


def test_small_weights_are_kept_packed_and_made_anew_when_they_change() -> None:
    model = nn.Linear(32, 24).eval()
    x = torch.randn(4096, 32)
    kernel = loaded(design_module(model, [x])[0], model)
    with torch.no_grad():
        torch.testing.assert_close(kernel(x), model(x), rtol=1e-4, atol=1e-4)
        kernel.weight.add_(1.0), model.weight.add_(1.0)
        torch.testing.assert_close(kernel(x), model(x), rtol=1e-4, atol=1e-4)
    assert 0 < kept_bytes(kernel) <= 0.1 * x.numel() * x.element_size()


def test_all_layers_count_together() -> None:
    """Each weight is small beside the activations, but there are many of them and eager holds few activations at a time."""
    few, many = (nn.Sequential(*(nn.Linear(64, 64) for _ in range(count))).eval() for count in (1, 16))
    x = torch.randn(640, 64)
    for model, keeps in ((few, True), (many, False)):
        kernel = loaded(design_module(model, [x])[0], model)
        with torch.no_grad():
            torch.testing.assert_close(kernel(x), model(x), rtol=1e-4, atol=1e-4)
        assert (kept_bytes(kernel) > 0) is keeps


def test_a_search_may_choose_the_copy_and_is_told() -> None:
    model = nn.Linear(320, 176).eval()
    x = torch.randn(64, 320)
    first, *others = design_module(model, [x], effort="thorough")
    assert not any("packed copy" in note for note in first.notes)
    (copying,) = [d for d in others if any("keeps a packed copy of its parameters, 0.2 MB" in note for note in d.notes)]
    assert copying.cost >= first.cost
    kernel = loaded(copying, model)
    with torch.no_grad():
        torch.testing.assert_close(kernel(x), model(x), rtol=1e-4, atol=1e-4)
    assert kept_bytes(kernel) == 320 * 176 * 4


@pytest.mark.parametrize(
    "dtype", [torch.float32, pytest.param(torch.float64, marks=pytest.mark.slow)], ids=["floats", "doubles"]
)
@pytest.mark.parametrize(
    ("rows", "columns", "terms"),
    [
        (70, 301, 83),
        (64, 640, 3),
        (13, 15, 100),
        *(pytest.param(*extents, marks=pytest.mark.slow) for extents in ((130, 64, 700), (300, 33, 64))),
    ],
)
def test_products_that_pack_by_strips(rows: int, columns: int, terms: int, dtype: torch.dtype) -> None:
    """Odd extents: strips that end early, few rows, sums that are no whole line; as they are and with operands exchanged."""
    model = nn.Linear(terms, columns, dtype=dtype).eval()
    x = torch.randn(rows, terms, dtype=dtype)
    for design in design_module(model, [x], effort="thorough"):
        kernel = loaded(design, model)
        with torch.no_grad():
            torch.testing.assert_close(kernel(x), model(x), rtol=1e-4, atol=1e-4)


def test_shapes_share_what_they_make_alike() -> None:
    """Two batch sizes, one packed copy of the weights; a change that one of them sees first is seen by both."""
    model = nn.Conv2d(6, 10, 3, padding=1).eval()
    inputs = [torch.randn(batch, 6, 40, 40) for batch in (1, 2, 5)]
    designs = [design_module(model, [x], limit=1)[0] for x in inputs]
    alone = loaded(designs[0], model)
    kernel = loaded(designs[0], model, *designs[1:])
    with torch.no_grad():
        alone(inputs[0])
        for factor in (1.0, 2.0, -1.0):
            kernel.weight.mul_(factor), model.weight.mul_(factor)
            for x in (*inputs, *reversed(inputs)):
                torch.testing.assert_close(kernel(x), model(x), rtol=1e-4, atol=1e-4)
    assert kept_bytes(kernel) == kept_bytes(alone) > 0


def test_shapes_that_make_different_things_keep_them_apart() -> None:
    """A folded weight is packed for one shape and turned for the other; both follow a change of the parameters."""

    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.gain = nn.Parameter(torch.randn(24, 32)), nn.Parameter(torch.randn(24, 1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ (self.weight * self.gain).t()

    model = Scaled().eval()
    inputs = [torch.randn(rows, 32) for rows in (2, 3000)]
    few, many = (design_module(model, [x], limit=1)[0] for x in inputs)
    kernel = loaded(few, model, many)
    with torch.no_grad():
        for factor in (1.0, 2.0):
            kernel.gain.mul_(factor), model.gain.mul_(factor)
            for x in (*inputs, *reversed(inputs)):
                torch.testing.assert_close(kernel(x), model(x), rtol=1e-4, atol=1e-4)
