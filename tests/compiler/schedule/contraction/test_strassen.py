"""Strassen's product: where it applies, whether it is right in the interpreter and as C++, and how exact it is."""

from __future__ import annotations

import pytest
import torch
from building import compiled, gemm_sketches

from kernelwright.sketch.check.rules import check
from kernelwright.sketch.interpret.interpreter import run
from kernelwright.sketch.nodes import Kernel, Sketch


def strassen(sketches: list[Sketch]) -> list[Sketch]:
    return [s for s in sketches if any(isinstance(step, Kernel) and step.name.startswith("strassen") for step in s.steps)]


@pytest.mark.parametrize(("m", "n", "k"), [(192, 256, 200), (240, 192, 1032), (1000, 320, 192)])
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
def test_agrees_with_torch(m: int, n: int, k: int, layout: str) -> None:
    turn_a, turn_b = (letter == "t" for letter in layout)
    a, b = torch.randn((k, m) if turn_a else (m, k)), torch.randn((n, k) if turn_b else (k, n))
    first, *others = gemm_sketches(a, b, turn_a=turn_a, turn_b=turn_b, constant=True, relu=True)
    assert not strassen([first])
    (sketch,) = strassen(others)
    assert not check(sketch)
    expected = ((a.T if turn_a else a).double() @ (b.T if turn_b else b).double()).relu()
    for out in (run(sketch, {"a": a, "b": b}, strict=True, shuffle=1)["out"], compiled(sketch, a, b=b)):
        torch.testing.assert_close(out.double(), expected, rtol=0, atol=1e-5 * float(expected.abs().max()))


def test_rounds_a_few_times_as_much_as_a_plain_product() -> None:
    torch.manual_seed(0)
    a, b = torch.randn(256, 1024), torch.randn(1024, 768)
    truth = a.double() @ b.double()
    first, *others = gemm_sketches(a, b, constant=True)
    plain, rough = (float((compiled(sketch, a, b=b) - truth).abs().max()) for sketch in (first, strassen(others)[0]))
    assert plain < rough < 8 * plain


@pytest.mark.parametrize(("m", "n", "k"), [(255, 256, 256), (256, 240, 256), (256, 256, 255), (64, 512, 512)])
def test_leaves_what_cannot_be_halved_alone(m: int, n: int, k: int) -> None:
    assert not strassen(gemm_sketches(torch.randn(m, k), torch.randn(k, n), constant=True))


def test_needs_a_parameter_on_the_right() -> None:
    assert not strassen(gemm_sketches(torch.randn(256, 256), torch.randn(256, 256)))
