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

import contextlib
import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

RELATIVE = 64
"""Units in the last place that a single fp32 element may be off: 7.6e-6, a 64th of what half precision does (4.9e-4)."""
SCALED = 8
SAFETY = 8
SAFETY_LOW = 4
LONGEST_RUN = 1 << 16
"""Nobody may claim the drift of a longer running sum: beyond it, a single fp32 accumulator is itself the bug."""
NEAR = 8
"""Units in the last place from torch's own result at which an fp32 element is right without a further look."""
NARROW_LINE = 8
"""A line of fewer elements says nothing about scale."""
FEW = 32
"""A magnitude class with fewer elements borrows from its neighbours."""

SAMPLE = 1 << 18
"""Elements from which the error level of a magnitude class is taken."""
PIECE = 1 << 17
"""Elements that are compared at a time: a megabyte per fp64 temporary."""
LONG_SLICE = 4096
WIDENED = 1 << 24
"""Elements that are widened to fp64 at a time where cache does not matter."""
BINADES = 1080
"""More powers of two than fp64 has, on either side of 1."""

Piece = tuple[slice, ...]


def unit(dtype: Any) -> float:
    """The distance from 1 to the next number of this dtype."""
    return float(torch.finfo(dtype).eps)


def accumulation_unit(dtype: Any) -> float:
    """Rounding of the accumulator an honest kernel uses: at least fp32, whatever is stored."""
    return min(unit(dtype), unit(torch.float32))


def drift(dtype: Any, reach: int) -> float:
    """Relative error of one running sum over `reach` terms: half a unit at a time, adding up like a random walk."""
    return float(0.5 * accumulation_unit(dtype) * max(reach, 1) ** 0.5)


