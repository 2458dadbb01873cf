"""Guard zones: for a checked launch, tensors are copied to memory with room around them, so that no neighbour hides an overrun.

In: the storages behind a launch's pointers, or what of them the tensors span. Out: where each pointer goes, the machine's list of
allocations, and the results copied back.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kernelwright.gpu import Memory

ZONE = 1 << 20
"""Bytes on both sides of a copy; untouched pages cost nothing."""
_ALIGN = 512
_MOST_POINTERS = 1 << 16


@dataclass(frozen=True)
class Storage:
    """The memory behind a tensor, whole: what a view leaves out is allocated all the same."""

    address: int
    size: int
    name: str
    pointers: frozenset[int] = frozenset()

    @classmethod
    def of(cls, name: str, value: Any) -> Storage | None:
        """Of an argument; `pointers` are addresses that a tensor of 64-bit integers may hold."""
        if isinstance(value, int) or value is None:
            return None
        tensor = getattr(value, "base", value) if not isinstance(value, torch.Tensor) else value
        if not isinstance(tensor, torch.Tensor):
            return None
        inner: frozenset[int] = frozenset()
        if tensor.dtype in (torch.int64, torch.uint64) and tensor.numel() <= _MOST_POINTERS:
            inner = frozenset(tensor.detach().view(torch.int64).flatten().tolist())
        whole = tensor.untyped_storage()
        return cls(whole.data_ptr(), whole.nbytes(), f"{name} ({whole.nbytes()} bytes)", inner)

    @classmethod
    def spanned(cls, named: Sequence[tuple[str, Any]]) -> list[Storage]:
        """Of the tensors among a launch's arguments, from the first to the last element that any view of one storage has: a larger
        storage behind them belongs to somebody else."""
        found: dict[int, tuple[int, int, dict[str, None], frozenset[int]]] = {}
        for name, value in named:
            whole = cls.of(name, value)
            if whole is None:
                continue
            tensor = getattr(value, "base", value) if not isinstance(value, torch.Tensor) else value
            if not tensor.numel():
                continue
            begin = tensor.data_ptr()
            last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
            end = begin + (1 + last) * tensor.element_size()
            first, final, names, inner = found.get(whole.address, (begin, end, {}, frozenset()))
            found[whole.address] = min(begin, first), max(end, final), names | {name: None}, inner | whole.pointers
        return [
            cls(begin, end - begin, f"the tensor {' and '.join(names)} ({end - begin} bytes)", inner)
            for begin, end, names, inner in found.values()
        ]


class Guards:
    """Open around a launch. Storages that are reached through tables of addresses stay where they are, and so do all then."""

    def __init__(self, storages: Sequence[Storage], *, on: bool) -> None:
        self._storages = {s.address: s for s in reversed(storages) if s.size} if on else {}
        self._copies: dict[int, tuple[Any, int]] = {}
        self.memory = Memory() if on else None

    def __enter__(self) -> Guards:
        if self.memory is None:
            return self
        behind = _behind(frozenset().union(*(s.pointers for s in self._storages.values())))
        for storage in behind:
            self._storages.setdefault(storage.address, storage)
        for storage in self._storages.values():
            address = storage.address
            if not behind:
                # Not of torch: foreign code is observed while it runs, and what is made for it here is not its doing.
                room = mmap.mmap(-1, storage.size + 2 * ZONE + _ALIGN)
                # As aligned as the original: neither better, which would hide a fault, nor worse.
                address = ctypes.addressof(ctypes.c_char.from_buffer(room)) + ZONE
                address += (storage.address - address) % _ALIGN
                ctypes.memmove(address, storage.address, storage.size)
                self._copies[storage.address] = room, address
            self.memory.add(address, storage.size, storage.name)
        return self

    def moved(self, address: int) -> int:
        """Where a pointer goes."""
        for begin, (_, copy) in self._copies.items():
            if begin <= address <= begin + self._storages[begin].size:
                return copy + address - begin
        return address

    def __exit__(self, *_: Any) -> None:
        for begin, (_, copy) in self._copies.items():
            ctypes.memmove(begin, copy, self._storages[begin].size)


def memory_of(storages: Sequence[Storage]) -> Memory:
    """Storages where they are, as allocations."""
    memory = Memory()
    for storage in storages:
        memory.add(storage.address, storage.size, storage.name)
    return memory


def _behind(pointers: frozenset[int]) -> list[Storage]:
    """Storages of live tensors at which some address points."""
    if not pointers:
        return []
    found = []
    for thing in gc.get_objects():
        if type(thing) in (torch.Tensor, torch.nn.Parameter) and thing.layout == torch.strided and thing.data_ptr() in pointers:
            whole = thing.untyped_storage()
            if whole.nbytes():
                found.append(Storage(whole.data_ptr(), whole.nbytes(), f"a tensor of {whole.nbytes()} bytes"))
    return found
