"""Choices that are as good as the reference's own: a native run in, for each of its index outputs what was chosen from.

`topk`, `sort`, `argmax` and their kin answer with places. Where the values at two places are equal in the task's own precision
(probabilities that underflow to zero, scores that round to the same number), either place is right, though fp64 can still tell them
apart. `Choices` records what such operators chose from; `tied` says which received indices point at a value that is equal, up to a
few roundings, to the one that the reference chose, at places that are distinct where the operator's are.

What is made of a choice (tokens that are kept, values that are gathered) is not an index any more. There `Retied` runs the reference
with another order among equals, wherever torch promises none: whatever it gives then is as right as what it gave first.
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

    def tied(self, received: Any, slack: Any = 0.0) -> Any | None:
        """Where a received index is as good as the reference's; None when this is not the choice that was received. `slack` is how
        far torch's own values may be off."""
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
        bound = torch.maximum(bound, torch.as_tensor(slack, dtype=torch.float64))
        finite = torch.isfinite(got) & torch.isfinite(want)  # an infinite value is equal or it is not
        good = legal & ((got == want) | (finite & ((got - want).abs() <= bound)) | (got.isnan() & want.isnan()))
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
        name = _picker(func, args)
        if name:
            dim = _dimension(func, args, kwargs)
            indices = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.dtype == torch.int64]
            if dim is not None and indices and args[0].dim():
                self.found.append(Choice(args[0], dim % args[0].dim(), indices[-1], name in ("topk", "sort", "argsort")))
            elif name in ("argmax", "argmin") and indices and args[0].dim():
                self.found.append(Choice(args[0].reshape(-1), 0, indices[-1].reshape(1), False))
        return result


class Retied(TorchDispatchMode):  # type: ignore[misc]
    """Lets operators that choose see their candidates in another order, so that equal ones change places. `kind` 0 keeps the order
    and sorts stably, 1 reverses it, every other number is a shuffle of its own. `ties` tells whether that could matter anywhere."""

    def __init__(self, kind: int) -> None:
        super().__init__()
        self._kind = kind
        self.ties = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = _picker(func, args)
        dim = _dimension(func, args, kwargs) if name else None
        if dim is None or not args[0].dim() or _stable(func, args, kwargs):
            return func(*args, **kwargs)
        source, dim = args[0], dim % args[0].dim()
        if source.shape[dim] < 2:
            return func(*args, **kwargs)
        ordered = source.sort(dim).values
        self.ties |= bool(
            (ordered.narrow(dim, 1, source.shape[dim] - 1) == ordered.narrow(dim, 0, source.shape[dim] - 1)).any()
        )
        if name == "sort" and self._kind == 0:
            return torch.sort(source, dim=dim, descending=_flag(func, args, kwargs, "descending"), stable=True)
        order = self._order(source.shape[dim])
        result = func(source.index_select(dim, order), *args[1:], **kwargs)
        back = [
            order[leaf] if isinstance(leaf, torch.Tensor) and leaf.dtype == torch.int64 else leaf
            for leaf in tree_leaves(result)
        ]
        if isinstance(result, torch.Tensor):
            return back[0]
        values = result[0] if source.dtype == torch.int64 else back[0]
        return type(result)((values, *back[1:])) if isinstance(result, tuple) else back

    def _order(self, count: int) -> Any:
        places = torch.arange(count)
        if self._kind < 2:
            return places.flip(0) if self._kind else places
        return places[torch.randperm(count, generator=torch.Generator().manual_seed(self._kind))]


RETIED = 8
"""Orders among equals that are tried: stable, reversed, and shuffles."""


def _picker(func: Any, args: Any) -> str:
    name = str(func._overloadpacket).removeprefix("aten.")
    return name if name in PICKERS and args and isinstance(args[0], torch.Tensor) else ""


def _flag(func: Any, args: Any, kwargs: Any, name: str) -> bool:
    for place, argument in enumerate(func._schema.arguments):
        if argument.name == name:
            return bool(kwargs.get(name, args[place] if place < len(args) else argument.default_value))
    return False


def _stable(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether torch promises an order among equals here."""
    return _flag(func, args, kwargs, "stable")


def _dimension(func: Any, args: Any, kwargs: Any) -> int | None:
    """The axis along which an operator chooses, by its schema; None for a choice from the whole tensor."""
    for place, argument in enumerate(func._schema.arguments):
        if argument.name == "dim":
            value = kwargs.get("dim", args[place] if place < len(args) else argument.default_value)
            return value if isinstance(value, int) else None
    return None