def effective_reach(terms: int, *, constant: bool = False) -> int:
    """The length to reckon with. On constant data the roundings of a running sum all go one way: they add up, not their
    squares."""
    return min(terms, LONGEST_RUN // 16) ** 2 if constant else min(terms, LONGEST_RUN)


@dataclass(frozen=True)
class Difference:
    """The places of one output where a received tensor is not acceptable, and the worst of them against its bound."""

    wrong: Any
    worst_error: float = 0.0
    bound: float = 0.0

    @cached_property
    def count(self) -> int:
        """How many places are wrong."""
        return int(torch.count_nonzero(self.wrong))


class Yardstick:
    """The bound for one output of one trial. Most honest kernels need only the cheap terms, so the costly ones (torch's own
    error pooled, fp64 runs under noise) are added level by level, while something is still beyond; the last level decides.
    Works piece by piece in cache: an output of 16 million elements is compared in a fraction of a second."""

    def __init__(
        self, native: Any, wide: Any, reach: int, noisy: Callable[[], list[Any]], *, lender: Yardstick | None = None
    ) -> None:
        """`noisy` gives fp64 outputs under noise of relative size `drift` / 2; it is called only when it matters. A `lender`
        made from a sample of the same task gives its error levels to a yardstick that has no truth but torch's own result."""
        self.dtype = native.real.dtype if native.is_complex() else native.dtype
        self.own, self.truth = real(native), real(wide)
        self.low = unit(self.dtype) > 1e-5
        self._noisy = noisy
        self._lender = lender
        self._levels: dict[int, Level] = {}
        self._scale: Lines | None = None
        self._ordinary = all(bool(torch.isfinite(tensor.sum())) for tensor in (self.own, self.truth))
        info = torch.finfo(self.dtype)
        subnormal = self.low and self.dtype != torch.bfloat16
        self._smallest = 1.5 * float(info.smallest_normal * info.eps if subnormal else info.smallest_normal)
        self._share = (1.5 if self.low else RELATIVE) * unit(self.dtype) + 4 * drift(self.dtype, reach)

    def judge(self, received: Any, enough: int | None = None) -> Difference:
        """Hold a received tensor of the right shape and dtype against the truth. NaN and infinity must be where the
        reference has them; where only torch's own arithmetic overflowed, the finite truth is as good. Stops early when more
        than `enough` places are wrong."""
        with one_thread():
            return self._judged(real(received), enough)

    def _judged(self, got: Any, enough: int | None) -> Difference:
        wrong = torch.zeros(got.shape, dtype=torch.bool)
        worst, limit, level, found = 0.0, 0.0, 0, 0
        for piece in pieces(got.shape):
            if self._near(got[piece], self.own[piece]):
                continue
            own, truth, mine = self.own[piece].double(), self.truth[piece].double(), got[piece].double()
            error = (mine - truth).abs_()
            bound = self._bound(piece, truth, level)
            bad = ~(error <= bound)  # NaN is never within a bound
            if not self._ordinary:
                bad &= ~self._rightly_odd(mine, own, truth)
            while bool(bad.any()) and level < 2:
                level += 1
                bound += self._level(level).at(piece, truth)
                bad &= ~(error <= bound)
            if bool(bad.any()):
                wrong[piece] = bad
                found += int(torch.count_nonzero(bad))
                error = torch.where(bad, error.nan_to_num_(torch.inf), -1.0)
                place = int(error.argmax())
                if float(error.flatten()[place]) >= worst:
                    worst, limit = float(error.flatten()[place]), float(bound.expand(error.shape).flatten()[place])
                if enough is not None and found > enough:
                    break
        return Difference(wrong, worst, limit)

    def _near(self, mine: Any, own: Any) -> bool:
        """Whether all of a piece is torch's own result, or next to it: then nothing has to be widened."""
        if self.low:
            return bool(torch.equal(mine, own))
        return bool(((mine - own).abs_() <= own.abs().mul_(NEAR * unit(self.dtype))).all())

    def bound(self) -> Any:
        """The whole bound of the last level as one tensor; for tests and tables, `judge` never needs it."""
        result = torch.empty(self.truth.shape, dtype=torch.float64)
        for piece in pieces(result.shape):
            result[piece] = self._bound(piece, self.truth[piece].double(), 2)
        return result

    def _bound(self, piece: Piece, truth: Any, level: int) -> Any:
        size = truth.abs() if self._ordinary else torch.where(torch.isfinite(truth), truth, 0.0).abs_()
        bound = size.mul_(self._share).add_(self._smallest)
        bound += SCALED * accumulation_unit(self.dtype) * self._scales().at(piece)
        for number in range(1, level + 1):
            bound += self._level(number).at(piece, truth)
        return bound

    def _scales(self) -> Lines:
        if self._scale is None:
            self._scale = Lines(self.truth, smallest=True)
        return self._scale

    def _level(self, level: int) -> Level:
        if self._lender is not None and level not in self._levels:
            self._levels[level] = self._lender._level(level).lent(self._scales())
        if level not in self._levels:
            others = [self.own] if level == 1 else [real(item) for item in self._noisy()]
            self._levels[level] = Level(self.truth, others, self._scales(), SAFETY_LOW if self.low else SAFETY)
        return self._levels[level]

    @staticmethod
    def _rightly_odd(got: Any, own: Any, truth: Any) -> Any:
        """NaN and infinity where the reference has the same."""
        odd = ~(torch.isfinite(own) & torch.isfinite(truth))
        return odd & (_same(got, own) | _same(got, truth))


class Lines:
    """Root mean squares along every axis. For one element, `at` gives the smallest (its scale: a tiny row in a large
    tensor keeps its own) or the largest (an error level) of the lines through it."""

    def __init__(self, values: Any, *, smallest: bool) -> None:
        self.combine = torch.minimum if smallest else torch.maximum
        values = values if bool(torch.isfinite(values.sum())) else torch.where(torch.isfinite(values), values, 0.0)
        self.lines = [_line(values, dim) for dim, size in enumerate(values.shape) if size >= NARROW_LINE]
        if not self.lines and smallest and values.numel():
            mean = torch.linalg.vector_norm(values, dtype=torch.float64) / values.numel() ** 0.5
            self.lines = [mean.reshape((1,) * values.dim())]
        self.dim = values.dim()

    def at(self, piece: Piece) -> Any:
        """For the elements of a piece, ready to broadcast."""
        result: Any = 0.0
        for number, line in enumerate(self.lines):
            part = line[tuple(cut if line.shape[dim] > 1 else slice(None) for dim, cut in enumerate(piece))]
            result = part if number == 0 else self.combine(result, part)
        return result


class Level:
    """How far off the reference's other runs are around each element: at the element, on its lines, and at all elements of
    about its magnitude; times a safety factor."""

    def __init__(self, truth: Any, others: list[Any], scales: Lines, safety: float) -> None:
        self.truth, self.others, self.scales, self.safety = truth, others, scales, safety
        self.worst_line = 0.0
        self.table = _by_magnitude(self._sample(), self.others_sample())
        # Relative to the scale: the error of large rows must not be lent to tiny ones through a common column.
        scale = scales.at((slice(None),) * truth.dim())
        self.lines = [Lines((other - truth) / scale, smallest=False) for other in others]

    def lent(self, scales: Lines) -> Level:
        """The same level for another tensor of the same kind, by magnitude and worst line only, and doubled: that tensor is
        compared with torch's own result, which is off by about as much."""
        other = copy.copy(self)
        other.others, other.lines, other.scales, other.safety = [], [], scales, 2 * self.safety
        values = [float(line.max()) for lines in self.lines for line in lines.lines if line.numel()]
        other.worst_line = max(values, default=0.0)
        return other

    def at(self, piece: Piece, truth: Any) -> Any:
        """The term for the elements of a piece."""
        level = self.table.index_select(0, _exponent(truth).reshape(-1)).reshape(truth.shape)
        for other, lines in zip(self.others, self.lines, strict=True):
            off = (other[piece].double() - truth).abs_()
            level = torch.maximum(level, torch.where(torch.isfinite(off), off, 0.0))
            if lines.lines:
                level = torch.maximum(level, lines.at(piece) * self.scales.at(piece))
        if self.worst_line:
            level = torch.maximum(level, self.scales.at(piece) * self.worst_line)
        return level.mul_(self.safety)

    def _sample(self) -> Any:
        return sample(self.truth)

    def others_sample(self) -> Any:
        """The largest error among the runs at the sampled elements; what is not finite in either says nothing."""
        truth = self._sample()
        worst = torch.zeros_like(truth)
        for other in self.others:
            off = (sample(other) - truth).abs()
            worst = torch.maximum(worst, torch.where(torch.isfinite(off), off, 0.0))
        return worst


def real(tensor: Any) -> Any:
    """Complex numbers as pairs; anything else as it is. Pieces are widened one by one."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def sample(tensor: Any) -> Any:
    """About `SAMPLE` elements in fp64, evenly spread."""
    flat = tensor.reshape(-1)
    step = max(1, flat.numel() // SAMPLE)
    step += step > 1 and step % 2 == 0  # an even step would walk along one column of most shapes
    return flat[::step].double()


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread. Pieces that stay in cache gain little from a second one, and on a busy machine its barriers cost far
    more than the work: 16 million elements took 24 s on two threads beside ten other processes, and 1.8 s on one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def pieces(shape: Any, size: int = PIECE) -> Iterator[Piece]:
    """Cuts along the longest axis into parts of about `size` elements, by default such that stay in cache."""
    if 0 in shape:
        return
    longest = max(range(len(shape)), key=lambda dim: int(shape[dim]), default=-1)
    if longest < 0:
        yield ()
        return
    step = max(1, size * shape[longest] // math.prod(shape))
    for start in range(0, shape[longest], step):
        yield tuple(slice(start, start + step) if dim == longest else slice(None) for dim in range(len(shape)))


def compare_exact(received: Any, native: Any, wide: Any | None) -> Difference:
    """Integers and booleans: equal to torch's answer, or to the fp64 reference's where rounding decides (a nearly tied
    argmax)."""
    wrong = received != native
    if wide is not None and wide.dtype == native.dtype:
        wrong &= received != wide
    if native.dtype == torch.bool or not bool(wrong.any()):
        return Difference(wrong, float(wrong.any()), 0.0)
    return Difference(wrong, float((received.double() - native.double()).abs()[wrong].max()), 0.0)


def _line(values: Any, dim: int) -> Any:
    """Root mean squares along one axis, part by part: torch would copy the whole into fp64 first."""
    count, parts = values.shape[dim], list(pieces(values.shape, WIDENED))
    norms = [_norm(values[part], dim) for part in parts]
    cut = next((axis for axis, one in enumerate(parts[0]) if one != slice(None)), 0)
    norm = torch.cat(norms, cut)
    if cut == dim:
        norm = torch.linalg.vector_norm(norm, dim=dim, keepdim=True)
    return norm.div_(count**0.5)


def _norm(values: Any, dim: int) -> Any:
    """The norm along one axis in fp64. Slice after slice where these are long: torch's own walks across them, ten times slower."""
    if math.prod(values.shape[dim + 1 :]) < LONG_SLICE:
        return torch.linalg.vector_norm(values, dim=dim, keepdim=True, dtype=torch.float64)
    first, *rest = (part.double() for part in values.unbind(dim))
    total = first.square()
    for part in rest:
        total.addcmul_(part, part)
    return total.sqrt_().unsqueeze(dim)


def _exponent(values: Any) -> Any:
    """The binade of each element as a row of the table; zero (and what is not finite) is row 0."""
    exponent = torch.frexp(values)[1].clamp_(1 - BINADES, BINADES).add_(BINADES)
    return exponent.masked_fill_((values == 0) | ~torch.isfinite(values), 0)


def _by_magnitude(truth: Any, error: Any) -> Any:
    """Root mean square of the errors within a binade and its neighbours, wider where there are few elements."""
    exponent = _exponent(truth)
    count = torch.bincount(exponent, minlength=2 * BINADES + 1).double()
    total = torch.bincount(exponent, weights=error * error, minlength=2 * BINADES + 1)
    level = (total / count.clamp(min=1)).sqrt()  # zeros are a class of their own
    running_count, running_total = count[1:].cumsum(0), total[1:].cumsum(0)
    places = torch.arange(len(running_count))
    done = torch.zeros(len(places), dtype=torch.bool)
    width = 1
    while not bool(done.all()):
        high, low = (places + width).clamp(max=len(places) - 1), places - width - 1
        inside = running_count[high] - torch.where(low >= 0, running_count[low.clamp(min=0)], 0.0)
        summed = running_total[high] - torch.where(low >= 0, running_total[low.clamp(min=0)], 0.0)
        fresh = ~done & ((inside >= FEW) | (width > 2 * BINADES))
        level[1:][fresh] = (summed.clamp(min=0) / inside.clamp(min=1)).sqrt()[fresh]
        done |= fresh
        width *= 2
    return level


def _same(left: Any, right: Any) -> Any:
    return (left == right) | (left.isnan() & right.isnan())
