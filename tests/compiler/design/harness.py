"""How the designer's tests judge a design: it must check, and the interpreter must give what torch gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from kernelwright.compiler.designer import Design, design_module
from kernelwright.sketch.check.rules import require
from kernelwright.sketch.interpret.interpreter import call

Tree = torch.utils._pytree


class Wrapped(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def designed(subject: nn.Module | Callable[..., Any], *inputs: Any, tolerance: float = 1e-4) -> Design:
    """Designs the subject, checks the sketch, runs it with shuffled parallel loops, and compares with torch."""
    model = (subject if isinstance(subject, nn.Module) else Wrapped(subject)).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # norms start as identities: a design that forgets them must not pass
            parameter.copy_(torch.randn_like(parameter) * 0.5 + 0.3)
        design = design_module(model, inputs)[0]
        expected = model(*inputs)
    require(design.sketch)
    got = call(design.sketch, Tree.tree_leaves(list(inputs)), model.state_dict())
    want_leaves, want_tree = Tree.tree_flatten(plain(expected))
    got_leaves, got_tree = Tree.tree_flatten(got)
    assert want_tree == got_tree
    for want, have in zip(want_leaves, got_leaves, strict=True):
        assert have.shape == want.shape
        assert have.dtype == want.dtype
        torch.testing.assert_close(have, want, rtol=tolerance, atol=tolerance, equal_nan=True)
    return design


def plain(tree: Any) -> Any:
    """Named tuples of torch (values and indices) as tuples, which is what a kernel returns."""
    if isinstance(tree, dict):
        return {key: plain(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [plain(value) for value in tree]
    return tuple(plain(value) for value in tree) if isinstance(tree, tuple) else tree


def kernels(design: Design) -> int:
    """How many kernels run on every call."""
    return sum(not getattr(step, "once", False) for step in design.sketch.steps)
