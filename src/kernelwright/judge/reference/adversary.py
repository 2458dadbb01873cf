"""Inputs as an adversary would choose them: one drawn tensor in, the same tensor with another structure out, by what it holds.

Random draws show what happens on the average. A kernel may still be right only there: its buckets hold what a uniform draw puts into
them, its top-k keeps as many of a chunk as chance does, its softmax samples the maximum, its sums fit 16 bits, its recurrence forgets.
So there are structures for floating-point values (sorted both ways, clustered maxima, planted outliers, a heavy tail, saturation …) and
for whole numbers, by the role that their values suggest: indices and counts stay within what was drawn, offsets stay in order and keep
their ends, permutations stay permutations, masks are none, all or one. `trials` drops what the reference does not accept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from kernelwright.judge.reference.numerics import sample

Change = Callable[[Any, torch.Generator], Any]

OUTLIERS = 3
"""Planted along each line: more than a kernel may miss, fewer than a sample finds."""


def spread(tensor: Any) -> float:
    """A typical size, used to keep new values at the task's own scale."""
    some = sample(tensor)
    finite = some[torch.isfinite(some)]
    size = float(finite.square().mean().sqrt()) if finite.numel() else 0.0
    return size or 1.0


def normal(tensor: Any, dice: torch.Generator) -> Any:
    """Normal values of the tensor's own size, in fp32."""
    return torch.randn(tensor.shape, generator=dice).mul_(spread(tensor))


def _descending(tensor: Any, dice: torch.Generator) -> Any:
    values = normal(tensor, dice).abs_()
    return values.sort(dim=-1, descending=True).values if tensor.dim() else values


def _alternating(tensor: Any, dice: torch.Generator) -> Any:
    """Neighbours of opposite sign and about equal size, shifted so that sums along a line do not vanish."""
    values = normal(tensor, dice).mul_(2**-3).add_(1.25 * spread(tensor))
    values.view(-1)[::2].mul_(-0.5)
    return values


