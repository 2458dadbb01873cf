"""Inputs as people write them on a command line: `"f32[128,512], i64[16] < 100, 3, 0.5"` becomes tensors and numbers."""

from __future__ import annotations

import ast
import re
from typing import Any

from kernelwright.core.dtypes import DType
from kernelwright.core.errors import ConfigError

_ITEM = re.compile(r"\w+\[[\d\s,]*\](?:\s*<\s*\d+)?|\([^)]*\)|[^,\s]+")
_TENSOR = re.compile(r"(\w+)\[([\d\s,]*)\](?:\s*<\s*(\d+))?")


def drawn(text: str) -> list[Any]:
    """The values, drawn from a fixed seed: floats from a normal distribution, integers below the bound that is given, or 2."""
    import torch

    from kernelwright.core.task.load import seed_everything

    seed_everything(1)
    found: list[Any] = []
    for item in _ITEM.findall(text):
        shaped = _TENSOR.fullmatch(item)
        if shaped is None:
            try:
                found.append(ast.literal_eval(item))
            except (ValueError, SyntaxError):
                raise ConfigError(f"{item!r} is no input: write tensors as f32[128,512] and numbers as they are") from None
            continue
        if shaped[1] not in DType.__members__:
            raise ConfigError(f"unknown dtype {shaped[1]} in the inputs; known are {', '.join(DType.__members__)}")
        shape = [int(extent) for extent in shaped[2].split(",") if extent.strip()]
        kind = getattr(torch, DType(shaped[1]).torch_name)
        floats = kind.is_floating_point
        found.append(torch.randn(shape).to(kind) if floats else torch.randint(0, int(shaped[3] or 2), shape).to(kind))
    return found
