"""The C++ coder's options: other code, the same results; carried in the file; unknown ones are told."""

from __future__ import annotations

import types

import pytest
import torch

from kernelwright.compiler.backends.cpp import LANGUAGE
from kernelwright.compiler.backends.cpp.codegen_options import DEFAULTS, DOMAINS
from kernelwright.compiler.backends.cpp.emit import lower
from kernelwright.core.errors import ConfigError
from kernelwright.core.kernel import Kernel
from kernelwright.search.codegen_options import code_of
from kernelwright.sketch import nodes
from kernelwright.sketch.interpret import interpreter
from kernelwright.sketch.parse import parse

PRODUCT = """
name = "product"
a = tensor([50, 70], f32, role="input", source="0")
b = tensor([70, 90], f32, role="input", source="1")
out = tensor([50, 90], f32, role="output")

@kernel
def product():
    for i in parallel(0, 50, 25):
        p = gemm(load(a[i : i + 25, 0:70]), load(b[0:70, 0:90]))
        e = exp(p - reduce_max(p, axis=1))
        store(out[i : i + 25, 0:90], e / reduce_sum(e, axis=1))

returns("out")
"""
EVERY = [(name, value) for name, domain in DOMAINS.items() for value in domain if value != DEFAULTS[name]]
FEW = [("registers", 304), ("registers", 502), ("pack_above_rows", 1), ("copy_left", 2), ("keep_cost", 16), ("abreast", 8)]


@pytest.fixture(scope="module")
def sketch() -> nodes.Sketch:
    return parse(PRODUCT)


def assert_right(sketch: nodes.Sketch, options: dict[str, int]) -> None:
    module = types.ModuleType("kernel_under_test")
    exec(compile(lower(sketch, options=options), "kernel_under_test.py", "exec"), module.__dict__)
    inputs = [torch.randn(50, 70), torch.randn(70, 90)]
    wanted = interpreter.call(sketch, [x.clone() for x in inputs], {})
    torch.testing.assert_close(module.ModelNew()(*inputs), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "value"), FEW)
def test_another_way_computes_the_same(sketch: nodes.Sketch, name: str, value: int) -> None:
    assert_right(sketch, {name: value})


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value"), [case for case in EVERY if case not in FEW])
def test_every_other_way_computes_the_same(sketch: nodes.Sketch, name: str, value: int) -> None:
    assert_right(sketch, {name: value})


def test_a_file_carries_its_options(sketch: nodes.Sketch) -> None:
    kernel = Kernel.from_source(lower(sketch, options={"registers": 402, "unroll": DEFAULTS["unroll"]}))
    assert kernel.options == {"registers": 402}
    assert Kernel.from_source(lower(sketch)).options == {}


def test_options_that_make_no_difference_are_the_same_code(sketch: nodes.Sketch) -> None:
    plain = lower(sketch)
    assert code_of(lower(sketch, options={"strip": 512})) == code_of(plain)
    assert code_of(lower(sketch, options={"registers": 402})) != code_of(plain)
    assert "strip" not in LANGUAGE.options(plain) or "alignas" in plain


def test_an_unknown_option_is_told() -> None:
    with pytest.raises(ConfigError, match="no option 'speed'"):
        lower(parse(PRODUCT), options={"speed": 1})


@pytest.mark.parametrize(("end", "shares"), [("i + 64", "dynamic, 1"), ("256", "static")])
def test_threads_share_what_is_left_of_a_triangle(end: str, shares: str) -> None:
    """Where iterations differ in length, equal numbers of them are unequal work."""
    text = f"""
name = "triangle"
x = tensor([256, 256], f32, role="input", source="0")
y = tensor([256, 256], f32, role="input", source="1")
out = tensor([256, 256], f32, role="output")

@kernel
def triangle():
    for i in parallel(0, 256, 64):
        acc = full([64, 256], 0.0, f32)
        for k in range(0, {end}, 64):
            acc = gemm(load(x[i : i + 64, k : k + 64]), load(y[k : k + 64, 0:256]), acc)
        store(out[i : i + 64, 0:256], acc)

returns("out")
"""
    assert f"schedule({shares})" in lower(parse(text))
