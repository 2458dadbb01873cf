"""Random modules all the way down: designed, lowered to C++, built and run; what comes out is what torch computes.

Many small chains share one build. Seeds are fixed: the same modules every time, more of them among the slow tests.
"""

from __future__ import annotations

import random
import shutil
import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kernelwright.compiler.designer import design_module
from kernelwright.compiler.language import language

from .test_random_modules import STEPS

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

EXTENTS = (0, 1, 1, 2, 3, 5, 7, 13, 17, 33)
PRODUCTS: dict[str, Callable[[Tensor], Tensor]] = {
    "gram": lambda x: x.transpose(-1, -2) @ x if x.dim() > 1 else x,
    "outer": lambda x: x.reshape(-1, 1)[:40] @ x.reshape(1, -1)[:, :40],
    "conv1d": lambda x: F.conv1d(x.reshape(1, 1, -1), torch.tensor([[[0.5, -1.0, 0.25]]]), padding=1) if x.numel() else x,
    "deconv1d": lambda x: F.conv_transpose1d(x.reshape(1, 1, -1), torch.ones(1, 2, 3), stride=2) if x.numel() else x,
    "attend": lambda x: F.scaled_dot_product_attention(x, x, x) if x.dim() > 1 and x.numel() else x,
    "half": lambda x: x.half().float(),
    "argmax": lambda x: x.argmax(-1).float() if x.dim() and x.shape[-1] else x,
    "sort": lambda x: x.sort(-1)[0] if x.dim() else x,
}
ALL = {**STEPS, **PRODUCTS}


class Chains(nn.Module):
    """Chains of steps, one for each input; every chain also shows its middle."""

    def __init__(self, chains: list[list[str]]) -> None:
        super().__init__()
        self.chains = chains

    def forward(self, *inputs: Tensor) -> list[Tensor]:
        results = []
        for x, names in zip(inputs, self.chains, strict=True):
            for place, name in enumerate(names):
                x = ALL[name](x)
                if place == 1:
                    results.append(x * 1.0)
            results.append(x * 1.0)
        return results


def drawn(seed: int, count: int) -> tuple[Chains, list[Tensor]]:
    choose = random.Random(seed)
    torch.manual_seed(seed)
    chains, inputs = [], []
    for _ in range(count):
        chains.append(choose.choices(sorted(ALL), k=choose.randint(2, 5)))
        shape = [choose.choice(EXTENTS) for _ in range(choose.randint(1, 4))]
        strided = choose.random() < 0.4
        inputs.append(torch.randn([*shape[:-1], shape[-1] * 2])[..., ::2] if strided else torch.randn(shape))
    return Chains(chains), inputs


def kernel(model: nn.Module, inputs: list[Tensor]) -> Any:
    module = types.ModuleType("lowered_module")
    source = language("cpp").lower(design_module(model, inputs)[0].sketch)
    exec(compile(source, "lowered_module.py", "exec"), module.__dict__)
    return module.ModelNew()


def same(model: Chains, inputs: list[Tensor]) -> None:
    with torch.no_grad():
        wanted = model.eval()(*inputs)
    got = kernel(model, inputs)(*inputs)
    steps = [part for names in model.chains for part in (names[:2], names)]
    for names, want, have in zip(steps, wanted, got, strict=True):
        assert have.shape == want.shape
        # a value that lies between two halves may be rounded to either
        allowed = 2e-3 if "half" in names else 2e-4
        torch.testing.assert_close(have, want, rtol=allowed, atol=2e-4, equal_nan=True)


def test_random_modules() -> None:
    same(*drawn(seed=1, count=10))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 26))
def test_more_random_modules(seed: int) -> None:
    same(*drawn(seed=seed, count=10))


def test_repeated_blocks_share_a_function() -> None:
    """Twelve equal layers are one function called twelve times, with their own weights."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(24, 24), nn.Tanh()) for _ in range(12))).eval()
    x = torch.randn(10, 24)
    source = language("cpp").lower(design_module(model, [x])[0].sketch)
    assert source.count("tanh_of(") < 12
    module = types.ModuleType("lowered_module")
    exec(compile(source, "lowered_module.py", "exec"), module.__dict__)
    new = module.ModelNew()
    new.load_state_dict(model.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(new(x), model(x), rtol=1e-4, atol=1e-5)


class Unrolled(nn.Module):
    """A loop that torch.export unrolls; each step reads another part of x and writes another part of the result."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Linear(11, 6)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        shown = []
        for t in range(x.shape[0]):
            h = torch.tanh(self.cell(torch.cat((x[t], h), dim=1)))
            shown.append(h * 2)
        return torch.stack(shown)


def test_an_unrolled_loop_shares_its_steps() -> None:
    torch.manual_seed(0)
    model, x, h = Unrolled().eval(), torch.randn(24, 3, 5), torch.randn(3, 6)
    sketch = design_module(model, [x, h])[0].sketch
    source = language("cpp").lower(sketch)
    assert source.count("static void") < len(sketch.steps) / 3
    module = types.ModuleType("lowered_module")
    exec(compile(source, "lowered_module.py", "exec"), module.__dict__)
    new = module.ModelNew()
    new.load_state_dict(model.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(new(x, h), model(x, h), rtol=1e-4, atol=1e-5)
