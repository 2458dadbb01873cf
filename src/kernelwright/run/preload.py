"""Imported in the drafting server: makes a process ready to design, so that its forks start at once.

torch.export loads most of what it needs at its first use; one export, design and lowering of a tiny module here saves some
three seconds of every draft.
"""

from __future__ import annotations

import torch
from torch import nn

from kernelwright.compiler.designer import design_module
from kernelwright.compiler.language import language
from kernelwright.core.plugins import DEFAULT_LANGUAGE


class _Tiny(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.linear(x), -1)


language(DEFAULT_LANGUAGE).lower(design_module(_Tiny().eval(), [torch.zeros(2, 4)])[0].sketch)
