"""Independent data for every timed call: the task's own draw and a secret seed in, sets of inputs out.

A kernel that answers from memory (by pointer, shape, checksum, or by rows that it has seen, whatever was done to them since) must be
wrong on every call. So each set is a draw of its own. Where the task's `get_inputs` takes too long for that, its plain floating-point
tensors are filled in place instead: chunk by chunk, each from its own counter (the chunk's number and the call's seed), on all
threads, with the law that the task's own values have. What has structure that such a law does not know (integers, masks, sorted or
normalised rows, triangles) is left to the task. Inputs that are the same under every seed are rescaled in pieces at least. Runs in the
referee, never in the candidate's process.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch

from kernelwright.core.task import tree as trees
from kernelwright.judge.reference import inputs as drawing
from kernelwright.judge.reference.numerics import sample
from kernelwright.workers import bundle

BLOCK_SECONDS = 0.08
"""What the task's own function may take to draw all sets of a block."""
CHUNK = 1 << 20
PIECES = 8
POSITIONS = 1024
UNIFORM_KURTOSIS, NORMAL_KURTOSIS = (1.7, 1.9), (2.8, 3.2)
ENOUGH = 4096
"""Elements from which the shape of a law can be seen."""

if TYPE_CHECKING:
    from kernelwright.judge.reference.rows import Rows

Draw = Callable[[int], list[Any]]


