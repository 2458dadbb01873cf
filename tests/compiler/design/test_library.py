"""Track hybrid: what the designer has no rule for is left to torch, between kernels of our own."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn

from kernelwright.compiler.backends.cpp.emit import lower
from kernelwright.compiler.designer import design_module
from kernelwright.core.errors import UnsupportedOperator
from kernelwright.sketch import nodes
from kernelwright.sketch.check.rules import require
from kernelwright.sketch.interpret.interpreter import call
from kernelwright.sketch.parse import parse
from kernelwright.sketch.print import to_source

from .harness import Wrapped, plain


def hybrid(subject: Callable[..., Any] | nn.Module, *inputs: torch.Tensor, tolerance: float = 1e-4) -> list[nodes.LibraryCall]:
    """Designs for track hybrid; the sketch survives its text; interpreter and kernel file give what torch gives."""
    model = (subject if isinstance(subject, nn.Module) else Wrapped(subject)).eval()
    sketch = design_module(model, inputs, track="hybrid")[0].sketch
    assert parse(to_source(sketch)) == sketch
    require(sketch)
    with torch.no_grad():
        expected = plain(model(*inputs))
    state = [(name, tuple(t.shape), str(t.dtype), False) for name, t in model.state_dict().items()]
    module = ModuleType("kernel_under_test")
    exec(compile(lower(sketch, state=state), "kernel_under_test.py", "exec"), module.__dict__)
    kernel = module.ModelNew()
    kernel.load_state_dict(model.state_dict())
    for got in (call(sketch, inputs, model.state_dict(), strict=True), kernel(*inputs), kernel(*inputs)):
        torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)
    return [step for step in sketch.steps if isinstance(step, nodes.LibraryCall)]


def test_singular_values_between_our_kernels() -> None:
    (step,) = hybrid(lambda x: torch.linalg.svdvals(x.exp()).relu() + 1, torch.randn(3, 6, 5))
    assert step.operator == "aten._linalg_svd.default"
    assert json.loads(step.attributes)["$results"] == [1]


def test_a_parameter_and_an_operand_that_no_kernel_needs() -> None:
    class Solve(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.matrix = nn.Parameter(torch.randn(5, 5) + 5 * torch.eye(5), requires_grad=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.solve(self.matrix, x) * 2

    hybrid(Solve(), torch.randn(5, 3))


def test_an_attribute_reaches_the_library() -> None:
    def solved(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.linalg.solve_triangular(x + 4 * torch.eye(4), y * 2, upper=True).exp()

    (step,) = hybrid(solved, torch.randn(4, 4), torch.randn(4, 3))
    assert json.loads(step.attributes)["upper"] is True


def test_several_results() -> None:
    def both(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        q, r = torch.linalg.qr(x)
        return q.abs() * 3, r.abs()

    (step,) = hybrid(both, torch.randn(4, 6, 3))
    assert len(step.outputs) == 2


def test_a_result_of_forward_itself() -> None:
    hybrid(lambda x: (torch.linalg.inv(x), x), torch.randn(4, 4) + 4 * torch.eye(4))


def test_two_calls_after_each_other() -> None:
    def chain(x: torch.Tensor) -> torch.Tensor:
        lower_half = torch.linalg.cholesky(x @ x.mT + torch.eye(6))
        return torch.linalg.svdvals(lower_half.tanh())

    assert len(hybrid(chain, torch.randn(2, 6, 6))) == 2


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.fft.rfft(x).abs(),
        lambda x: torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(x.tanh()), n=16),
        lambda x: torch.fft.fft2(x).real.relu(),
        lambda x: torch.fft.ifft(torch.fft.fft(x) / 3.0).imag + torch.view_as_real(torch.fft.fft(x))[..., 0],
        lambda x: torch.fft.fft(x).conj().imag - torch.fft.fft(x).angle().cos(),
    ],
    ids=["spectrum", "convolution", "real part", "there and back", "conjugate"],
)
def test_complex_numbers_are_pairs(function: Callable[..., torch.Tensor]) -> None:
    assert hybrid(function, torch.randn(4, 16), tolerance=1e-3)


def test_pure_names_the_operator() -> None:
    with pytest.raises(UnsupportedOperator, match=r"aten\._linalg_svd is not supported by the built-in designer yet"):
        design_module(Wrapped(torch.linalg.svdvals).eval(), (torch.randn(4, 4),), track="pure")


def test_hybrid_leaves_only_what_the_judge_allows() -> None:
    with pytest.raises(
        UnsupportedOperator, match=r"aten\.histc is not supported .* track hybrid does not leave it to a library either"
    ):
        design_module(Wrapped(lambda x: torch.histc(x, 10)).eval(), (torch.randn(4, 4),), track="hybrid")


def test_what_has_rules_is_not_left_to_the_library() -> None:
    assert hybrid(lambda x, y: (x @ y).relu(), torch.randn(4, 5), torch.randn(5, 6)) == []
