"""Products of half floats are multiplied as they are stored."""

from __future__ import annotations

import re

import pytest

from kernelwright.compiler.language import language
from kernelwright.sketch.nodes import Sketch
from kernelwright.sketch.parse import parse
from kernelwright.target import Capabilities, Target


def product(left: str, right: str) -> Sketch:
    return parse(f"""
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
""")


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
