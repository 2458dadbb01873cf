"""Memory of the interpreter, watched: what a launch may touch, and what it may not count on.

A GPU reads and writes beyond a tensor without complaint, and a masked element of a load without `other=` holds anything. Here an
access outside all tensors of the launch raises with the name of the argument it belongs to, and such elements are NaN (the least
integer for integers): a mask that was forgotten shows at once, on every run. Triton places barriers for shared memory, not for global
memory: what a program has stored and then loads through other threads raises, too, unless a `tl.debug_barrier` is in between.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

Range = tuple[int, int, str]
INTERPRETER = "interpreter.py"
MOST_STORES = 64
"""Of a program since its last barrier that are remembered."""


class OutOfBounds(IndexError):
    """A kernel touched memory that belongs to no tensor it was given."""


class Race(RuntimeError):
    """A program loads what other threads of it have just stored, with no barrier in between."""


class Memory:
    """The tensors of the launch that runs just now. `starts` and `ends` are sorted by address; `trusting` leaves accesses
    unchecked, for kernels that read pointers from memory."""

    def __init__(self) -> None:
        self.starts: Any = np.zeros(0, np.uint64)
        self.ends: Any = self.starts
        self.names: list[str] = []
        self.trusting = False
        self.stored: list[tuple[int, int, Any, Any]] = []
        """What the program has stored since its last barrier: lowest and highest address, all addresses, those that count."""

    def barrier(self) -> None:
        """Everything before it is seen by all threads; so it is when another program begins (programs that share data use atomics,
        whose order the interpreter cannot judge)."""
        self.stored.clear()

    def keep(self, addresses: Any, mask: Any) -> None:
        """A store has been made."""
        active = _active(addresses, mask)
        if active.size:
            self.stored = [*self.stored[1 - MOST_STORES :], (int(active.min()), int(active.max()), addresses, active)]

    def unseen(self, addresses: Any, mask: Any) -> None:
        """Raise when a load reads what other threads have stored. Each element of a tile is one thread's business, in the same order
        for stores and loads of one tile of pointers: so the same tile of pointers is the same threads."""
        if not self.stored:
            return
        active = _active(addresses, mask)
        if not active.size:
            return
        low, high = int(active.min()), int(active.max())
        for first, last, tile, before in self.stored:
            if last < low or high < first or (tile.shape == addresses.shape and np.array_equal(tile, addresses)):
                continue
            if np.isin(active, before).any():
                line = _kernel_line()
                raise Race(
                    f"{f'line {line} of the kernel file' if line else 'the kernel'} reads what other threads of the program have just "
                    "stored in global memory: a tl.debug_barrier() is missing in between (race)"
                )

    def open(self, ranges: list[Range], *, trusting: bool) -> None:
        """A launch begins; ranges are (first byte, end, argument)."""
        merged: list[tuple[int, int, list[str]]] = []
        for start, end, name in sorted(ranges):
            if merged and start < merged[-1][1]:  # views of one tensor
                first, last, names = merged[-1]
                merged[-1] = (first, max(last, end), [*names, name])
            else:
                merged.append((start, end, [name]))
        self.starts = np.array([start for start, _, _ in merged], np.uint64)
        self.ends = np.array([end for _, end, _ in merged], np.uint64)
        self.names = [" and ".join(dict.fromkeys(names)) for _, _, names in merged]
        self.trusting = trusting
        self.stored.clear()

    def check(self, what: str, addresses: Any, mask: Any, width: int) -> None:
        """Raise unless every active address lies in one of the tensors."""
        if self.trusting:
            return
        addresses = _active(addresses, mask)
        if addresses.size == 0:
            return
        low, high = addresses.min(), addresses.max()
        place = int(np.searchsorted(self.starts, low, side="right")) - 1
        if place >= 0 and int(high) + width <= int(self.ends[place]):
            return
        places = np.searchsorted(self.starts, addresses, side="right").astype(np.int64) - 1
        inside = (places >= 0) & (addresses + np.uint64(width) <= self.ends[np.maximum(places, 0)])
        if not inside.all():
            self._complain(what, int(addresses[~inside].reshape(-1)[0]), width)

    def _complain(self, what: str, address: int, width: int) -> None:
        line = _kernel_line()
        where = f"line {line} of the kernel file" if line else "the kernel"
        if not self.names:
            raise OutOfBounds(f"{where} {what} memory, but the launch was given no tensor")
        distances = [
            (int(start) - address if address < int(start) else address + width - int(end), name, address < int(start))
            for start, end, name in zip(self.starts, self.ends, self.names, strict=True)
        ]
        distance, name, before = min(distances)
        side = "before the begin" if before else "beyond the end"
        raise OutOfBounds(f"{where} {what} {distance} bytes {side} of the tensor {name}: a mask or a stride is wrong")


def _active(addresses: Any, mask: Any) -> Any:
    """The addresses that are not masked out."""
    mask = mask.astype(bool)  # the interpreter also holds masks as integers, which would index
    if mask.all():
        return addresses
    shape = np.broadcast_shapes(addresses.shape, mask.shape)
    return np.broadcast_to(addresses, shape)[np.broadcast_to(mask, shape)]


def _kernel_line() -> int:
    """The line of the kernel file that is being interpreted."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.endswith("kernel.py"):
            return frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return 0


