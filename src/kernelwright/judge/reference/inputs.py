"""Other inputs of the same shapes: a draw of the task's own inputs in, the same inputs under another distribution or layout
out.

A kernel may be right only on the data the task file happens to draw: positive numbers, no ties, nothing large, contiguous
memory. What a tensor holds decides how far one may go: probability rows keep their kind, whole numbers and masks get structures of
their own (adversary.py) and stay within what was drawn, everything else gets all distributions; `trials.py` then drops those on which
the reference itself is not finite or not well conditioned.
"""

from __future__ import annotations

from typing import Any

import torch

from kernelwright.core.task import tree
from kernelwright.judge.reference import adversary
from kernelwright.judge.reference.adversary import Change, normal, spread
from kernelwright.judge.reference.numerics import sample


def _sparse(tensor: Any, dice: torch.Generator) -> Any:
    """One element in 64 stands out, so sums have few terms that count and precision lost on one hardly averages out. The
    rest is small but not constant: a running sum of equal terms would drift one way, in honest kernels too."""
    outstanding = torch.rand(tensor.shape, generator=dice).lt_(1 / 64)
    return normal(tensor, dice).mul_(outstanding.mul_(1 - 2**-6).add_(2**-6))


def _sorted(tensor: Any, dice: torch.Generator) -> Any:
    """Ascending along the last dimension. Positive: running sums of sorted values of both signs would cancel, and lose more
    digits than any honest kernel has to answer for."""
    values = normal(tensor, dice).abs_()
    return values.sort(dim=-1).values if tensor.dim() else values


DISTRIBUTIONS: dict[str, Change] = {
    "normal": normal,
    "sparse": _sparse,
    "outliers": adversary.FLOATS["outliers"],
    "clustered": adversary.FLOATS["clustered"],
    "large": lambda tensor, dice: normal(tensor, dice).mul_(64),
    "negative": lambda tensor, dice: normal(tensor, dice).abs_().neg_(),
    "shifted": lambda tensor, dice: normal(tensor, dice).add_(3 * spread(tensor)),
    "tiny": lambda tensor, dice: normal(tensor, dice).mul_(2**-12),
    "huge": lambda tensor, dice: normal(tensor, dice).mul_(2**31),
    "minute": lambda tensor, dice: normal(tensor, dice).mul_(2**-31),
    "ties": lambda tensor, dice: torch.randn(tensor.shape, generator=dice).mul_(2).round_().mul_(0.5),
    "sorted": _sorted,
    "zeros": lambda tensor, dice: torch.zeros(tensor.shape),
    "ones": lambda tensor, dice: torch.ones(tensor.shape),
    **{name: change for name, change in adversary.FLOATS.items() if name not in ("outliers", "clustered")},
}
"""In the order in which they are worth their time. Computed in place: inputs may be a good part of the machine's memory."""

TOUCHED = 48

WIDE_GAPS = 1 << 24
"""Elements up to which a slice of something larger is one of something twice as large; beyond, of something a little larger."""

ONE_WAY = ("zeros", "ones", "outliers")
"""Where the roundings of an honest running sum add up: all terms are equal, or so small beside a few that each is cut off alike."""
WHOLE_DTYPES = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)

POSITIVE = {"normal", "sparse", "large", "shifted", "tiny", "huge", "minute", "ties", "sorted", *adversary.FLOATS} - {
    "alternating"
}
"""Distributions that still say something when their values are made positive, for tasks that are not defined below zero."""


def kind(tensor: Any) -> str:
    """What a drawn input holds: `real`, or something whose kind must be kept (`whole`, `probability`, `integer`)."""
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.numel() == 0:
        return "integer"
    if tensor.is_complex() or not bool(torch.isfinite(tensor.sum())):
        return "whole"
    values = sample(tensor)
    if bool((values == values.round()).all()):
        return "whole"
    if tensor.dim() and tensor.shape[-1] > 1 and bool((values >= 0).all()):
        rows = tensor.reshape(-1, tensor.shape[-1])[:256].double()
        if bool(((rows.sum(-1) - 1).abs() < 1e-2).all()):
            return "probability"
    return "real"


