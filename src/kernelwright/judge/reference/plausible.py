"""Whether an answer looks like torch's own at a glance: received outputs and torch's in, yes or no out.

A full check costs fp64 runs, so it is made of few calls; lies are large (stale, zeros, uninitialised memory, a block left out), and a
glance at every call finds them. Who fails it is checked in full: a glance accuses nobody.
"""

from __future__ import annotations

from typing import Any

import torch

from kernelwright.core.task import tree
from kernelwright.judge.reference.numerics import real, unit

APART = 2.0**-10
"""Of an element and of the whole's size, that a plausible fp32 result may be off."""
APART_LOW = 16
"""Roundings of a dtype of 16 bits that one may be off."""
MOVED, FEW = 0.001, 4


def plausible(received: Any, own: list[tuple[str, Any]]) -> bool:
    """Same structure, and numbers that are near torch's own."""
    mine = [leaf for _, leaf in tree.leaves(received, "output") if isinstance(leaf, torch.Tensor)]
    theirs = [leaf for _, leaf in own]
    return len(mine) == len(theirs) and all(_near(*both) for both in zip(mine, theirs, strict=True))


def _near(mine: Any, own: Any) -> bool:
    if mine.shape != own.shape or mine.dtype != own.dtype:
        return False
    if torch.equal(mine, own):
        return True
    mine, own = real(mine), real(own)
    if not own.is_floating_point():
        return bool(int((mine != own).sum()) <= FEW + MOVED * own.numel())
    share = max(APART, APART_LOW * unit(own.dtype))
    mine, own = mine.double(), own.double()
    finite = torch.isfinite(own)
    size = float(own[finite].square().mean().sqrt()) if bool(finite.any()) else 0.0
    off = torch.where(finite, (mine - own).abs(), 0.0)
    near = (off <= share * (own.abs() + size)) | ~finite
    return bool(near.all()) and bool((torch.isfinite(mine) == finite).all())
