"""Memory of an interpreted tile program: buffers of a block, tensors of the caller, and per-thread scalars.

A load or store takes one index per axis, each a number or an array over lanes (parallel iterations, threads), and a mask of the
lanes that take part. TileLang guards every access to global memory that it cannot prove to be inside: such a load gives zero, such a
store is dropped, so it is here. Nobody guards shared memory and registers: an index outside of them is an error with its place.
What was never written holds NaN (the least integer for integers), so that who counts on zeros is wrong on every run.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

Tile = Any
Kind = Any
"""NumPy's arrays and dtypes; its stubs are not followed here."""
_SPECIAL = {
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3": ml_dtypes.float8_e4m3fn,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float8_e8m0fnu": ml_dtypes.float8_e8m0fnu,
    "bool": np.bool_,
}


class OutOfBounds(IndexError):
    """A tile program touched what lies outside of a buffer."""


class Unknown(NotImplementedError):
    """Something that the interpreter does not know."""


def numpy_dtype(name: str) -> Kind:
    """TVM's dtype as NumPy's."""
    if name in _SPECIAL:
        return np.dtype(_SPECIAL[name])
    try:
        return np.dtype(name)
    except TypeError:
        raise Unknown(f"the interpreter does not know the dtype {name}") from None


def floating(kind: Kind) -> bool:
    """Also the short floats that NumPy itself does not know."""
    return bool(kind.kind == "f" or kind.name.startswith(("bfloat", "float8")))


def poison(kind: Kind) -> Any:
    """The worst that uninitialised memory could hold."""
    if floating(kind):
        return kind.type(np.nan)
    if kind.kind == "b":
        return kind.type(True)
    return kind.type(np.iinfo(kind).min if kind.kind == "i" else np.iinfo(kind).max)


def cast(value: Any, kind: Kind) -> Any:
    """A number or an array in another dtype; floats to integers are cut towards zero."""
    if isinstance(value, np.ndarray):
        return value if value.dtype == kind else value.astype(kind)
    return np.asarray(value).astype(kind)[()]


