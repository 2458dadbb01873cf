"""Errors with a habit: received numbers and the truth in, a sentence out when they are all within their bounds and yet made cheaply.

The bound of one element must leave room for an unlucky one. Over thousands of elements luck has no direction and no pattern: who is
off the same way everywhere has cut digits off (a truncated store, one step of Newton too few), and who never uses the last bits of the
mantissa has computed with fewer. Honest roundings have neither habit, nor has torch's own result, with which both are compared.
"""

from __future__ import annotations

from typing import Any

import torch

from kernelwright.judge.reference.numerics import drift, sample, unit

ENOUGH, DISTINCT = 4096, 1024
"""Elements, and different values among them, from which a habit can be told from luck."""
UNITS, UNITS_LOW = 8.0, 0.15
"""Roundings that the middle element may be off in one direction; of a dtype of 16 bits, whose only rounding is the store."""
LOW_BITS = 3
UNUSED, USED = 0.9, 0.5
"""Share of results whose last bits are zero: of a kernel that computes with fewer, and of an ordinary result at most."""

_INTEGERS = {torch.float32: torch.int32, torch.float64: torch.int64}


def habit(got: Any, own: Any, truth: Any, reach: int) -> str:
    """What is systematic about a received tensor, in words; empty when nothing is."""
    if got.is_complex() or got.numel() < ENOUGH:
        return ""
    mine, theirs, right = sample(got), sample(own), sample(truth)
    sound = torch.isfinite(mine) & torch.isfinite(right) & torch.isfinite(theirs) & (right != 0)
    mine, theirs, right = mine[sound], theirs[sound], right[sound]
    if mine.numel() < ENOUGH or torch.unique(right[:: max(1, right.numel() // ENOUGH)]).numel() < DISTINCT:
        return ""
    one = unit(got.dtype)
    allowed = (UNITS_LOW if one > 1e-5 else UNITS) + drift(got.dtype, reach) / one
    off, usual = (float(((side - right) / right).median()) / one for side in (mine, theirs))
    if abs(off) > allowed + 4 * abs(usual):
        return (
            f"its numbers are systematically too {'large' if off > 0 else 'small'}, by {abs(off):.2g} roundings in the middle"
        )
    if got.dtype in _INTEGERS and _idle(mine, got.dtype) > UNUSED and _idle(theirs, got.dtype) < USED:
        return f"the last {LOW_BITS} bits of its numbers are never used: it computes with less precision than {_name(got)}"
    return ""


def _idle(values: Any, dtype: Any) -> float:
    """The share of values whose last bits are zero."""
    bits = values.to(dtype).view(_INTEGERS[dtype])
    return float(((bits & ((1 << LOW_BITS) - 1)) == 0).double().mean())


def _name(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")
