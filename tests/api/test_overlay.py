"""`kernelwright.use`: an operator on a kernel for what it serves, torch for all else, counted; undone when the block ends."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import kernelwright
from kernelwright.compiler.backends.cpp import LANGUAGE
from kernelwright.compiler.designer import design_module
from kernelwright.core.errors import ConfigError


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A layer norm of 24 for two numbers of rows."""
    norm = nn.LayerNorm(24)
    first, second = (design_module(norm, [torch.randn(rows, 24)], limit=1)[0].sketch for rows in (6, 3))
    file = tmp_path_factory.mktemp("overlay") / "kernel.py"
    file.write_text(LANGUAGE.lower(first, shapes=[second]))
    return file


def test_a_kernel_file_serves_its_shapes_and_torch_all_others(kernel: Path) -> None:
    norm, other = nn.LayerNorm(24), nn.LayerNorm(24, eps=0.5)
    xs = [torch.randn(rows, 24) for rows in (6, 3, 5, 6)]
    with torch.no_grad():
        norm.weight.normal_()
        norm.bias.normal_()
        want = [norm(x) for x in xs]
        wide = other(xs[0])
        with kernelwright.use("aten::layer_norm", kernel) as overlay:
            for x, y in zip(xs, want, strict=True):
                torch.testing.assert_close(norm(x), y)
            assert (overlay.hits, overlay.misses) == (3, 1)
            torch.testing.assert_close(other(xs[0]), wide)  # the same shapes with another eps: held against torch, and refused
            assert (overlay.hits, overlay.misses) == (3, 2)
        norm(xs[0])
        assert overlay.hits == 3
    assert "not right" in str(overlay)
    assert "other shapes" in str(overlay)


def test_gradients_stay_with_torch(kernel: Path) -> None:
    norm, x = nn.LayerNorm(24), torch.randn(6, 24, requires_grad=True)
    norm(x).square().sum().backward()
    assert x.grad is not None
    want, x.grad = x.grad.clone(), None
    with kernelwright.use("aten::layer_norm", kernel) as overlay:
        norm(x).square().sum().backward()
    torch.testing.assert_close(x.grad, want)
    assert (overlay.hits, overlay.misses) == (0, 1)


def test_without_a_kernel_one_is_designed_for_each_signature() -> None:
    x = torch.randn(8, 32)
    with torch.inference_mode(), kernelwright.use("aten::_softmax", race=False) as overlay:
        for _ in range(2):
            torch.testing.assert_close(torch.softmax(x, -1), (x.exp() / x.exp().sum(-1, keepdim=True)))
        torch.softmax(x, 0)
    assert overlay.hits == 3
    assert len(overlay.signatures) == 2


def test_a_callable_that_is_wrong_is_never_used() -> None:
    def nearly(x: torch.Tensor) -> torch.Tensor:
        return x.clamp(min=1e-3)

    x = torch.randn(50)
    with torch.no_grad(), kernelwright.use("aten::relu", nearly) as overlay:
        assert float(F.relu(x).min()) == 0.0
    assert (overlay.hits, overlay.misses) == (0, 1)
    with torch.no_grad(), kernelwright.use("aten::relu", lambda x: torch.where(x > 0, x, 0.0)) as overlay:
        assert float(F.relu(x).min()) == 0.0
    assert overlay.hits == 1
    y = torch.randn(3, requires_grad=True)
    F.relu(y).sum().backward()
    assert y.grad is not None


def test_operators_that_do_not_exist_or_mutate_are_told() -> None:
    with pytest.raises(ConfigError, match="no operator"):
        kernelwright.use("aten::layer_nrom")
    with pytest.raises(ConfigError, match="changes its arguments"):
        kernelwright.use("aten::relu_")
