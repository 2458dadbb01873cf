"""Products of half floats are multiplied as they are stored."""

from __future__ import annotations

import re

import pytest

from kernelwright.compiler.language import language
from kernelwright.sketch.nodes import Sketch
from kernelwright.sketch.parse import parse
from kernelwright.target import Capabilities, Target

SOURCE = """
name = "product"
x = tensor([256, 256], {left}, role="input", source="0")
w = tensor([256, 256], {right}, role="input", source="1")
y = tensor([256, 256], f32, role="output")

@kernel
def product():
    for i in parallel(0, 256, 64):
        for j in parallel(0, 256, 64):
            acc = full([64, 64], 0.0, f32, level="accumulator")
            for k in range(0, 256, 32):
                a = cast(load(x[i:i + 64, k:k + 32]), f32)
                b = cast(load(w[j:j + 64, k:k + 32]), f32)
                acc = gemm(a, permute(b, [1, 0]), acc)
            store(y[i:i + 64, j:j + 64], acc)

returns("y")
"""


def product(left: str, right: str) -> Sketch:
    return parse(SOURCE.format(left=left, right=right))


def text(dsl: str, sketch: Sketch) -> str:
    return language(dsl).lower(sketch, capabilities=Capabilities.of(Target.load("a100"), "blocks"))


@pytest.mark.parametrize("half", ["f16", "bf16"])
def test_triton_multiplies_halves_on_matrix_units(half: str) -> None:
    body = text("triton", product(half, half))
    assert ".to(tl.float32)" not in body
    assert re.search(r"tl\.dot\(\w+, \w+, acc\w*\)", body)


def test_factors_of_two_types_are_widened() -> None:
    assert 'input_precision="ieee"' in text("triton", product("f16", "bf16"))


def test_tilelang_copies_halves_to_shared_memory() -> None:
    body = text("tilelang", product("bf16", "bf16"))
    assert len(re.findall(r"T\.copy\(\w+\[", body)) == 2
    assert "_low" not in body
    assert "in T.Pipelined(8, num_stages=3):" in body


def test_triton_products_move_pointers_in_groups_of_rows_and_add_in_place() -> None:
    body = text("triton", parsed_large())
    assert "pid_m = group * GROUP_M + within % GROUP_M" in body
    assert "offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)" in body
    assert re.search(r"\n +x_ptrs \+= 32\n", body)
    assert re.search(r"\n +acc = tl\.dot\(\w+, \w+, acc\)\n", body)
    assert "mask=" not in body


def parsed_large() -> Sketch:
    """The product of bf16 tiles with sixteen rows of tiles."""
    return parse(SOURCE.format(left="bf16", right="bf16").replace("256, 64", "1024, 64").replace("[256, 256]", "[1024, 1024]"))


def test_attention_on_a_gpu_multiplies_weights_in_what_the_values_are() -> None:
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    from kernelwright.compiler.designer import design_module

    class Attention(torch.nn.Module):
        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return scaled_dot_product_attention(q, k, v, is_causal=True)

    q, k, v = (torch.zeros(1, 2, 96, 32, dtype=torch.float16) for _ in range(3))
    machine = Capabilities.of(Target.load("a100"), "blocks")
    body = text("triton", design_module(Attention(), (q, k, v), capabilities=machine, limit=1)[0].sketch)
    assert body.count("tl.dot(") == 2
    assert 'input_precision="ieee"' not in body
    assert re.search(r"= weight\.to\(tl\.float16\)", body)
