"""Launches kept with the memory that they touched, so that they can be counted when the program has gone on.

In: launches as they happen. Out: `Recorded`, each kind of launch of a call once, with how often it came. Pointers among the parameters
lead into copies: whoever counts disturbs nobody. Memory that is reached by pointers in memory is not copied; accesses to it are left out.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from kernelwright.gpu.host import Launch
from kernelwright.gpu.program import Memory

COPIED = 256 << 20
"""Bytes that the copies of a call may take; what comes beyond is zeros, whose untouched pages cost nothing."""
MOST_KINDS = 32
_ALIGN = 512
_ZONE = 4096

Extents = tuple[int, int, int]


@dataclass
class Region:
    """An allocation as it was before the launch."""

    begin: int
    size: int
    name: str
    room: object
    address: int


@dataclass
class Recorded:
    """A launch that can be executed again; `times` says how often its kind came in the call."""

    entry: str
    grid: Extents
    block: Extents
    cluster: Extents
    shared: int
    params: bytes
    ptx: str
    regions: tuple[Region, ...] = ()
    times: int = 1

    @contextmanager
    def again(self) -> Iterator[tuple[bytes, Memory]]:
        """Parameters that point into the copies, and the memory that they make up."""
        memory = Memory()
        params = bytearray(self.params)
        for region in self.regions:
            memory.add(region.address, region.size, region.name)
            for at in range(0, len(params) - 7, 8):
                address = int.from_bytes(self.params[at : at + 8], "little")
                if region.begin <= address < region.begin + region.size:
                    params[at : at + 8] = (region.address + address - region.begin).to_bytes(8, "little")
        yield bytes(params), memory


@dataclass
class Recorder:
    """Sees the launches of one call after the other; those of the first call that launches anything are kept."""

    _kept: dict[tuple[object, ...], Recorded] = field(default_factory=dict)
    _full: bool = False
    _copied: int = 0

    def begin(self) -> None:
        """A new call begins."""
        self._full = self._full or bool(self._kept)

    def see(
        self, *, entry: str, grid: Sequence[int], block: Sequence[int], shared: int, params: bytes, ptx: str, memory: Memory,
        cluster: Sequence[int] = (1, 1, 1),
    ) -> None:  # fmt: skip
        """Before a launch runs. `memory` has the allocations into which parameters may point."""
        if self._full:
            return
        key = (entry, tuple(grid), tuple(block), shared, hash(ptx))
        if key in self._kept:
            self._kept[key].times += 1
        elif len(self._kept) < MOST_KINDS:
            regions = self._regions(params, memory)
            self._kept[key] = Recorded(
                entry, _three(grid), _three(block), _three(cluster), shared, bytes(params), ptx, tuple(regions)
            )

    def see_launch(self, launch: Launch) -> None:
        """A launch of host code."""
        self.see(
            entry=launch.entry, grid=launch.grid, block=launch.block, cluster=launch.cluster, shared=launch.shared, params=launch.params,
            ptx=launch.ptx, memory=launch.memory,
        )  # fmt: skip

    def launches(self) -> tuple[Recorded, ...]:
        """What is kept, in the order in which it came first."""
        return tuple(self._kept.values())

    def _regions(self, params: bytes, memory: Memory) -> list[Region]:
        found: dict[int, Region] = {}
        for at in range(0, len(params) - 7, 8):
            place = memory.find(int.from_bytes(params[at : at + 8], "little"))
            if place is not None and place[0] not in found:
                found[place[0]] = self._copy(*place)
        return list(found.values())

    def _copy(self, begin: int, size: int, name: str) -> Region:
        room = mmap.mmap(-1, size + 2 * _ZONE + _ALIGN)
        address = ctypes.addressof(ctypes.c_char.from_buffer(room)) + _ZONE
        address += (begin - address) % _ALIGN  # no better aligned than it was
        if self._copied + size <= COPIED:
            self._copied += size
            ctypes.memmove(address, begin, size)
        return Region(begin, size, name, room, address)


def _three(extents: Sequence[int]) -> Extents:
    x, y, z, *_ = (*extents, 1, 1, 1)
    return int(x), int(y), int(z)
