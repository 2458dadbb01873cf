"""Weights that tell: a module's state in, the same state with non-trivial values out.

Freshly made affine weights are all one, biases and running means all zero: a kernel that ignores them would pass. So constant
parameters get values around what they were. Everything that was drawn at random keeps its values, and so do buffers other than
batch statistics (masks, tables), whose values mean something.
"""

from __future__ import annotations

from typing import Any

import torch

SPREAD = 0.4
FEW, MANY = 6, 64
"""Elements that change when few do, and weights of how many are changed so."""


def randomised(model: Any, seed: int) -> dict[str, Any]:
    """The state dictionary to judge with."""
    dice = torch.Generator().manual_seed(seed)
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    state = {}
    for name, value in model.state_dict().items():
        value = value.detach().clone()
        if value.is_floating_point() and value.numel():
            if name in parameters and is_constant(value):
                value = _around(value, dice)
            elif name.endswith("running_mean") and is_constant(value):
                value = (torch.randn(value.shape, generator=dice) * SPREAD).to(value.dtype)
            elif name.endswith("running_var") and is_constant(value):
                value = (torch.rand(value.shape, generator=dice) + 0.5).to(value.dtype)
        state[name] = value
    return state


def touched(state: dict[str, Any], seed: int) -> dict[str, Any]:
    """The same weights with a few elements replaced by larger ones of the same signs, away from both ends, where a checksum looks."""
    dice = torch.Generator().manual_seed(seed)
    changed = {}
    for name, value in state.items():
        value = value.detach().clone(memory_format=torch.contiguous_format)
        if value.is_floating_point() and value.numel() >= MANY:
            quarter = value.numel() // 4
            places = torch.randint(quarter, value.numel() - quarter, (FEW,), generator=dice)
            value.view(-1)[places] *= 3
        changed[name] = value
    return changed


def constants(model: Any) -> list[str]:
    """Names of the weights that `randomised` would give other values although nobody drew them: what a kernel could ignore."""
    drawn = model.state_dict()
    changed = randomised(model, 0)
    return [name for name, value in drawn.items() if not torch.equal(value, changed[name])]


def is_constant(value: Any) -> bool:
    """All elements are equal: an initial value that nobody drew."""
    return bool((value == value.reshape(-1)[0]).all())


def _around(value: Any, dice: torch.Generator) -> Any:
    """Zeros become small numbers of both signs; other constants vary around themselves and keep their sign."""
    first = value.reshape(-1)[0].double()
    noise = torch.rand(value.shape, generator=dice, dtype=torch.float64) * 2 - 1
    if first == 0:
        return (noise * SPREAD).to(value.dtype)
    return (first * (1 + SPREAD * noise)).to(value.dtype)