@dataclass(frozen=True)
class Law:
    """How the elements of one tensor are distributed: independent of each other, uniform or normal."""

    uniform: bool
    first: float
    second: float
    """The ends of a uniform law; mean and deviation of a normal one."""

    @classmethod
    def of(cls, tensor: Any) -> Law | None:
        """The law of a drawn tensor; None where it has more structure than independent elements have."""
        if not tensor.is_contiguous() or tensor.numel() < ENOUGH or drawing.kind(tensor) != "real":
            return None
        values = sample(tensor)
        mean, deviation = float(values.mean()), float(values.std())
        if deviation == 0 or _has_structure(tensor):
            return None
        centred = (values - mean) / deviation
        skew, kurtosis = float(centred.pow(3).mean()), float(centred.pow(4).mean())
        if abs(skew) > 0.1:
            return None
        if UNIFORM_KURTOSIS[0] < kurtosis < UNIFORM_KURTOSIS[1]:
            return cls(True, float(values.min()), float(values.max()))
        return cls(False, mean, deviation) if NORMAL_KURTOSIS[0] < kurtosis < NORMAL_KURTOSIS[1] else None

    def fill(self, tensor: Any, seed: int) -> None:
        """New values in place; the same seed gives the same values, whatever the number of threads."""
        flat = tensor.view(-1)

        def chunk(number: int) -> None:
            dice = torch.Generator().manual_seed(random.Random(f"{seed} {number}").getrandbits(62))
            part = flat[number * CHUNK : (number + 1) * CHUNK]
            if self.uniform:
                part.uniform_(self.first, self.second, generator=dice)
            else:
                part.normal_(self.first, self.second, generator=dice)

        with ThreadPoolExecutor(max(1, torch.get_num_threads())) as pool:
            list(pool.map(chunk, range(-(-flat.numel() // CHUNK))))


class FreshData:
    """The timed inputs of one task."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._seconds: float | None = None
        self._template: list[Any] = []
        self._laws: list[Law] | None = None
        self._constant: set[int] | None = None

    def packed(self, calls: int, seed: int) -> bundle.Packed:
        """Inputs for so many calls, independent of each other and of all that came before; large ones are made where they travel."""
        dice = random.Random(seed)
        seeds = [dice.getrandbits(62) for _ in range(calls)]
        if self._seconds is None:
            started = time.perf_counter()
            first = self._draw(seeds[0])
            self.learn(first, time.perf_counter() - started)
        assert self._seconds is not None
        if self._laws is None or self._seconds * calls < BLOCK_SECONDS:
            return bundle.pack([self._varied(self._draw(one), one) for one in seeds])

        def fill(tensors: list[Any]) -> None:
            for place, tensor in enumerate(tensors):
                call, which = divmod(place, len(self._laws or []))
                (self._laws or [])[which].fill(tensor, seeds[call] + which)

        return bundle.filled([self._template] * calls, fill)

    def block(self, rows: Rows, seed: int) -> list[Any]:
        """A few rows as the task would draw them; what carries no rows is whole."""
        if self._laws is None:
            start = random.Random(seed).randrange(rows.batch - rows.block + 1)
            return [trees.transform(item, torch.clone) for item in rows.part(self._draw(seed), start, start + rows.block)]
        fresh = [trees.transform(item, lambda part: torch.empty(part.shape, dtype=part.dtype))
                 for item in rows.part(self._template, 0, rows.block)]  # fmt: skip
        for place, (tensor, law) in enumerate(zip(bundle.tensors(fresh), self._laws, strict=True)):
            law.fill(tensor, seed + place)
        return fresh

    def learn(self, first: list[Any], seconds: float) -> None:
        """From a draw, and how long it took: whether there is a law to fill tensors by."""
        self._seconds = seconds
        tensors = bundle.tensors(first)
        laws = [Law.of(tensor) for tensor in tensors] if seconds > BLOCK_SECONDS / 64 else [None]
        if all(law is not None for law in laws) and tensors:
            self._laws = [law for law in laws if law is not None]
            self._template = [trees.transform(item, lambda tensor: torch.empty_like(tensor, device="meta")) for item in first]

    def told(self) -> list[Any] | None:
        """What was learnt of inputs that are nothing but contiguous tensors with a law, as data that can be kept."""
        if self._laws is None or not all(isinstance(item, torch.Tensor) for item in self._template):
            return None
        shapes = [[list(item.shape), str(item.dtype).removeprefix("torch.")] for item in self._template]
        return [self._seconds, [[law.uniform, law.first, law.second] for law in self._laws], shapes]

    def recall(self, told: list[Any]) -> None:
        """Learn from what was `told`, without a draw."""
        self._seconds, laws, shapes = told
        self._laws = [Law(*law) for law in laws]
        self._template = [torch.empty(shape, dtype=getattr(torch, dtype), device="meta") for shape, dtype in shapes]

    def _find_constant(self, seed: int) -> set[int]:
        """Which inputs do not depend on the seed."""
        tensors, again = bundle.tensors(self._draw(seed)), bundle.tensors(self._draw(seed + 1))
        return {
            place
            for place, (one, other) in enumerate(zip(tensors, again, strict=False))
            if _can_rescale(one) and one.shape == other.shape and torch.equal(one, other)
        }

    def _varied(self, drawn: list[Any], seed: int) -> list[Any]:
        if self._constant is None:
            self._constant = self._find_constant(seed)
        if not self._constant:
            return drawn
        copy: list[Any] = bundle.clone(drawn)
        dice = random.Random(seed)
        for place, tensor in enumerate(bundle.tensors(copy)):
            if place in self._constant:
                rescale(tensor, dice)
        return copy


def rescale(tensor: Any, dice: random.Random) -> None:
    """Change values in place and keep what was legal: factors in (0, 1), piece by piece at random borders and once more at random
    positions. Works on the block of memory under the tensor, so that expanded and gapped tensors need no special case."""
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


def _can_rescale(tensor: Any) -> bool:
    """Floating point of 16 bits or more (8-bit floats have no arithmetic in torch)."""
    return bool(tensor.dtype.is_floating_point and tensor.dtype.itemsize >= 2 and tensor.numel() > 0)


def _has_structure(tensor: Any) -> bool:
    """Whether rows tell that elements were not drawn one by one: planted zeros or repetitions, order, a norm, symmetry, another scale."""
    rows = tensor.reshape(-1, tensor.shape[-1] if tensor.dim() else 1)[:64, :4096].double()
    if rows.shape[1] < 16 or rows.shape[0] < 2:
        rows = tensor.reshape(-1)[:ENOUGH].reshape(-1, 64).double()
    if bool((rows == 0).double().mean() > 0.001) or bool((rows[:, 1:] >= rows[:, :-1]).all(dim=1).any()):
        return True
    if bool((rows[1:] == rows[:-1]).double().mean() > 0.05):
        return True
    norms, deviations = rows.norm(dim=1), rows.std(dim=1)
    spread = 1.0 / (2 * rows.shape[1]) ** 0.5  # of the deviation of independent elements, relative
    if float(norms.std() / norms.mean()) < 0.05 * spread or float(deviations.max() / deviations.min()) > 1 + 12 * spread:
        return True
    square = tensor.dim() >= 2 and tensor.shape[-1] == tensor.shape[-2]
    corner = tensor[..., :64, :64].reshape(-1, min(64, tensor.shape[-1]), min(64, tensor.shape[-1]))[0] if square else None
    return corner is not None and bool(torch.equal(corner, corner.T))
