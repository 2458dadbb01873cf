"""Sizes that vary: one kernel for all of them, held against torch at 0, 1, primes and more than the example."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import torch.utils._pytree as pytree
from torch import nn

from kernelwright.compiler.designer import design_module
from kernelwright.compiler.graph.index_maps import LoopAxis, axis_index, certainly_inside, linear, unflatten
from kernelwright.compiler.graph.symbolic import Region, largest, likely, size_poly
from kernelwright.compiler.language import language
from kernelwright.core.errors import UnsupportedOperator
from kernelwright.core.task.dynamic import Dynamic, SizeSymbol
from kernelwright.sketch.index import OWN, poly

SIZES = (3, 0, 1, 2, 7, 37, 130)


class Of(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor) -> Any:
        return self.function(*args)


def varying(inputs: Sequence[torch.Tensor], dims: str, low: int = 0, divisor: int = 1) -> Dynamic:
    """`"nc,n"`: the first input's two dimensions and the second's first; a dot stands for a fixed dimension."""
    places = [(leaf, axis, name) for leaf, word in enumerate(dims.split(",")) for axis, name in enumerate(word) if name != "."]
    examples = {name: inputs[leaf].shape[axis] for leaf, axis, name in places}
    return Dynamic(tuple(SizeSymbol(name, low, None, divisor, example) for name, example in examples.items()), tuple(places))


def loaded(text: str, folder: Path) -> Any:
    path = folder / "kernel.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("kernel", path)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


def kernel_of(model: nn.Module, inputs: Sequence[torch.Tensor], dynamic: Dynamic, folder: Path) -> nn.Module:
    (design, *_) = design_module(model.eval(), inputs, dynamic=dynamic, limit=1)
    buffers = dict(model.named_buffers())
    state = [
        (name, tuple(t.shape), str(t.dtype).removeprefix("torch."), name in buffers) for name, t in model.state_dict().items()
    ]
    made: nn.Module = loaded(language("cpp").lower(design.sketch, state=state), folder).ModelNew()
    made.load_state_dict(model.state_dict())
    return made


def drawn(inputs: Sequence[torch.Tensor], dynamic: Dynamic, sizes: dict[str, int]) -> list[torch.Tensor]:
    shapes = dynamic.shapes([x.shape for x in inputs], sizes)
    return [
        torch.randn(shape) if x.is_floating_point() else torch.randint(0, int(x.max()) + 1, shape)
        for x, shape in zip(inputs, shapes, strict=True)
    ]


def check(model: nn.Module, inputs: Sequence[torch.Tensor], dims: str, folder: Path, divisor: int = 1) -> None:
    dynamic = varying(inputs, dims, divisor=divisor)
    made = kernel_of(model, inputs, dynamic, folder)
    names = [symbol.name for symbol in dynamic.symbols]
    tried = 0
    for turn in range(len(SIZES)):
        sizes = {name: SIZES[(turn + 3 * place) % len(SIZES)] * divisor for place, name in enumerate(names)}
        given = drawn(inputs, dynamic, sizes)
        with torch.no_grad():
            try:
                expected = model(*given)
            except (RuntimeError, IndexError):  # torch itself has no answer at these sizes
                continue
            result = made(*given)
        for want, got in zip(pytree.tree_leaves(expected), pytree.tree_leaves(result), strict=True):
            assert got.shape == want.shape, sizes
            torch.testing.assert_close(got, want, rtol=2e-3, atol=2e-4, equal_nan=True, msg=lambda m, s=sizes: f"{s}: {m}")
        tried += 1
    assert tried >= 4


class Attention(nn.Module):
    """Self-attention as written by hand: reshapes with -1, a head axis, a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = self.into(x).view(batch, length, 3, 2, 8).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, -1)) + x


def centred(x: torch.Tensor) -> torch.Tensor:
    return x - x.mean(-1, keepdim=True)


