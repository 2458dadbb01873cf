"""Norms of what lies far from zero beside its spread: a convolution of small inputs with a bias. The mean's rounding must not show."""

from __future__ import annotations

import copy
from types import ModuleType

import pytest
import torch
from torch import nn

from kernelwright.compiler.backends.cpp.emit import lower
from kernelwright.compiler.designer import design_module


@pytest.mark.parametrize("norm", [nn.InstanceNorm1d(64), nn.GroupNorm(64, 64)], ids=["instance", "group of one"])
def test_a_norm_of_channels_after_a_bias_is_as_exact_as_torch(norm: nn.Module) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv1d(32, 64, 5, padding=2), norm, nn.LeakyReLU(0.1), nn.AvgPool1d(2)).eval()
    x = torch.randn(8, 32, 1024) * 2**-12
    state = [(name, tuple(value.shape), "float32", False) for name, value in model.state_dict().items()]
    module = ModuleType("kernel_under_test")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.3)
        exec(compile(lower(design_module(model, (x,))[0].sketch, state=state), "kernel.py", "exec"), module.__dict__)
        kernel = module.ModelNew()
        kernel.load_state_dict(model.state_dict())
        truth = copy.deepcopy(model).double()(x.double())
        ours, torchs = ((found - truth).square().mean().sqrt() for found in (kernel(x), model(x)))
    assert ours <= 2 * torchs
