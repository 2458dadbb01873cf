"""Indices that are as good as the reference's own: a native run in, for each of its index outputs what was chosen from.

`topk`, `sort`, `argmax` and their kin answer with places. Where the values at two places are equal in the task's own precision
(probabilities that underflow to zero, scores that round to the same number), either place is right, though fp64 can still tell them
apart. `Choices` records what such operators chose from; `tied` says which received indices point at a value that is equal, up to a
few roundings, to the one that the reference chose, at places that are distinct where the operator's are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

PICKERS = ("topk", "sort", "argmax", "argmin", "max", "min", "kthvalue", "median", "argsort", "msort", "cummax", "cummin")
ROUNDINGS = 16
"""Units in the last place by which an honest kernel's values may differ from torch's before it chooses."""


@dataclass(frozen=True)
class Choice:
    """One operator's indices along `dim` of `source`; `distinct` where no place may be chosen twice (topk, sort)."""

    source: Any
    dim: int
    indices: Any
    distinct: bool

    def tied(self, received: Any) -> Any | None:
        """Where a received index is as good as the reference's; None when this is not the choice that was received."""
        source, dim = self.source.detach(), self.dim
        if source.dim() == 0 or received.dtype != torch.int64:
            return None
        mine, own = received.reshape(self.indices.shape), self.indices
        if own.dim() < source.dim():
            mine, own = mine.unsqueeze(dim), own.unsqueeze(dim)
        length = source.shape[dim]
        legal = (mine >= 0) & (mine < length)
        got, want = (source.gather(dim, places.clamp(0, length - 1)).double() for places in (mine, own))
        size = torch.maximum(got.abs(), want.abs())
        info = torch.finfo(source.dtype) if source.is_floating_point() else None
        bound = size * (ROUNDINGS * float(info.eps)) + float(info.smallest_normal) if info else torch.zeros_like(size)
        good = legal & ((got == want) | ((got - want).abs() <= bound))
        if self.distinct and mine.shape[dim] > 1:
            ordered = mine.sort(dim).values
            twice = (ordered.narrow(dim, 1, mine.shape[dim] - 1) == ordered.narrow(dim, 0, mine.shape[dim] - 1)).any(
                dim, keepdim=True
            )
            good &= ~twice
        return good.reshape(received.shape)


class Choices(TorchDispatchMode):  # type: ignore[misc]
    """Records every choice that is made while it is active."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Choice] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = str(func._overloadpacket).removeprefix("aten.")
        if name in PICKERS and args and isinstance(args[0], torch.Tensor):
            dim = _dimension(func, args, kwargs)
            indices = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.dtype == torch.int64]
            if dim is not None and indices and args[0].dim():
                self.found.append(Choice(args[0], dim % args[0].dim(), indices[-1], name in ("topk", "sort", "argsort")))
        return result


def _dimension(func: Any, args: Any, kwargs: Any) -> int | None:
    """The axis along which an operator chooses, by its schema; None for a choice from the whole tensor."""
    for place, argument in enumerate(func._schema.arguments):
        if argument.name == "dim":
            value = kwargs.get("dim", args[place] if place < len(args) else argument.default_value)
            return value if isinstance(value, int) else None
    return None