def undefined(shape: Any, kind: Any, *, brain: bool) -> Any:
    """What masked elements hold when nobody says: the worst that they could."""
    if brain:
        return np.full(shape, 0x7FC0, np.uint16)
    if kind.kind == "f":
        return np.full(shape, np.nan, kind)
    if kind.kind == "b":
        return np.ones(shape, kind)
    return np.full(shape, np.iinfo(kind).min if kind.kind == "i" else np.iinfo(kind).max // 2 + 1, kind)


def teach(interpreter: Any, tl: Any, memory: Memory) -> None:
    """Have all loads, stores and atomics of the interpreter checked."""
    builder, handle = interpreter.InterpreterBuilder, interpreter.TensorHandle
    plain_load, plain_store = builder.create_masked_load, builder.create_masked_store
    plain_rmw, plain_cas = builder.create_atomic_rmw, builder.create_atomic_cas

    def width(pointers: Any) -> int:
        return max(1, int(pointers.get_element_ty().primitive_bitwidth) // 8)

    def load(self: Any, pointers: Any, mask: Any, other: Any, cache_policy: Any, is_volatile: Any) -> Any:
        memory.check("reads", pointers.data, mask.data, width(pointers))
        memory.unseen(pointers.data, mask.data)
        if other is None and not mask.data.all():
            kind = pointers.get_element_ty()
            array = undefined(pointers.data.shape, interpreter._get_np_dtype(kind), brain=kind == tl.bfloat16)
            other = handle(array, kind)
        return plain_load(self, pointers, mask, other, cache_policy, is_volatile)

    def store(self: Any, pointers: Any, value: Any, mask: Any, cache_policy: Any) -> Any:
        memory.check("writes", pointers.data, mask.data, width(pointers))
        memory.keep(pointers.data, mask.data)
        return plain_store(self, pointers, value, mask, cache_policy)

    def rmw(self: Any, op: Any, pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
        memory.check("updates", pointers.data, mask.data, width(pointers))
        memory.barrier()
        return plain_rmw(self, op, pointers, value, mask, *rest)

    def cas(self: Any, pointers: Any, *rest: Any) -> Any:
        memory.check("updates", pointers.data, np.ones(pointers.data.shape, bool), width(pointers))
        memory.barrier()
        return plain_cas(self, pointers, *rest)

    def barrier(self: Any, *args: Any, **kwargs: Any) -> None:
        memory.barrier()

    def begin(self: Any, *place: Any) -> Any:
        memory.barrier()
        return plain_begin(self, *place)

    plain_begin = builder.set_grid_idx
    builder.create_barrier, builder.set_grid_idx = barrier, begin
    builder.create_masked_load, builder.create_masked_store = load, store
    builder.create_atomic_rmw, builder.create_atomic_cas = rmw, cas
