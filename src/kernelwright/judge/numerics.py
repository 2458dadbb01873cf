"""How far a kernel's numbers may be from the truth: expected and received tensors in, an elementwise bound and the wrong
places out.

The truth is the reference in fp64. The bound of an element is a sum of terms that an honest kernel may need, and no more:

- `RELATIVE` roundings of the element itself (an exp or tanh of one's own, another order of operations);
- the same for the smallest line (row, column …) through the element, by root mean square: cancellation within an output;
- the drift of one running sum over the longest reduction of the task, `sqrt(reach)` roundings, capped;
- `SAFETY` times the error that torch itself makes, and the response of the fp64 reference to rounding-sized noise on its inputs
  and weights (its conditioning), both pooled over elements of the same magnitude and over lines: one element's luck proves
  nothing.

All are measured in units of the output's dtype, so fp16, bf16 or TF32 inside an fp32 task is thousands of units off. No term is
absolute: outputs of 1e-30 are held to the same standard as outputs of 1. Pure functions; `expect.py` makes the runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

RELATIVE = 64
"""Units in the last place that a single fp32 element may be off: 7.6e-6, a 64th of what half precision does (4.9e-4)."""
SCALED = 8
SAFETY = 8
SAFETY_LOW = 4
LONGEST_RUN = 1 << 16
"""Nobody may claim the drift of a longer running sum: beyond it, a single fp32 accumulator is itself the bug."""
NARROW_LINE = 8
"""A line of fewer elements says nothing about scale."""
FEW = 32
"""A magnitude class with fewer elements borrows from its neighbours."""

SAMPLE = 1 << 18
"""Elements from which the error level of a magnitude class is taken."""


def unit(dtype: Any) -> float:
    """The distance from 1 to the next number of this dtype."""
    return float(torch.finfo(dtype).eps)


def accumulation_unit(dtype: Any) -> float:
    """Rounding of the accumulator an honest kernel uses: at least fp32, whatever is stored."""
    return min(unit(dtype), unit(torch.float32))


def drift(dtype: Any, reach: int) -> float:
    """Relative error of one running sum over `reach` terms: half a unit at a time, adding up like a random walk."""
    return float(0.5 * accumulation_unit(dtype) * min(max(reach, 1), LONGEST_RUN) ** 0.5)


@dataclass(frozen=True)
class Difference:
    """The places of one output where a received tensor is not acceptable, with the error there."""

    wrong: Any
    error: Any
    bound: Any

    @property
    def count(self) -> int:
        return int(self.wrong.sum())


class Yardstick:
    """The bound for one output of one trial. Most honest kernels need only the cheap terms, so the costly ones (torch's own
    error pooled, fp64 runs under noise) are added stage by stage, while something is still beyond; the last stage decides."""

    def __init__(self, native: Any, wide: Any, reach: int, noisy: Callable[[], list[Any]]) -> None:
        """`noisy` gives fp64 outputs under noise of relative size `drift` / 2; it is called only when it matters."""
        self.dtype = native.real.dtype if native.is_complex() else native.dtype
        self.own, self.truth = real(native), real(wide)
        self.reach = reach
        self._noisy = noisy
        self._stages: list[Any] = []

    def bound(self, stage: int = 2) -> Any:
        """The elementwise bound (fp64) on |received − truth|, up to and with a stage."""
        while len(self._stages) <= stage:
            self._stages.append(self._cheap() if not self._stages else self._stages[-1] + self._measured(len(self._stages)))
        return self._stages[stage]

    def judge(self, received: Any) -> Difference:
        """Hold a received tensor of the right shape and dtype against the truth. NaN and infinity must be where the
        reference has them; where only torch's own arithmetic overflowed, the finite truth is as good."""
        got = real(received)
        error = (got - self.truth).abs()
        odd = ~(torch.isfinite(self.own) & torch.isfinite(self.truth))
        excused = odd & (_same(got, self.own) | _same(got, self.truth)) if bool(odd.any()) else None
        for stage in range(3):
            limit = self.bound(stage)
            good = error <= limit  # False for NaN
            if excused is not None:
                good |= excused
            if bool(good.all()):
                break
        return Difference(~good, torch.where(torch.isfinite(error), error, torch.inf), limit)

    def _cheap(self) -> Any:
        eps, low = unit(self.dtype), unit(self.dtype) > 1e-5
        info = torch.finfo(self.dtype)
        subnormal = low and self.dtype != torch.bfloat16
        smallest = 1.5 * float(info.smallest_normal * info.eps if subnormal else info.smallest_normal)
        truth = self.truth if bool(torch.isfinite(self.truth).all()) else self.truth.nan_to_num(0.0, 0.0, 0.0)
        share = (1.5 if low else RELATIVE) * eps + 4 * drift(self.dtype, self.reach)
        return truth.abs() * share + smallest + SCALED * accumulation_unit(self.dtype) * line_scale(truth)

    def _measured(self, stage: int) -> Any:
        finite = torch.isfinite(self.own) & torch.isfinite(self.truth)
        others = [self.own] if stage == 1 else [real(item) for item in self._noisy()]
        error = torch.zeros_like(self.truth)
        for other in others:
            error = torch.maximum(error, torch.where(finite & torch.isfinite(other), (other - self.truth).abs(), 0.0))
        size = torch.where(finite, self.truth, 0.0).abs()
        return (SAFETY_LOW if unit(self.dtype) > 1e-5 else SAFETY) * pooled(error, size)


