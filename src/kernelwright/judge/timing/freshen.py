"""Fresh data for every timed call: a tree of inputs and a secret seed in, a changed copy out.

A kernel that answers a timed call from memory (by pointer, shape, sampled checksum or content hash) must be wrong on it, and
the change must be cheap beside the call. So floating-point tensors are rescaled piecewise at random borders and changed once
more at random positions. Factors lie in (0, 1): signs, zeros and upper bounds of the values stay, so what was legal stays
legal. Integers, booleans and scalars are left as they are; for inputs that have no floating-point tensor the referee draws
anew instead. Runs in the referee, never in the candidate's process.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import torch

from kernelwright.workers import bundle

PIECES = 8
POSITIONS = 1024


def freshen(tree: Any, seed: int) -> Any:
    """A changed deep copy with the same structure, shapes, strides and dtypes; the same seed gives the same change."""
    copy = bundle.clone(tree)
    dice = random.Random(seed)
    for tensor in bundle.tensors(copy):
        if can_freshen(tensor):
            _rescale(tensor, dice)
    return copy


def can_freshen(tensor: Any) -> bool:
    """Whether this tensor's values may be rescaled: floating point of 16 bits or more (8-bit floats have no arithmetic in
    torch)."""
    return bool(tensor.dtype.is_floating_point and tensor.dtype.itemsize >= 2 and tensor.numel() > 0)


def changes_anything(tree: Any) -> bool:
    """Whether `freshen` has something to change; if not, fresh data needs a fresh draw."""
    return any(can_freshen(tensor) for tensor in bundle.tensors(tree))


def _rescale(tensor: Any, dice: random.Random) -> None:
    """Work on the block of memory under the tensor, so that expanded and gapped tensors need no special case."""
    span = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    flat = torch.as_strided(tensor, (span,), (1,), tensor.storage_offset())
    borders = sorted({0, span, *(dice.randrange(span) for _ in range(PIECES - 1))})
    for start, stop in pairwise(borders):
        flat[start:stop].mul_(dice.uniform(0.75, 0.999))
    count = min(POSITIONS, max(1, span // 4))
    generator = torch.Generator().manual_seed(dice.getrandbits(62))
    positions = torch.randint(0, span, (count,), generator=generator)
    factors = torch.empty(count, dtype=torch.float64).uniform_(0.4, 0.9, generator=generator)
    flat[positions] = flat[positions] * factors.to(flat.dtype)