def _clustered(tensor: Any, dice: torch.Generator) -> Any:
    """All that is large lies side by side, somewhere on the last axis: one chunk, thread or bucket has all of it."""
    values = normal(tensor, dice)
    length = tensor.shape[-1] if tensor.dim() else 1
    width = max(1, length // 16)
    start = _pick(max(1, length - width + 1), dice)
    values[..., start : start + width].add_(6 * spread(tensor)) if tensor.dim() else None
    return values


def _outliers(tensor: Any, dice: torch.Generator) -> Any:
    """Quiet values, and a few large ones in the first, the middle or the last part of each line."""
    values = normal(tensor, dice).mul_(2**-4)
    if not tensor.dim() or tensor.shape[-1] < 4:
        return values
    third = max(1, tensor.shape[-1] // 3)
    places = torch.randint(0, third, (*tensor.shape[:-1], OUTLIERS), generator=dice) + third * _pick(3, dice)
    return values.scatter_(-1, places, 12 * spread(tensor) * (1 + torch.rand(places.shape, generator=dice)))


def _fading(axis: int) -> Change:
    """What counts comes first along an axis, and hardly anything after it: forgetting it is wrong."""

    def change(tensor: Any, dice: torch.Generator) -> Any:
        values = normal(tensor, dice)
        if tensor.dim() >= -axis and tensor.shape[axis] >= 8:
            first = max(1, tensor.shape[axis] // 32)
            values.narrow(axis, first, tensor.shape[axis] - first).mul_(2**-10)
        return values

    return change


def _heavy(tensor: Any, dice: torch.Generator) -> Any:
    """A heavy tail, cut off at a few hundred times the usual size."""
    tail = torch.rand(tensor.shape, generator=dice).add_(2**-8).reciprocal_()
    return normal(tensor, dice).mul_(tail.mul_(0.5))


def _saturating(tensor: Any, dice: torch.Generator) -> Any:
    """Far out on both sides: gates are open or shut, exponentials are 0 or dominate."""
    values = normal(tensor, dice).sign_()
    return values.mul_(torch.rand(tensor.shape, generator=dice).mul_(16).add_(8))


def _open(tensor: Any, dice: torch.Generator) -> Any:
    """Far out, and on the same side along each line: a gate that is open stays open, and nothing is ever forgotten."""
    line = torch.randn((*tensor.shape[:-1], 1) if tensor.dim() else (), generator=dice).sign_()
    return torch.rand(tensor.shape, generator=dice).mul_(16).add_(8) * line


FLOATS: dict[str, Change] = {
    "clustered": _clustered,
    "outliers": _outliers,
    "descending": _descending,
    "prefix": _fading(-1),
    "leading": _fading(-2),
    "saturating": _saturating,
    "open": _open,
    "heavy": _heavy,
    "alternating": _alternating,
}
WHOLE = ("skewed", "lowest", "highest", "extremes", "reversed", "shuffled", "beneath")
"""For integers, masks and whole floats; what they become depends on their role."""
UNEVEN = {"skewed", "lowest", "highest", "extremes"}
"""Structures under which one index gets all of a sum that indices spread."""


def role(tensor: Any) -> str:
    """What whole numbers seem to be: `mask`, `permutation`, `offsets` or `numbers`."""
    if tensor.dtype == torch.bool:
        return "mask"
    last = tensor.shape[-1] if tensor.dim() else 1
    if last >= 4 and not tensor.is_floating_point():
        lines = tensor.reshape(-1, last)[:64]
        ordered = lines.sort(dim=-1).values
        if bool((ordered == torch.arange(last)).all()):
            return "permutation"
        if bool((lines[:, 1:] >= lines[:, :-1]).all()):
            return "offsets"
    return "numbers"


def restructure(tensor: Any, name: str, dice: torch.Generator) -> Any | None:
    """Whole numbers under another structure; None where that would be none for their role."""
    what = role(tensor)
    if what == "mask":
        return _mask(tensor, name, dice)
    if what == "permutation":
        order = torch.randperm(tensor.shape[-1], generator=dice)
        return {"reversed": tensor.flip(-1), "shuffled": tensor[..., order], "lowest": tensor.sort(-1).values}.get(name)
    low, high = tensor.min(), tensor.max()
    if what == "offsets":
        changed = tensor.clone()
        middle = changed[..., 1:-1]
        if name in ("lowest", "highest"):
            middle.copy_((tensor[..., :1] if name == "lowest" else tensor[..., -1:]).expand(middle.shape))
        elif name in ("skewed", "extremes", "shuffled"):
            steps = torch.rand(middle.shape, generator=dice).pow_(4.0 if name == "skewed" else 1.0).sort(-1).values
            middle.copy_((tensor[..., :1] + steps * (tensor[..., -1:] - tensor[..., :1])).to(tensor.dtype))
        else:
            return None
        return changed
    return _numbers(tensor, name, low, high, dice)


def _numbers(tensor: Any, name: str, low: Any, high: Any, dice: torch.Generator) -> Any | None:
    if name in ("lowest", "highest"):
        return torch.full_like(tensor, (low if name == "lowest" else high).item())
    if name == "beneath":
        return (
            torch.where(torch.rand(tensor.shape, generator=dice) < 0.5, torch.zeros_like(tensor), tensor) if low > 0 else None
        )
    if name == "extremes":
        return torch.where(torch.rand(tensor.shape, generator=dice) < 0.5, low, high).to(tensor.dtype)
    flat = tensor.reshape(-1)
    if name == "skewed":
        one = flat[_pick(flat.numel(), dice)]
        return torch.where(torch.rand(tensor.shape, generator=dice) < 0.95, one, tensor)
    if name == "shuffled":
        return flat[torch.randperm(flat.numel(), generator=dice)].reshape(tensor.shape)
    return tensor.sort(dim=-1, descending=True).values if tensor.dim() else None


def _mask(tensor: Any, name: str, dice: torch.Generator) -> Any | None:
    if name in ("lowest", "highest"):
        return torch.full_like(tensor, name == "highest")
    if name in ("skewed", "extremes") and tensor.dim():
        alone = torch.full_like(tensor, name == "extremes")
        place = torch.randint(0, tensor.shape[-1], (*tensor.shape[:-1], 1), generator=dice)
        return alone.scatter_(-1, place, name == "skewed")
    return torch.rand(tensor.shape, generator=dice) < 0.5 if name == "shuffled" else None


def _pick(count: int, dice: torch.Generator) -> int:
    return int(torch.randint(0, count, (), generator=dice))


def with_special_values(tensor: Any, dice: torch.Generator) -> Any:
    """A few infinities of both signs and NaN among the tensor's own values."""
    changed = tensor.clone(memory_format=torch.contiguous_format)
    flat = changed.view(-1)
    places = torch.randint(0, flat.numel(), (6,), generator=dice)
    flat[places] = torch.tensor([float("inf"), float("-inf"), float("nan")] * 2).to(flat.dtype)
    return changed