def real(tensor: Any) -> Any:
    """The tensor as fp64; complex numbers as pairs."""
    return torch.view_as_real(tensor.to(torch.complex128)) if tensor.is_complex() else tensor.double()


def line_scale(values: Any) -> Any:
    """For each element the smallest root mean square among the lines through it, so a tiny row in a large tensor keeps its
    scale."""
    squares = values * values
    lines = [squares.mean(dim, keepdim=True) for dim, size in enumerate(values.shape) if size >= NARROW_LINE]
    if not lines:
        return squares.mean().sqrt().expand(values.shape) if values.numel() else squares
    smallest = lines[0]
    for line in lines[1:]:
        smallest = torch.minimum(smallest, line)
    return smallest.sqrt().expand(values.shape)


def pooled(error: Any, size: Any) -> Any:
    """The error level around each element: its own, that of its lines, and that of all elements of about its magnitude."""
    squares = error * error
    level = torch.maximum(error, _by_magnitude(squares, size))
    for dim, length in enumerate(error.shape):
        if length >= NARROW_LINE:
            level = torch.maximum(level, squares.mean(dim, keepdim=True).sqrt())
    return level


def _by_magnitude(squares: Any, size: Any) -> Any:
    """Root mean square of the errors within a binade and its neighbours, wider where there are few elements."""
    lowest = 1080
    exponents = torch.frexp(size)[1].clamp_(-lowest + 1, lowest).add_(lowest).masked_fill_(size == 0, 0).reshape(-1)
    step = max(1, exponents.numel() // SAMPLE)
    exponent, squares = exponents[::step].contiguous(), squares.reshape(-1)[::step].contiguous()
    count = torch.bincount(exponent, minlength=2 * lowest + 1).double()
    total = torch.bincount(exponent, weights=squares, minlength=2 * lowest + 1)
    level = (total / count.clamp(min=1)).sqrt()  # zeros are a class of their own
    running_count, running_total = count[1:].cumsum(0), total[1:].cumsum(0)
    places = torch.arange(len(running_count))
    done = torch.zeros(len(places), dtype=torch.bool)
    width = 1
    while not bool(done.all()) and width <= 2 * lowest:
        high, low = (places + width).clamp(max=len(places) - 1), places - width - 1
        inside = running_count[high] - torch.where(low >= 0, running_count[low.clamp(min=0)], 0.0)
        summed = running_total[high] - torch.where(low >= 0, running_total[low.clamp(min=0)], 0.0)
        fresh = ~done & ((inside >= FEW) | (width * 2 > 2 * lowest))
        level[1:][fresh] = (summed.clamp(min=0) / inside.clamp(min=1)).sqrt()[fresh]
        done |= fresh
        width *= 2
    return level.index_select(0, exponents).reshape(size.shape)


def compare_exact(received: Any, native: Any, wide: Any | None) -> Difference:
    """Integers and booleans: equal to torch's answer, or to the fp64 reference's where rounding decides (a nearly tied
    argmax)."""
    wrong = received != native
    if wide is not None and wide.dtype == native.dtype:
        wrong &= received != wide
    if native.dtype == torch.bool:
        return Difference(wrong, wrong.double(), torch.zeros_like(wrong, dtype=torch.float64))
    error = (received.double() - native.double()).abs()
    return Difference(wrong, error, torch.zeros_like(error))


def _same(left: Any, right: Any) -> Any:
    return (left == right) | (left.isnan() & right.isnan())
