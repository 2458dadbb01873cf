"""The same sketches through the C++ coder: micro-kernel, packing, contraction nests, borders."""

from __future__ import annotations

import types
from typing import Any

import pytest
import torch
from building import attention_sketches, conv_sketches, gemm_sketches, machine
from torch.nn import functional

from kernelwright.compiler.backends.cpp.emit import lower
from kernelwright.compiler.designer import design_module
from kernelwright.sketch.nodes import Sketch


def built(sketch: Sketch, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """Lowers, compiles and calls a sketch."""
    module = types.ModuleType("kernel")
    exec(compile(lower(sketch), "kernel.py", "exec"), module.__dict__)
    model = module.ModelNew()
    params = {t.source: inputs[t.name] for t in sketch.tensors if t.role == "param"}
    if params:
        model.load_state_dict(params)
    result: torch.Tensor = model(*(inputs[t.name] for t in sketch.tensors if t.role == "input"))
    return result


GEMMS = [
    ((96, 64, 80), "nn", torch.float32),  # panels
    ((37, 51, 300), "nt", torch.float32),  # transposing pack with tails
    ((300, 272, 33), "tn", torch.float32),  # a copied row by row
    ((5, 31, 17), "tt", torch.float32),
    ((2, 96, 64), "nn", torch.float32),  # few rows, in place
    ((20, 24, 40), "nn", torch.float64),
    ((20, 32, 40), "nn", torch.bfloat16),  # converted straight into panels
    ((77, 91, 133), "nn", torch.bfloat16),  # in pairs where the machine has them: an odd end of k, a border along n
    ((70, 80, 65), "nt", torch.bfloat16),
    ((50, 64, 39), "tn", torch.bfloat16),
    ((20, 24, 40), "nn", torch.int8),
    ((30, 128, 2048), "nn", torch.float32),  # rows of a meet in one set of the first cache; the first sums overwrite the tile
    ((13, 80, 1024), "nn", torch.float64),
]


@pytest.mark.parametrize(("shape", "layout", "dtype"), GEMMS)
def test_products(shape: tuple[int, int, int], layout: str, dtype: torch.dtype) -> None:
    m, n, k = shape
    turn_a, turn_b = (letter == "t" for letter in layout)
    a = (torch.randn((k, m) if turn_a else (m, k)) * 5).to(dtype)
    b = (torch.randn((n, k) if turn_b else (k, n)) * 5).to(dtype)
    expected = (a.T if turn_a else a).double() @ (b.T if turn_b else b).double()
    sketch = gemm_sketches(a, b, turn_a=turn_a, turn_b=turn_b, machine=machine(tile_bytes=32 << 10))[0]
    tolerance = 1e-2 if dtype is torch.bfloat16 else 1e-5
    out = built(sketch, {"a": a, "b": b}).double()
    torch.testing.assert_close(out, expected, rtol=tolerance, atol=tolerance * float(expected.abs().max()))


def test_the_first_product_overwrites_only_where_it_covers_the_tile() -> None:
    """What a thread left in its scratch memory must not reach a later sum, also where tiles run over the end."""
    for m, n, k in ((512, 256, 1024), (509, 251, 1021)):
        a, b = torch.randn(m, k), torch.randn(k, n)
        sketch = gemm_sketches(a, b, machine=machine(tile_bytes=32 << 10))[0]
        for factor in (1.0, torch.nan, 1.0):
            out = built(sketch, {"a": a * factor, "b": b})
        torch.testing.assert_close(out, a @ b, rtol=1e-4, atol=1e-3)


def test_bf16_is_multiplied_in_pairs_or_converted() -> None:
    """One source has both; a pair that runs over the end of k must not read a neighbour that is not finite."""
    a, b = torch.randn(9, 33).bfloat16(), torch.randn(33, 40).bfloat16()
    a[1:, 0] = torch.inf
    sketch = gemm_sketches(a, b)[0]
    text = lower(sketch)
    assert "gemm_pairs(" in text
    assert "gemm_tile<float>(" in text
    torch.testing.assert_close(built(sketch, {"a": a, "b": b})[0].float(), (a[:1].float() @ b.float())[0], rtol=1e-2, atol=0.05)


def test_floats_that_are_rounded_to_bf16_are_multiplied_in_pairs_too() -> None:
    """A conversion that was fused into the product is done once, to bf16; whatever else makes an operand keeps floats."""

    class Product(torch.nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return a.bfloat16() @ b.bfloat16()

    class Scaled(torch.nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return (a.bfloat16().float() * 1.001) @ b.bfloat16().float()

    for m, k, n in ((50, 64, 90), (31, 77, 45)):
        a, b = torch.randn(m, k), torch.randn(k, n)
        sketch = design_module(Product(), (a, b))[0].sketch
        assert "gemm_pairs(" in lower(sketch)
        torch.testing.assert_close(built(sketch, {"a": a, "b": b}).float(), Product()(a, b).float(), rtol=1e-2, atol=0.02)
        assert "gemm_pairs(" not in lower(design_module(Scaled(), (a, b))[0].sketch)


CONVOLUTIONS: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 20, 13, 11), (14, 20, 3, 3), {"padding": 1}),  # a nest of taps in one call
    ((1, 3, 20, 23), (4, 3, 5, 3), {"stride": (2, 3), "padding": (2, 1), "dilation": (1, 2)}),
    ((1, 4, 6, 7, 8), (5, 4, 3, 2, 3), {"padding": (1, 0, 1), "stride": (1, 2, 2)}),
    ((2, 6, 9, 12), (12, 1, 3, 3), {"groups": 6, "padding": 1, "stride": 2}),
    ((2, 3, 21, 26), (8, 3, 5, 5), {"stride": 2, "padding": 2}),  # phases of a stride side by side, one list of places
    ((1, 3, 30, 31), (7, 3, 11, 11), {"stride": 4, "padding": 2}),
    ((1, 60, 9, 8), (5, 60, 5, 5), {"stride": (2, 1), "padding": 1}),  # more terms than one list holds
    ((2, 8, 12, 13), (6, 4, 2, 3), {"stride": 3, "groups": 2}),  # fewer taps than phases along one axis
    ((2, 5, 33), (9, 5, 4), {"stride": 2, "padding": 1}),
    ((1, 3, 7, 9, 10), (4, 3, 3, 3, 3), {"stride": 2, "padding": 1}),
    ((2, 4, 7, 9), (4, 5, 4, 4), {"stride": 2, "padding": 1, "output_padding": 1, "transposed": True}),
    ((2, 4, 17), (4, 5, 3), {"dilation": 3, "transposed": True}),
]


@pytest.mark.parametrize(("x_shape", "w_shape", "numbers"), CONVOLUTIONS)
def test_convolutions(x_shape: tuple[int, ...], w_shape: tuple[int, ...], numbers: dict[str, Any]) -> None:
    x, w = torch.randn(x_shape), torch.randn(w_shape)
    kind = "conv_transpose" if numbers.get("transposed") else "conv"
    plain = {name: value for name, value in numbers.items() if name != "transposed"}
    expected = getattr(functional, f"{kind}{len(x_shape) - 2}d")(x, w, **plain)
    torch.testing.assert_close(built(conv_sketches(x, w, **numbers)[0], {"x": x, "w": w}), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("queries", "causal"), [(70, False), (131, True), (2, False)])
def test_attention(queries: int, causal: bool) -> None:
    q, k, v = torch.randn(2, 4, queries, 16), torch.randn(2, 2, 131, 16), torch.randn(2, 2, 131, 24)
    expected = functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
    sketch = attention_sketches(q, k, v, causal=causal)[0]
    torch.testing.assert_close(built(sketch, {"q": q, "k": k, "v": v}), expected, rtol=1e-4, atol=1e-5)
