"""Memory of the interpreter, watched: what a launch may touch, and what it may not count on.

A GPU reads and writes beyond a tensor without complaint, and a masked element of a load without `other=` holds anything. Here an
access outside all tensors of the launch raises with the name of the argument it belongs to, and such elements are NaN (the least
integer for integers): a mask that was forgotten shows at once, on every run.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

Range = tuple[int, int, str]
INTERPRETER = "interpreter.py"


class OutOfBounds(IndexError):
    """A kernel touched memory that belongs to no tensor it was given."""


class Memory:
    """The tensors of the launch that runs just now. `starts` and `ends` are sorted by address; `trusting` leaves accesses
    unchecked, for kernels that read pointers from memory."""

    def __init__(self) -> None:
        self.starts: Any = np.zeros(0, np.uint64)
        self.ends: Any = self.starts
        self.names: list[str] = []
        self.trusting = False

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

    def check(self, what: str, addresses: Any, mask: Any, width: int) -> None:
        """Raise unless every active address lies in one of the tensors."""
        if self.trusting:
            return
        mask = mask.astype(bool)  # the interpreter also holds masks as integers, which would index
        if not mask.all():
            shape = np.broadcast_shapes(addresses.shape, mask.shape)
            addresses = np.broadcast_to(addresses, shape)[np.broadcast_to(mask, shape)]
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
        if other is None and not mask.data.all():
            kind = pointers.get_element_ty()
            array = undefined(pointers.data.shape, interpreter._get_np_dtype(kind), brain=kind == tl.bfloat16)
            other = handle(array, kind)
        return plain_load(self, pointers, mask, other, cache_policy, is_volatile)

    def store(self: Any, pointers: Any, value: Any, mask: Any, cache_policy: Any) -> Any:
        memory.check("writes", pointers.data, mask.data, width(pointers))
        return plain_store(self, pointers, value, mask, cache_policy)

    def rmw(self: Any, op: Any, pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
        memory.check("updates", pointers.data, mask.data, width(pointers))
        return plain_rmw(self, op, pointers, value, mask, *rest)

    def cas(self: Any, pointers: Any, *rest: Any) -> Any:
        memory.check("updates", pointers.data, np.ones(pointers.data.shape, bool), width(pointers))
        return plain_cas(self, pointers, *rest)

    builder.create_masked_load, builder.create_masked_store = load, store
    builder.create_atomic_rmw, builder.create_atomic_cas = rmw, cas
