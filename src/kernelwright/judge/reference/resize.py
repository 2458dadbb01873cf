"""The task's own inputs at sizes that nobody listed: a draw, a `Dynamic` and sizes in, inputs of the same kinds out.

What a tensor holds says how it grows. Reals follow the law of what was drawn (fresh_data.Law), else they are drawn again from the
drawn values; sorted rows stay sorted, rows of probabilities stay that. Whole numbers keep their role (adversary.role): permutations and
positions cover the new size, offsets keep their ends, lengths and indices that fill a size which varies follow it (`follow`), else stay
as drawn (`keep`), or small enough for every size (`least`): which of the three the reference accepts is tried by `sizes.py`. Masks that
are triangles or prefixes stay that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch

from kernelwright.core.task import tree
from kernelwright.core.task.dynamic import Dynamic
from kernelwright.judge.reference.adversary import role
from kernelwright.judge.reference.inputs import kind
from kernelwright.judge.timing.fresh_data import Law

Fit = Literal["follow", "keep", "least"]
FITS: tuple[Fit, ...] = ("follow", "keep", "least")

JITTER = 2**-7
"""By how much a value that is drawn again may be smaller than it was: equal values would be ties that the task does not have."""


def resized(inputs: list[Any], dynamic: Dynamic, sizes: Mapping[str, int], seed: int, fit: Fit) -> list[Any]:
    """Inputs at these sizes, of the same dtypes and kinds as those that were drawn."""
    given = tree.tensors(inputs)
    shapes = iter(dynamic.shapes([tensor.shape for tensor in given], sizes))
    old = dynamic.read([tensor.shape for tensor in given])
    growth = [(old[name], sizes[name]) for name in old]
    dice = torch.Generator().manual_seed(seed)

    def at_shape(tensor: Any) -> Any:
        shape = next(shapes)
        if tensor.numel() == 0 or tensor.dim() == 0:
            return torch.zeros(shape, dtype=tensor.dtype) if tuple(tensor.shape) != shape else tensor
        return _Resize(tensor, shape, growth, dice, fit).made().to(tensor.dtype)

    return [tree.transform(item, at_shape) for item in inputs]


class _Resize:
    """One tensor on its way to another shape."""

    def __init__(self, tensor: Any, shape: tuple[int, ...], growth: list[tuple[int, int]], dice: torch.Generator, fit: Fit):
        self.tensor, self.shape, self.growth, self.dice, self.fit = tensor, shape, growth, dice, fit

    def made(self) -> Any:
        what = kind(self.tensor)
        if what in ("real", "probability"):
            if tuple(self.tensor.shape) == self.shape:
                return self.tensor
            values = self._reals()
            if what == "probability":
                return torch.softmax(values.float(), -1)
            lines = self.tensor.reshape(-1, self.tensor.shape[-1])[:64]
            ascending = lines.shape[1] > 2 and bool((lines[:, 1:] >= lines[:, :-1]).all())
            return values.sort(dim=-1).values if ascending else values
        drawn_mask = self._mask()
        if drawn_mask is not None:
            return drawn_mask
        if self.tensor.is_complex() or not bool(torch.isfinite(self.tensor.double().sum())):
            return self._picked()
        return self._whole()

    def _reals(self) -> Any:
        law = Law.of(self.tensor) if self.tensor.dtype == torch.float32 else None
        if law is not None:
            fresh = torch.empty(self.shape, dtype=torch.float32)
            law.fill(fresh, int(torch.randint(1 << 62, (), generator=self.dice)))
            return fresh
        smaller = torch.rand(self.shape, generator=self.dice).mul_(-JITTER).add_(1)
        return self._picked_anywhere().double().mul_(smaller).to(self.tensor.dtype)

    def _picked_anywhere(self) -> Any:
        """Each element any of those that were drawn."""
        flat = self.tensor.reshape(-1)
        return flat[torch.randint(0, flat.numel(), self.shape, generator=self.dice)]

    def _picked(self) -> Any:
        """Along the axes that change, lines of the drawn tensor in any order: what lies along the others stays together."""
        made = self.tensor
        for axis, size in enumerate(self.shape):
            if size != made.shape[axis]:
                made = made.index_select(axis, torch.randint(0, made.shape[axis], (size,), generator=self.dice))
        return made.clone()

    def _mask(self) -> Any | None:
        """A triangle or a prefix of each line, as truth values or as zeros and minus infinities; None where it is neither."""
        tensor, shape = self.tensor, self.shape
        if tuple(tensor.shape) == shape or tensor.dtype not in (torch.bool, *FLOATS):
            return None
        low = tensor.min()
        held = tensor if tensor.dtype == torch.bool else tensor > low
        if bool(held.all()) or not bool(held.any()):
            return torch.full(shape, bool(held.all())) if tensor.dtype == torch.bool else None
        if tensor.dtype != torch.bool and (torch.unique(tensor).numel() != 2):
            return None
        if tensor.dim() >= 2:
            for diagonal in (0, -1, 1):
                for triangle in (torch.tril, torch.triu):
                    if bool((held == triangle(torch.ones(tensor.shape[-2:], dtype=torch.bool), diagonal)).all()):
                        return self._as_values(triangle(torch.ones(shape, dtype=torch.bool), diagonal), low)
        if bool((held[..., 1:] <= held[..., :-1]).all()) and tensor.shape[-1] > 1:
            share = held.double().mean(-1).reshape(-1)
            least = 1 if bool(held[..., 0].all()) else 0
            picked = share[torch.randint(0, share.numel(), shape[:-1], generator=self.dice)]
            lengths = picked.mul(shape[-1]).round().long().clamp(min(least, shape[-1]), shape[-1])
            return self._as_values(torch.arange(shape[-1]) < lengths[..., None], low)
        if tensor.dtype == torch.bool and self.fit == "least":
            return torch.ones(shape, dtype=torch.bool)
        return self._picked_anywhere() if tensor.dtype == torch.bool else None

    def _as_values(self, held: Any, low: Any) -> Any:
        if self.tensor.dtype == torch.bool:
            return held
        return torch.where(held, self.tensor.max(), low)

    def _whole(self) -> Any:
        """Whole numbers in their role."""
        shape, tensor = self.shape, self.tensor
        what = role(tensor)
        if what == "permutation":
            if tuple(tensor.shape) == shape:
                return tensor
            ascending = bool((tensor[..., 1:] > tensor[..., :-1]).all())
            keys = torch.arange(shape[-1]).expand(shape) if ascending else torch.rand(shape, generator=self.dice)
            return keys.argsort(dim=-1)
        values = tensor if tuple(tensor.shape) == shape else self._picked_anywhere()
        if what == "offsets":
            return self._offsets()
        top, limit = int(tensor.max()), self._limit(int(tensor.max()))
        if limit >= top or limit < 0:
            grown = values if limit <= top else self._spread(values, top, limit)
        elif self.fit == "follow":
            grown = self._spread(values, top, limit)
        else:
            grown = values.remainder(limit + 1)
        return grown.clamp(min=min(int(tensor.min()), limit)) if limit >= 0 else grown

    def _spread(self, values: Any, top: int, limit: int) -> Any:
        """Values of `0 … top` over `0 … limit`, in the same order, every one of these possible."""
        within = torch.rand(values.shape, generator=self.dice, dtype=torch.float64)
        first = int(self.tensor.min())
        grown = (values.double() - first + within) * ((limit + 1 - first) / (top + 1 - first)) + first
        return torch.where(values < 0, values, grown.floor().clamp(max=limit).to(values.dtype))

    def _offsets(self) -> Any:
        """Ascending numbers from the drawn first to the drawn last one, as far as that still is an end."""
        first, last = int(self.tensor.min()), int(self.tensor.max())
        end = self._limit(last)
        end = last if end < 0 else end
        steps = torch.rand(self.shape, generator=self.dice, dtype=torch.float64).sort(dim=-1).values
        grown = (first + steps * (end - first)).round()
        if self.shape[-1] > 0:
            grown[..., 0] = first
        if self.shape[-1] > 1 and bool((self.tensor[..., -1] == last).all()):
            grown[..., -1] = end
        return grown

    def _limit(self, top: int) -> int:
        """The largest number that may stand there now."""
        if self.fit == "least":
            return min(top, *(new - 1 for _, new in self.growth)) if self.growth else top
        if self.fit == "keep":
            return top
        # What fills a size that varies goes along with it: lengths and ends are equal to it, indices just below.
        ends = [new for old, new in self.growth if top == old]
        if ends:
            return ends[0]
        near = sorted((old, new) for old, new in self.growth if top < old <= 1.25 * (top + 1) + 2)
        return near[0][1] - 1 if near else top


FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
