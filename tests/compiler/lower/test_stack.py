"""Tiles side by side: C++ writes each of them by itself and gives what the interpreter gives; every language can say it."""

from __future__ import annotations

import pytest

from kernelwright.compiler.language import language
from kernelwright.sketch.check.rules import require
from kernelwright.sketch.parse import parse
from tests.compiler.backends.cpp.lowering import check

SKETCH = """
x = tensor([8, 64], f32, role="input", source="0")
y = tensor([8, 2, 64, 3], f32, role="output")


@kernel
def put():
    for i in parallel(8):
        row = load(x[i, :])
        inner = stack([row, exp(row), row * 2.0 - 1.0], axis=1)
        store(y[i, :, :, :], stack([inner, inner * inner], axis=0))


returns("y")
"""


def test_cpp_gives_what_the_interpreter_gives() -> None:
    check(require(parse(SKETCH)))


@pytest.mark.parametrize("name", ["triton", "tilelang", "cuda_c"])
def test_other_languages_say_it(name: str) -> None:
    assert "class ModelNew" in language(name).lower(require(parse(SKETCH)))