class Array:
    """A buffer that all threads of a block see: global, shared, or a fragment as a whole."""

    def __init__(self, name: str, data: Tile, *, guarded: bool) -> None:
        self.name, self.data, self.guarded = name, data, guarded

    @classmethod
    def fresh(cls, name: str, shape: Sequence[int], kind: Kind) -> Array:
        return cls(name, np.full(tuple(shape), poison(kind), kind), guarded=False)

    def view(self, name: str, shape: Sequence[int], kind: Kind) -> Array:
        """The same memory under another shape or dtype."""
        flat = self.data.reshape(-1)
        if flat.size and not np.shares_memory(flat, self.data):
            raise Unknown(f"{name} is a view of a tensor that is not contiguous")
        return Array(name, flat.view(kind).reshape(tuple(shape)), guarded=self.guarded)

    def _inside(self, index: Sequence[Any], mask: Any, what: str) -> Any:
        """Lanes whose index lies inside (None: all), after those outside were complained about."""
        good: Any = None
        for axis, (at, extent) in enumerate(zip(index, self.data.shape, strict=True)):
            if isinstance(at, np.ndarray):
                if at.size == 0 or (at.min() >= 0 and at.max() < extent):
                    continue
                here: Any = (at >= 0) & (at < extent)
            elif 0 <= at < extent:
                continue
            else:
                here = False
            if not self.guarded:
                wrong = ~np.asarray(here) if mask is None else mask & ~np.asarray(here)
                if np.any(wrong):
                    self._complain(index, axis, wrong, what)
            good = here if good is None else good & here
        return good

    def _complain(self, index: Sequence[Any], axis: int, wrong: Any, what: str) -> None:
        shape = np.broadcast_shapes(wrong.shape, *(np.shape(at) for at in index))
        place = np.unravel_index(int(np.argmax(np.broadcast_to(wrong, shape))), shape) if shape else ()
        at = [int(np.broadcast_to(np.asarray(each), shape)[place]) for each in index]
        raise OutOfBounds(
            f"{what} {self.name}[{', '.join(map(str, at))}], which has the shape {list(self.data.shape)}: "
            f"index {at[axis]} is outside of axis {axis}"
        )

    def load(self, index: Sequence[Any], mask: Any) -> Any:
        good = self._inside(index, mask, "reads")
        if good is None and mask is None:
            return self.data[tuple(index)]
        lanes = good if mask is None else mask if good is None else good & mask
        safe = tuple(np.where(lanes, at, 0) if isinstance(at, np.ndarray) or np.ndim(lanes) else at for at in index)
        if not np.ndim(lanes) and not lanes:
            return np.zeros(np.broadcast_shapes(*(np.shape(at) for at in index)), self.data.dtype)[()]
        return np.where(lanes, self.data[safe], self.data.dtype.type(0))

    def store(self, index: Sequence[Any], value: Any, mask: Any) -> None:
        value = cast(value, self.data.dtype)
        place = self._places(index, mask, "writes", value)
        if place is not None:
            self.data[place[0]] = place[1]

    def _places(self, index: Sequence[Any], mask: Any, what: str, value: Any) -> tuple[tuple[Any, ...], Any] | None:
        """Index arrays and values of the lanes that take part, or None when there are none."""
        good = self._inside(index, mask, what)
        if good is None and mask is None and all(not isinstance(at, np.ndarray) for at in index):
            # Every lane writes the same place: the last one stays.
            return tuple(index), value.reshape(-1)[-1] if isinstance(value, np.ndarray) else value
        lanes = True if good is None and mask is None else good if mask is None else mask if good is None else good & mask
        shape = np.broadcast_shapes(np.shape(value), np.shape(lanes), *(np.shape(at) for at in index))
        if lanes is True:
            return tuple(np.broadcast_to(at, shape) for at in index), np.broadcast_to(value, shape)
        chosen = np.broadcast_to(lanes, shape)
        if not chosen.any():
            return None
        return tuple(np.broadcast_to(at, shape)[chosen] for at in index), np.broadcast_to(value, shape)[chosen]

    def update(self, function: Any, index: Sequence[Any], value: Any, mask: Any) -> None:
        """An atomic update: every lane counts."""
        value = np.asarray(cast(value, self.data.dtype))
        shape = np.broadcast_shapes(np.shape(value), *(np.shape(at) for at in index))
        if mask is not None:
            shape = np.broadcast_shapes(shape, np.shape(mask))
        place = self._places(
            [np.broadcast_to(np.asarray(at), shape) for at in index], mask, "updates", np.broadcast_to(value, shape)
        )
        if place is None:
            return
        if self.data.dtype.kind in "fiub":
            function.at(self.data, place[0], place[1])
            return
        for *at, one in zip(*(np.ravel(part) for part in place[0]), np.ravel(place[1]), strict=True):
            self.data[tuple(at)] = function(self.data[tuple(at)], one)

    def region(self, start: Sequence[int], extents: Sequence[int]) -> Tile:
        """The elements of a box; outside of a guarded buffer they are zero."""
        box = tuple(slice(at, at + extent) for at, extent in zip(start, extents, strict=True))
        if all(at >= 0 and at + e <= n for at, e, n in zip(start, extents, self.data.shape, strict=True)):
            return self.data[box]
        self._box(start, extents, "reads")
        found = np.zeros(tuple(extents), self.data.dtype)
        inner, outer = self._overlap(start, extents)
        found[inner] = self.data[outer]
        return found

    def put(self, start: Sequence[int], extents: Sequence[int], value: Any) -> None:
        """Writes a box; what lies outside of a guarded buffer is dropped."""
        value = np.broadcast_to(np.asarray(cast(value, self.data.dtype)), tuple(extents))
        if not all(at >= 0 and at + e <= n for at, e, n in zip(start, extents, self.data.shape, strict=True)):
            self._box(start, extents, "writes")
        inner, outer = self._overlap(start, extents)
        self.data[outer] = value[inner]

    def _box(self, start: Sequence[int], extents: Sequence[int], what: str) -> None:
        if self.guarded:
            return
        last = [at + extent - 1 for at, extent in zip(start, extents, strict=True)]
        raise OutOfBounds(f"{what} {self.name} from {list(start)} to {last}, which has the shape {list(self.data.shape)}")

    def _overlap(self, start: Sequence[int], extents: Sequence[int]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        inner, outer = [], []
        for at, extent, size in zip(start, extents, self.data.shape, strict=True):
            low, high = max(at, 0), max(min(at + extent, size), max(at, 0))
            outer.append(slice(low, high))
            inner.append(slice(low - at, high - at))
        return tuple(inner), tuple(outer)


class Cells:
    """A buffer that every thread has its own of (`local`, `local.var`): each element is a number or an array over lanes."""

    def __init__(self, name: str, shape: Sequence[int], kind: Kind) -> None:
        self.name, self.shape, self.kind = name, tuple(shape), kind
        self.cells: list[Any] = [poison(kind)] * int(np.prod(self.shape, dtype=np.int64))

    def _flat(self, index: Sequence[Any], what: str) -> Any:
        flat: Any = 0
        for axis, (at, extent) in enumerate(zip(index, self.shape, strict=True)):
            if not (np.min(at) >= 0 and np.max(at) < extent):
                raise OutOfBounds(f"{what} {self.name}, which has the shape {list(self.shape)}, at {np.max(at)} of axis {axis}")
            flat = flat * extent + at
        return flat

    def load(self, index: Sequence[Any], mask: Any) -> Any:
        flat = self._flat(index, "reads")
        if not isinstance(flat, np.ndarray):
            return self.cells[int(flat)]
        found: Any = poison(self.kind)
        for number in np.unique(flat):
            found = np.where(flat == number, self.cells[int(number)], found)
        return found

    def store(self, index: Sequence[Any], value: Any, mask: Any) -> None:
        value = cast(value, self.kind)
        flat = self._flat(index, "writes")
        for number in np.unique(flat) if isinstance(flat, np.ndarray) else (flat,):
            chosen = flat == number if isinstance(flat, np.ndarray) else None
            lanes = mask if chosen is None else chosen if mask is None else chosen & mask
            old = self.cells[int(number)]
            self.cells[int(number)] = value if lanes is None else np.where(lanes, value, old)

    def update(self, function: Any, index: Sequence[Any], value: Any, mask: Any) -> None:
        self.store(index, function(self.load(index, mask), value), mask)


def of_tensor(tensor: Any, kind: Kind) -> Tile:
    """A torch tensor's memory as an array, without a call into torch that somebody watches."""
    shape, strides, width = tuple(tensor.shape), tensor.stride(), tensor.element_size()
    if not tensor.numel():
        return np.zeros(shape, kind)
    span = (1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))) * width
    raw = (ctypes.c_char * span).from_address(tensor.data_ptr())
    flat = np.frombuffer(raw, kind)
    return np.lib.stride_tricks.as_strided(flat, shape, [stride * width for stride in strides])