r = torch.randn
FAST: dict[str, tuple[nn.Module, Sequence[torch.Tensor], str]] = {
    "softmax": (nn.Softmax(-1), [r(6, 20)], "nm"),
    "centred_padding": (Of(lambda x: centred(F.pad(x * x.square().sum(-1, keepdim=True), (1, 2)))), [r(6, 20)], "nm"),
    "linear_relu": (nn.Sequential(nn.Linear(20, 12), nn.ReLU()), [r(6, 20)], "n."),
    "attention": (Attention(), [r(2, 12, 16)], "nt."),
    "strided_convolution": (nn.Conv2d(4, 8, 3, stride=2, padding=1), [r(2, 4, 12, 14)], "n.hw"),
}
SLOW: dict[str, tuple[nn.Module, Sequence[torch.Tensor], str]] = {
    "few_columns": (nn.Sequential(nn.Linear(40, 1), nn.GELU()), [r(6, 40)], "n."),
    "few_rows": (Of(lambda x, y: x @ y.T), [r(2, 40), r(6, 40)], ".,n."),
    "one_column": (Of(lambda x, y: x.T @ y), [r(40, 6), r(40, 1)], ".n,"),
    "relu": (Of(lambda x: torch.relu(x) + 1), [r(6, 20)], "nm"),
    "bias": (Of(lambda x, y: torch.relu(x) + y), [r(6, 20), r(20)], "nm,m"),
    "softmax_across": (nn.Softmax(0), [r(6, 20)], "nm"),
    "layer_norm": (nn.LayerNorm(20), [r(6, 20)], "n."),
    "variance": (Of(lambda x: x.var(1)), [r(6, 20)], "nm"),
    "sum_of_all": (Of(lambda x: x.sum()), [r(600, 200)], "nm"),
    "maximum_and_place": (Of(lambda x: x[:, :1].max(1)), [r(6, 20)], "nm"),
    "cumsum": (Of(lambda x: x.cumsum(1)), [r(6, 20)], "nm"),
    "cumsum_across": (Of(lambda x: x.cumsum(0)), [r(6, 20)], "nm"),
    "group_norm": (nn.GroupNorm(4, 8), [r(3, 8, 5, 6)], "n.hw"),
    "batch_norm": (nn.BatchNorm2d(8), [r(3, 8, 5, 6)], "n.hw"),
    "transpose": (Of(lambda x: x.transpose(1, 2).contiguous()), [r(3, 8, 5)], "nhw"),
    "concatenation": (Of(lambda x, y: torch.cat([x, y], 1) * 2), [r(3, 8), r(3, 5)], "nh,nw"),
    "shape_arithmetic": (Of(lambda x: x.flatten().relu().view(x.shape[0], -1).sum(1) * x.shape[1]), [r(3, 8, 5)], "nhw"),
    "halves_turned": (Of(lambda x: torch.cat([-x[:, x.shape[1] // 2 :], x[:, : x.shape[1] // 2]], 1)), [r(3, 8)], "nh"),
    "padding": (Of(lambda x: F.pad(x, (1, 2))), [r(3, 8)], "nh"),
    "neighbours": (Of(lambda x: x[:, 1:] - x[:, :-1]), [r(3, 8)], "nh"),
    "embedding": (nn.Embedding(10, 16), [torch.randint(0, 10, (3, 5))], "nh"),
    "product": (Of(lambda x, y: x @ y), [r(33, 20), r(20, 17)], "nk,km"),
    "product_turned": (Of(lambda x, y: x.T @ y + 1), [r(20, 33), r(20, 17)], "kn,km"),
    "batched_product": (Of(lambda x, y: torch.bmm(x, y).relu()), [r(3, 33, 20), r(3, 20, 17)], "bnk,bkm"),
    "cross_attention": (Of(F.scaled_dot_product_attention), [r(2, 2, 12, 8), r(2, 2, 20, 8), r(2, 2, 20, 8)], "n.q.,n.k.,n.k."),
    "decoding": (Of(F.scaled_dot_product_attention), [r(2, 2, 1, 8), r(2, 2, 20, 8), r(2, 2, 20, 8)], "n...,n.k.,n.k."),
    "convolution": (nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU()), [r(2, 3, 12, 14)], "n.hw"),
    "convolution_line": (nn.Conv1d(4, 8, 5, padding=2), [r(2, 4, 32)], "n.h"),
    "transposed_convolution": (nn.ConvTranspose2d(4, 8, 4, stride=2, padding=1), [r(2, 4, 6, 7)], "n.hw"),
    "depthwise_convolution": (nn.Conv2d(8, 8, 3, padding=1, groups=8), [r(2, 8, 12, 14)], "n.hw"),
    "max_pool": (nn.MaxPool2d(3, 2, 1), [r(2, 3, 12, 14)], "n.hw"),
    "mean_of_image": (nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, 5)), [r(2, 3, 12, 14)], "n.hw"),
    "cross_entropy": (Of(F.cross_entropy), [r(6, 10), torch.randint(0, 10, (6,))], "n.,n"),
    "sorting": (Of(lambda x: torch.sort(x, dim=1)), [r(6, 10)], "n."),
    "upsampling": (nn.Upsample(scale_factor=2), [r(2, 3, 5, 6)], "n.hw"),
    "gru": (nn.GRU(8, 6, batch_first=True), [r(3, 5, 8)], "n.."),
    "encoder_layer": (nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0), [r(2, 5, 16)], "nt."),
}


@pytest.mark.parametrize("name", FAST)
def test_one_kernel_is_right_at_all_sizes(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    check(*FAST[name], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_every_family(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    check(*SLOW[name], tmp_path)


@pytest.mark.slow
def test_a_size_that_is_a_multiple(tmp_path: Path) -> None:
    """Groups of a reshape: only multiples are in the range, and others are told."""
    model = Of(lambda x: x.view(x.shape[0] // 4, 4, x.shape[1]).sum(1))
    check(model, [r(8, 20)], "nm", tmp_path, divisor=4)
    made = kernel_of(model, [r(8, 20)], varying([r(8, 20)], "n.", low=4, divisor=4), tmp_path)
    with pytest.raises(ValueError, match="dimension 0 of argument 0 must be a multiple of 4, 4 or more, not 7"):
        made(r(7, 20))
    with pytest.raises(ValueError, match="4 or more, not 0"):
        made(r(0, 20))


def test_what_forward_fixes_is_told() -> None:
    with pytest.raises(UnsupportedOperator, match=r"input 0\[1\] cannot vary: forward is recorded for 20"):
        design_module(nn.Linear(20, 12), [r(6, 20)], dynamic=varying([r(6, 20)], "nm"))


# ---------------------------------------------------------------- the algebra of sizes


def test_arithmetic_of_sizes() -> None:
    region = Region()
    n, m = region.size("n", 6), region.size("m", 8, low=1, high=64)
    assert n + 2 - n == 2
    assert n * m // m == n
    assert (n * 4) % 4 == 0
    assert n != 0
    assert n != 1
    assert likely((n + 1) * m) == 56
    assert largest(n, 0) == n
    assert repr(largest(n, 3)) == "max(3, n)"
    assert not region.conditions


def test_order_is_proved_or_a_condition() -> None:
    region = Region()
    n = region.size("n", 6, low=2)
    assert n > 1
    assert not n < 2
    assert not region.conditions
    assert n <= 100
    (declared,) = region.declared()
    assert (declared.low, declared.high) == (2, 100)
    assert n >= 4
    assert region.declared()[0].low == 4


def test_nothing_becomes_a_number_silently() -> None:
    n = Region().size("n", 6)
    for ask in (int, float, range, lambda size: 1.0 / size, lambda size: [0] * size):
        with pytest.raises((UnsupportedOperator, TypeError)):
            ask(n)  # type: ignore[operator]


def test_positions_in_a_shape_that_varies() -> None:
    region = Region()
    n, m = region.size("n", 6), region.size("m", 8)
    flat = LoopAxis(n * m * 4)
    row, column, part = unflatten(axis_index(flat), (n, m, 4))
    i, j, k = LoopAxis(n), LoopAxis(m), LoopAxis(4)
    position = axis_index(i) * size_poly(m * 4) + axis_index(j) * 4 + axis_index(k)
    assert certainly_inside(position, n * m * 4)
    assert not certainly_inside(position + 1, n * m * 4)
    assert dict(linear(position)) == {i: m * 4, j: 4, k: 1}
    assert [c.substitute({flat: position}, OWN.combine) for c in (row, column, part)] == [poly(i), poly(j), poly(k)]


def test_large_outputs_pass_the_caches_where_the_call_is_large(tmp_path: Path) -> None:
    """Written past the caches at the example's size, and into them at small ones: one guard decides, and both ways are right."""
    model = Of(lambda x: x.transpose(1, 2).contiguous() * 2)
    inputs = [torch.randn(8, 512, 640)]
    dynamic = varying(inputs, "n..")
    (design, *_) = design_module(model.eval(), inputs, dynamic=dynamic, limit=1)
    text = language("cpp").lower(design.sketch)
    assert f"if ({dynamic.symbols[0].name} * 2621440 >= 8388608)" in text
    made = loaded(text, tmp_path).ModelNew()
    for rows in (0, 1, 3, 4, 9):
        x = torch.randn(rows, 512, 640)
        assert torch.equal(made(x), model(x)), rows
    (small, *_) = design_module(
        model.eval(), [torch.randn(1, 16, 16)], dynamic=varying([torch.randn(1, 16, 16)], "n.."), limit=1
    )
    assert "_in_cache" not in language("cpp").lower(small.sketch)
