"""Scans of long rows, which run in four quarters side by side: what stands at the edges comes out as torch has it; and which
outputs are streamed."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest
import torch

from kernelwright.compiler.backends.cpp import kernel
from kernelwright.compiler.backends.cpp.emit import lower
from kernelwright.compiler.designer import design_module
from kernelwright.sketch.print import to_source


class Wrapped(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


SCANS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: torch.cumsum(x, 1),
    "product": lambda x: torch.cumprod(x, 1),
    "maximum": lambda x: torch.cummax(x, 1)[0],
    "minimum": lambda x: torch.cummin(x, 1)[0],
    "sum from the end": lambda x: torch.cumsum(x.flip(1), 1).flip(1),
    "product from the end": lambda x: torch.cumprod(x.flip(1), 1).flip(1),
    "maximum from the end": lambda x: torch.cummax(x.flip(1), 1)[0].flip(1),
    "sum of doubles from the end": lambda x: torch.cumsum(x.double().flip(1), 1).flip(1),
    "what comes after": lambda x: torch.relu(torch.cumsum(x, 1) * 2.0 - x) + x[:, :1],
    "its own columns": lambda x: torch.cumsum(x, 1) + torch.cumsum(x, 1).flip(1),
    "across rows": lambda x: torch.cumsum(x, 0),
}


@pytest.mark.parametrize("name", SCANS)
def test_edges_of_long_rows(name: str) -> None:
    """NaN and infinity go on to the right only; a product that met 0 stays 0 although what follows would overflow by itself."""
    torch.manual_seed(0)
    x = torch.randn(5, 1203)
    x[1, 300], x[2, 100], x[3, 7] = torch.nan, torch.inf, 0.0
    x[3, 8:] *= 1e20
    space = types.ModuleType("kernel")
    exec(compile(lower(design_module(Wrapped(SCANS[name]), (x,))[0].sketch), "kernel.py", "exec"), space.__dict__)
    torch.testing.assert_close(space.ModelNew()(x), SCANS[name](x), rtol=1e-6, atol=1e-6, equal_nan=True)


def test_scans_from_the_end_read_and_write_memory_in_its_order() -> None:
    """And what is done to a scan is done to its pieces: nothing of a row's length is kept."""
    x = torch.randn(900, 3000)
    text = lower(design_module(Wrapped(SCANS["sum from the end"]), (x,))[0].sketch)
    assert "stream(&out" in text
    text = lower(design_module(Wrapped(lambda x: torch.cumsum(x, 1) - x), (x,))[0].sketch)
    assert "stream(&out" in text
    assert "[3000]" not in text.partition("static void")[2]


def test_scans_across_rows_take_wide_blocks() -> None:
    sketch = to_source(design_module(Wrapped(SCANS["across rows"]), (torch.randn(2048, 1024),))[0].sketch)
    assert "i + 256" in sketch or "i + 128" in sketch or "i + 64" in sketch  # as many as there are cores


@pytest.mark.parametrize(("rows", "streamed"), [(896, False), (1280, True)])
def test_calls_that_touch_more_than_their_share_of_the_cache_stream(rows: int, streamed: bool) -> None:
    """7 MiB in all are left in the cache, 10 MiB are not, though the output alone is smaller than the limit."""
    sketch = design_module(Wrapped(torch.relu), (torch.zeros(rows, 1024),))[0].sketch
    assert ("stream_vector(&out" in kernel.source(sketch).text) == streamed
