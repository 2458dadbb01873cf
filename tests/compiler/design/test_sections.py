"""What is stored on the way to one result takes little memory: parts of a batch one after the other, where kernels are called."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from kernelwright.compiler.backends.cpp.kernel import source
from kernelwright.compiler.designer import design_module
from kernelwright.compiler.hardware import capabilities_of
from kernelwright.compiler.language import language
from kernelwright.compiler.lower.module_file.workspace import Lifetime, layout
from kernelwright.sketch import nodes

from .harness import Wrapped, designed

CASES = {
    "bilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (6, 4, 8, 10)),
    "by channels": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), (1, 12, 8, 10)),
    "ragged": (lambda x: F.adaptive_avg_pool2d(x, 7), (8, 3, 20, 31)),
    "ragged maximum": (lambda x: F.adaptive_max_pool2d(x, 7), (8, 3, 20, 31)),
}


def temporary_bytes(sketch: nodes.Sketch) -> int:
    """The block that the C++ coder takes for all temporaries."""
    alive = source(sketch).alive
    sizes = {
        t.name: 4 * math.prod(e.value for e in t.shape if isinstance(e, nodes.Int)) for t in sketch.tensors if t.role == "temp"
    }
    return layout({name: Lifetime(size, *alive[name]) for name, size in sizes.items()}).size


@pytest.mark.parametrize("name", CASES)
def test_temporaries_are_little_beside_what_eager_holds(name: str) -> None:
    function, shape = CASES[name]
    x = torch.randn(shape)
    sketch = designed(function, x).sketch
    assert temporary_bytes(sketch) <= 0.1 * 4 * (x.numel() + function(x).numel())


def test_languages_that_launch_kernels_launch_two() -> None:
    function, shape = CASES["bilinear"]
    design = design_module(Wrapped(function), (torch.randn(shape),), capabilities=capabilities_of(language("triton")))[0]
    assert len(design.sketch.steps) == 2


def test_a_batch_that_cannot_be_cut_is_stored_whole() -> None:
    sketch = designed(CASES["bilinear"][0], torch.randn(1, 1, 8, 10)).sketch
    assert len(sketch.steps) == 2
