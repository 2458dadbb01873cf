"""A graph that is functional ATen already gives the sketch that the long way through torch.export gives."""

from collections.abc import Callable

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from kernelwright.compiler.designer import design_module
from kernelwright.compiler.frontend import capture
from kernelwright.sketch.print import to_source

aten = torch.ops.aten


def norm(x: torch.Tensor) -> object:
    return aten.native_layer_norm(x, [x.shape[-1]], None, None, 1e-5)[0]


def spread(x: torch.Tensor) -> object:
    low, high = aten.aminmax(x, dim=1)
    return aten.addcmul(x, low[:, None], high[:, None]), aten.silu(x).sum(0)


def product(x: torch.Tensor) -> object:
    return aten.addmm(x[0, :6], x, aten.t(x))


@pytest.mark.parametrize("forward", [norm, spread, product])
def test_the_short_way_gives_the_same_sketch(forward: Callable[..., object], monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(6, 8)
    graph = make_fx(forward, tracing_mode="fake")(x)
    texts = []
    for way in (capture.recorded, lambda *_: None):
        monkeypatch.setattr(capture, "recorded", way)
        texts.append(to_source(design_module(graph, [x], name="piece", limit=1)[0].sketch))
        texts[-1] = texts[-1].replace("x_1", "x").replace("arg0_1", "x")
    assert texts[0] == texts[1]