def redistribute(
    inputs: list[Any], name: str, seed: int, *, positive: bool = False, only: int | None = None
) -> list[Any] | None:
    """The inputs under another distribution; None when it would change nothing. `only` restricts it to the i-th tensor."""
    if name in adversary.WHOLE:
        return _restructured(inputs, name, seed)
    change = DISTRIBUTIONS[name]
    dice = torch.Generator().manual_seed(seed)
    changed = [0, 0]

    def apply(tensor: Any) -> Any:
        changed[0] += 1
        what = kind(tensor)
        if what in ("integer", "whole") or (only is not None and only != changed[0] - 1):
            return tensor
        fresh = change(tensor, dice)
        if what == "probability":
            fresh = torch.softmax(fresh, -1)
        elif positive:
            fresh = fresh.abs_().add_(0.0 if name in ("sparse", "ties") else 2**-10)
        changed[1] += 1
        return fresh.to(tensor.dtype)

    result = [tree.transform(item, apply) for item in inputs]
    return result if changed[1] else None


def _restructured(inputs: list[Any], name: str, seed: int) -> list[Any] | None:
    """Integers, masks and whole floats under another structure."""
    dice = torch.Generator().manual_seed(seed)
    changed = [0]

    def apply(tensor: Any) -> Any:
        if not is_whole(tensor):
            return tensor
        other = adversary.restructure(tensor, name, dice)
        if other is None or torch.equal(other, tensor):
            return tensor
        changed[0] += 1
        return other

    result = [tree.transform(item, apply) for item in inputs]
    return result if changed[0] else None


def is_whole(tensor: Any) -> bool:
    """Whether a tensor holds integers, truth values, or floats that are whole numbers."""
    if tensor.numel() == 0 or tensor.is_complex() or tensor.layout is not torch.strided:
        return False
    if not tensor.is_floating_point():
        return tensor.dtype in WHOLE_DTYPES
    return kind(tensor) == "whole" and bool(torch.isfinite(tensor.sum()))


def special(inputs: list[Any], seed: int) -> list[Any]:
    """The inputs with a few infinities and NaN planted in the largest floating-point tensor."""
    dice = torch.Generator().manual_seed(seed)
    real = [tensor for tensor in tree.tensors(inputs) if kind(tensor) == "real"]
    largest = max(real, key=lambda tensor: int(tensor.numel()), default=None)
    return [
        tree.transform(item, lambda tensor: adversary.with_special_values(tensor, dice) if tensor is largest else tensor)
        for item in inputs
    ]


def touched(inputs: list[Any], seed: int) -> list[Any]:
    """The same inputs with a few dozen elements of each tensor replaced by other elements of it, so what was legal stays
    legal."""
    dice = torch.Generator().manual_seed(seed)

    def apply(tensor: Any) -> Any:
        if tensor.numel() < 2:
            return tensor
        changed = tensor.clone(memory_format=torch.contiguous_format)
        flat = changed.view(-1)
        count = min(TOUCHED, max(1, tensor.numel() // 16))
        quarter = tensor.numel() // 4  # both ends stay: a kernel may recognise inputs by their first or last elements
        to = torch.randint(quarter, tensor.numel() - quarter, (count,), generator=dice)
        flat[to] = flat[torch.randint(0, tensor.numel(), (count,), generator=dice)]
        return changed

    return [tree.transform(item, apply) for item in inputs]


def strided(inputs: list[Any], seed: int) -> list[Any] | None:
    """The same values in non-contiguous memory: transposed storage or a slice of something larger; None if nothing can
    change."""
    dice = torch.Generator().manual_seed(seed)
    changed = [0]

    def apply(tensor: Any) -> Any:
        if tensor.dim() == 0 or tensor.numel() < 2:
            return tensor
        changed[0] += 1
        if tensor.dim() > 1 and min(tensor.shape[-2:]) > 1 and torch.rand((), generator=dice) < 0.5:
            return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
        gap = tensor.shape[-1] if tensor.dim() == 1 or tensor.numel() < WIDE_GAPS else 0
        room = torch.zeros((*tensor.shape[:-1], tensor.shape[-1] + gap + 3), dtype=tensor.dtype)
        view = room[..., 1 : 1 + tensor.shape[-1]] if tensor.dim() > 1 else room[1 : 1 + 2 * tensor.shape[0] : 2]
        return view.copy_(tensor)

    result = [tree.transform(item, apply) for item in inputs]
    return result if changed[0] else None
