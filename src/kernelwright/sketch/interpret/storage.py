"""Regions of tensors at work: what a Load reads and a Store writes, in torch.

In: a tensor and a region whose integers are known. Out: the tile (with `pad` outside), or the tensor changed in place. Regions
of spans and positions go through strided slices; regions with picks go through flat positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch

from kernelwright.core.errors import SketchError


@dataclass(frozen=True)
class Run:
    """One axis of a region with numbers in it: positions start, start + step, …; `kept` is False where the axis is dropped."""

    start: int
    extent: int
    step: int = 1
    kept: bool = True

    def inside(self, size: int) -> tuple[int, int]:
        """The half-open range of elements whose positions lie in 0 … size-1."""
        if self.step > 0:
            first, last = -(self.start // self.step), (size - 1 - self.start) // self.step
        else:
            first, last = -((self.start - size + 1) // self.step), self.start // -self.step
        low = min(max(first, 0), self.extent)
        return low, max(min(last + 1, self.extent), low)

    def window(self, size: int) -> tuple[slice, bool]:
        """The slice of the tensor's axis with those elements, and whether it is in reverse order."""
        low, high = self.inside(size)
        if high <= low:
            return slice(0, 0), False
        first, last = self.start + low * self.step, self.start + (high - 1) * self.step
        return (slice(first, last + 1, self.step), False) if self.step > 0 else (slice(last, first + 1, -self.step), True)


Place: TypeAlias = Run | torch.Tensor
"""An axis of a region: a run of positions, or picked positions (an integer tensor)."""


def region_shape(places: Sequence[Place]) -> list[int]:
    """The shape of the tile that a region covers."""
    picked = torch.broadcast_shapes(*(p.shape for p in places if isinstance(p, torch.Tensor)))
    return [*picked, *(p.extent for p in places if isinstance(p, Run) and p.kept)]


def flat_positions(places: Sequence[Place], shape: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """For each element of the region its position in the row-major tensor, and whether it lies inside."""
    full = region_shape(places)
    spans = sum(isinstance(p, Run) and p.kept for p in places)
    flat, valid = torch.zeros(full, dtype=torch.int64), torch.ones(full, dtype=torch.bool)
    seen = 0
    stride = 1
    strides = []
    for size in reversed(shape):
        strides.append(stride)
        stride *= size
    for place, size, step in zip(places, shape, reversed(strides), strict=True):
        if isinstance(place, torch.Tensor):
            at = place.to(torch.int64).reshape([*place.shape, *([1] * spans)])
        else:
            seen += place.kept
            at = place.start + torch.arange(place.extent) * place.step
            at = at.reshape([place.extent] + [1] * (spans - seen) if place.kept else [])
        valid = valid & (at >= 0) & (at < size)
        flat = flat + at * step
    return flat.broadcast_to(full), valid.broadcast_to(full)


def _outside(name: str, places: Sequence[Place], shape: Sequence[int], line: int) -> SketchError:
    for axis, (place, size) in enumerate(zip(places, shape, strict=True)):
        if isinstance(place, torch.Tensor):
            if place.numel() and (int(place.min()) < 0 or int(place.max()) >= size):
                return SketchError(
                    f"load of {name} picks positions {int(place.min())} … {int(place.max())} on axis {axis} of extent {size}",
                    line=line,
                )
        elif place.inside(size) != (0, place.extent):
            last = place.start + (place.extent - 1) * place.step
            return SketchError(
                f"load of {name} reads positions {place.start} … {last} on axis {axis} of extent {size}",
                line=line,
                hint="give the load a pad",
            )
    return SketchError(f"load of {name} leaves the tensor", line=line)


def load(name: str, tensor: torch.Tensor, places: Sequence[Place], pad: float | int | bool | None, line: int) -> torch.Tensor:
    """The elements of a region. May share memory with the tensor."""
    shape = list(tensor.shape)
    if any(isinstance(place, torch.Tensor) for place in places):
        flat, valid = flat_positions(places, shape)
        if bool(valid.all()):
            return tensor.reshape(-1)[flat]
        if pad is None:
            raise _outside(name, places, shape, line)
        tile = torch.full(flat.shape, pad, dtype=tensor.dtype)
        tile[valid] = tensor.reshape(-1)[flat[valid]]
        return tile
    runs = [place for place in places if isinstance(place, Run)]
    ranges = [run.inside(size) for run, size in zip(runs, shape, strict=True)]
    part = _window(tensor, runs)
    if any(ranges[axis] != (0, run.extent) for axis, run in enumerate(runs)):
        if pad is None:
            raise _outside(name, places, shape, line)
        whole = torch.full([run.extent for run in runs], pad, dtype=tensor.dtype)
        whole[tuple(slice(*bounds) for bounds in ranges)] = part
        part = whole
    return part.reshape(region_shape(places))


def _window(tensor: torch.Tensor, runs: Sequence[Run]) -> torch.Tensor:
    windows = [run.window(size) for run, size in zip(runs, tensor.shape, strict=True)]
    part = tensor[tuple(window for window, _ in windows)]
    flipped = [axis for axis, (_, backwards) in enumerate(windows) if backwards]
    return torch.flip(part, flipped) if flipped else part


_COMBINE: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "set": lambda _old, new: new,
    "add": torch.add,
    "max": torch.maximum,
    "min": torch.minimum,
}


def store(name: str, tensor: torch.Tensor, places: Sequence[Place], value: torch.Tensor, mode: str, line: int) -> None:
    """Writes a tile into a region; elements outside the tensor are dropped."""
    full = region_shape(places)
    try:
        value = value.broadcast_to(full)
    except RuntimeError:
        raise SketchError(f"store to {name}: a tile {list(value.shape)} does not fit the region {full}", line=line) from None
    if any(isinstance(place, torch.Tensor) for place in places):
        flat, valid = flat_positions(places, list(tensor.shape))
        _scatter(tensor.view(-1), flat[valid], value[valid], mode)
        return
    runs = [place for place in places if isinstance(place, Run)]
    windows = [run.window(size) for run, size in zip(runs, tensor.shape, strict=True)]
    kept = value.reshape([run.extent for run in runs])
    kept = kept[tuple(slice(*run.inside(size)) for run, size in zip(runs, tensor.shape, strict=True))]
    flipped = [axis for axis, (_, backwards) in enumerate(windows) if backwards]
    target = tensor[tuple(window for window, _ in windows)]
    target.copy_(_COMBINE[mode](target, torch.flip(kept, flipped) if flipped else kept))


def _scatter(flat: torch.Tensor, positions: torch.Tensor, values: torch.Tensor, mode: str) -> None:
    if mode == "set":
        flat[positions] = values
    elif mode == "add":
        flat.index_put_((positions,), values, accumulate=True)
    else:
        flat.scatter_reduce_(0, positions, values, "amax" if mode == "max" else "amin", include_self=True)


def poisoned(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Fresh memory with values nobody would compute, so that reading what was never written shows."""
    if dtype.is_floating_point:
        return torch.full(list(shape), float("nan"), dtype=dtype)
    if dtype == torch.bool:
        return torch.ones(list(shape), dtype=dtype)
    return torch.full(list(shape), torch.iinfo(dtype).max - 41, dtype=dtype)
