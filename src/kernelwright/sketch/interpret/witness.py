"""What went into one element: a sketch, its tensors and a place in an output in; the iteration that stored it and the tiles it had, out.

For whoever lowers a right sketch to a wrong kernel: the values to be found at each step on the way to the element that differs. The
interpreter calls `on_store` at every store; the last one that covers the element counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import torch

from kernelwright.sketch import nodes
from kernelwright.sketch.interpret import storage

SHOWN = 4
"""Values of a tile that are shown where the element has no place of its own in it."""


class Witness:
    """Watches one element of one tensor while a sketch runs; `lines` tells what it saw, nothing if nobody stored it."""

    def __init__(self, sketch: nodes.Sketch, tensor: str, place: Sequence[int]) -> None:
        self.lines: tuple[str, ...] = ()
        self._tensor, self._place = tensor, tuple(place)
        # A view has the same elements in the same order as what it looks at.
        sources = {t.name: t.source for t in sketch.tensors if t.role == "view"}
        base = sources.get(tensor, tensor)
        self._watched = {base, *(name for name, source in sources.items() if source == base)}
        self._flat: int | None = None

    def begin(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """The tensors exist now: the place becomes a position in memory, if it lies inside at all."""
        shape = tensors[self._tensor].shape
        inside = len(shape) == len(self._place) and all(0 <= at < size for at, size in zip(self._place, shape, strict=True))
        if inside:
            self._flat = sum(at * prod(shape[axis + 1 :]) for axis, at in enumerate(self._place))

    def on_store(
        self,
        store: nodes.Store,
        tensor: torch.Tensor,
        places: Sequence[storage.Place],
        value: torch.Tensor,
        names: Mapping[str, torch.Tensor],
        variables: Mapping[str, int],
    ) -> None:
        """A store is about to happen: is it ours, and from what is it made?"""
        if store.tensor not in self._watched or self._flat is None:
            return
        positions, inside = storage.flat_positions(places, tensor.shape)
        found = ((positions == self._flat) & inside).nonzero()
        if not len(found):
            return
        at = tuple(found[-1].tolist())
        values = value.expand(positions.shape) if value.ndim <= positions.ndim else value
        where = ", ".join(f"{name} = {number}" for name, number in variables.items()) or "no loop"
        head = f"{self._tensor}[{', '.join(map(str, self._place))}] is stored by line {store.line} of the sketch at {where}:"
        stored = f"  stored: {_number(values[at])}" + (f" ({store.mode})" if store.mode != "set" else "")
        self.lines = (head, *(f"  {name}: {_seen(tile, at)}" for name, tile in names.items()), stored)


def _seen(tile: torch.Tensor, at: tuple[int, ...]) -> str:
    """A tile in one line: its value at the element's place where it has one, else its first values; and its range."""
    if not tile.numel():
        return "empty"
    if tile.ndim == 0:
        return _number(tile)
    mine = at[len(at) - tile.ndim :] if tile.ndim <= len(at) else None
    sizes = "x".join(map(str, tile.shape))
    if mine is not None and all(size in (1,) or place < size for place, size in zip(mine, tile.shape, strict=True)):
        place = tuple(0 if size == 1 else one for one, size in zip(mine, tile.shape, strict=True))
        head = f"[{', '.join(map(str, place))}] = {_number(tile[place])}"
    else:
        head = "begins " + ", ".join(_number(one) for one in tile.flatten()[:SHOWN])
    spread = tile.double() if tile.dtype != torch.bool else tile.int()
    return f"{head} of {sizes}, {_number(spread.min())} to {_number(spread.max())}"


def _number(value: torch.Tensor) -> str:
    plain = value.item()
    return f"{plain:.6g}" if isinstance(plain, float) else str(plain)
