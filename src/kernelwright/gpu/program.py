"""Programs: PTX in, launches out. A Program owns its module's global memory, as a loaded module does on a device."""

from __future__ import annotations

import bisect
import ctypes
import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from kernelwright.core.errors import GpuError
from kernelwright.gpu.build import build
from kernelwright.gpu.ptx import parse
from kernelwright.gpu.ptx.merged import merged
from kernelwright.gpu.report import KINDS, Count, Fault, Report
from kernelwright.gpu.translate import Translation, translate
from kernelwright.gpu.translate.module import EntryPoint

_MOST_FAULTS = 64
_MAX_THREADS = 1024
_PER_SITE = 6
_MOST_MISSES = 1 << 21


class _Entry(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("run", ctypes.c_void_p),
        *(
            (n, ctypes.c_uint32)
            for n in (
                "register_bytes",
                "local_bytes",
                "shared_bytes",
                "counters",
                "shared_granule",
                "global_granule",
                "partial",
            )
        ),
    ]


class _Fault(ctypes.Structure):
    _fields_ = [
        *((n, ctypes.c_uint32) for n in ("kind", "site", "lane", "warp")),
        ("block", ctypes.c_uint32 * 3),
        ("thread", ctypes.c_uint32 * 3),
        ("address", ctypes.c_uint64),
        ("detail", ctypes.c_uint64),
    ]


class _Launch(ctypes.Structure):
    _fields_ = [
        ("entry", ctypes.c_void_p),
        *((n, ctypes.c_uint32 * 3) for n in ("grid", "block", "cluster")),
        *((n, ctypes.c_uint32) for n in ("shared_bytes", "threads", "cooperative", "most_faults")),
        *((n, ctypes.c_void_p) for n in ("params", "globals", "ranges")),
        ("range_count", ctypes.c_uint64),
        *((n, ctypes.c_void_p) for n in ("counts", "site_counts")),
        ("sites", ctypes.c_uint64),
        ("faults", ctypes.c_void_p),
        *((n, ctypes.c_uint32) for n in ("fault_count", "stopped")),
        ("patience", ctypes.c_double),
        ("only", ctypes.c_void_p),
        *((n, ctypes.c_uint64) for n in ("only_count", "cache_bytes")),
        ("misses", ctypes.c_void_p),
        *((n, ctypes.c_uint64) for n in ("most_misses", "miss_count")),
    ]


class _Miss(ctypes.Structure):
    _fields_ = [("sector", ctypes.c_uint64), ("site", ctypes.c_uint64)]


@dataclass(frozen=True)
class Sample:
    """Blocks of a grid, by their number, that stand for all; `cache_bytes` of the first level that one of them has."""

    blocks: tuple[int, ...]
    cache_bytes: int


class Memory:
    """The allocations that a kernel may touch, for the checked variant: what lies outside all of them is out of bounds."""

    def __init__(self) -> None:
        self._begins: list[int] = []
        self._ends: dict[int, int] = {}
        self._names: dict[int, str] = {}

    def add(self, address: int, size: int, name: str = "") -> None:
        """An allocation. One at the same place replaces the older."""
        if size <= 0:
            return
        if address not in self._ends:
            bisect.insort(self._begins, address)
        self._ends[address] = address + size
        self._names[address] = name

    def remove(self, address: int) -> None:
        """Forget an allocation."""
        if address in self._ends:
            del self._ends[address], self._names[address]
            self._begins.remove(address)

    def ranges(self) -> list[tuple[int, int]]:
        """Begin and end of all, in order; those that touch or overlap are one only where they overlap."""
        found: list[tuple[int, int]] = []
        for begin in self._begins:
            end = self._ends[begin]
            if found and begin < found[-1][1]:
                found[-1] = (found[-1][0], max(found[-1][1], end))
            else:
                found.append((begin, end))
        return found

    def find(self, address: int) -> tuple[int, int, str] | None:
        """Begin, size and name of the allocation in which an address lies."""
        at = bisect.bisect_right(self._begins, address) - 1
        if at < 0 or address >= self._ends[self._begins[at]]:
            return None
        begin = self._begins[at]
        return begin, self._ends[begin] - begin, self._names[begin]

    def describe(self, address: int) -> str:
        """Where an address is, seen from the nearest allocation."""
        at = bisect.bisect_right(self._begins, address) - 1
        near = [self._begins[k] for k in (at, at + 1) if 0 <= k < len(self._begins)]
        if not near:
            return ""
        begin = min(near, key=lambda b: max(b - address, address - self._ends[b], 0))
        name = self._names[begin] or f"an allocation of {self._ends[begin] - begin} bytes"
        if address < begin:
            return f"{begin - address} bytes before {name}"
        if address >= self._ends[begin]:
            return f"{address - self._ends[begin]} bytes past the end of {name}"
        return f"byte {address - begin} of {name}"


class Program:
    """A module that can be launched."""

    def __init__(
        self, translation: Translation, path: str, *, checks: bool, counts: bool, beside: Program | None = None
    ) -> None:
        self.translation = translation
        self.checks, self.counts, self.text = checks, counts, ""
        self.entries: Mapping[str, EntryPoint] = {e.name: e for e in translation.entries}
        self._library = ctypes.CDLL(path)
        self._library.kw_launch.argtypes = [ctypes.POINTER(_Launch)]
        self._table = (_Entry * len(translation.entries)).in_dll(self._library, "kw_entries") if translation.entries else ()
        self._globals: ctypes.Array[ctypes.c_char] = (
            beside._globals if beside else ctypes.create_string_buffer(translation.layout.size + 256)
        )
        self.globals_address: int = (ctypes.addressof(self._globals) + 255) & ~255
        if beside is not None:
            return
        ctypes.memmove(self.globals_address, translation.layout.image(self.globals_address), translation.layout.size)

    @classmethod
    def from_ptx(
        cls,
        text: str,
        *,
        checks: bool = False,
        counts: bool = False,
        name: str = "ptx",
        beside: Program | None = None,
        apart: frozenset[int] | None = None,
        only: str | None = None,
    ) -> Program:
        """Translate and build a module, or take it from the cache.

        PtxError, with its line, for what is not known. `checks` finds wrong accesses, races and the like; `counts` counts. `beside` is
        another variant of the same module: they share its global memory. With `apart`, loads of shared memory are merged as the
        assembler does, but on these lines. `only` is the one kernel that will be launched: what others need is not looked at.
        """
        translation, path = _built(text, checks or counts, name, apart, only)
        program = cls(translation, path, checks=checks, counts=counts, beside=beside)
        program.text = text
        return program

    def variable(self, name: str) -> tuple[int, int]:
        """Address and size of a global or constant variable (what `cudaMemcpyToSymbol` writes to); KeyError if there is none."""
        layout = self.translation.layout
        return self.globals_address + layout.offsets[name], next(v.size for v in layout.variables if v.name == name)

    def launch(
        self,
        entry: str,
        grid: Sequence[int],
        block: Sequence[int],
        params: bytes,
        shared: int = 0,
        *,
        memory: Memory | None = None,
        cooperative: bool = False,
        cluster: Sequence[int] = (1, 1, 1),
        threads: int | None = None,
        patience: float = 10.0,
        sample: Sample | None = None,
    ) -> Report:
        """Run a kernel to its end. Pointers in `params` are addresses of this process.

        `shared` is the dynamic shared memory in bytes; `memory` the allocations to check against; `threads` how many cores of
        the host work; `patience` the seconds without progress after which a wait is called endless; with a `sample` only its blocks
        run, and what they read goes through a cache. Faults are in the report; GpuError for a launch that a device would refuse.
        """
        found = self.entries.get(entry)
        if found is None:
            raise GpuError(f"there is no kernel {entry}; there are {', '.join(self.entries) or 'none'}")
        self._check_launch(found, grid, block, params)
        launch = _Launch()
        index = list(self.entries).index(entry)
        launch.entry = ctypes.addressof(self._table[index])
        for field, values in ((launch.grid, grid), (launch.block, block), (launch.cluster, cluster)):
            for k in range(3):
                field[k] = values[k] if k < len(values) else 1
        launch.shared_bytes = shared
        launch.threads = threads or _cores()
        launch.cooperative = cooperative
        launch.most_faults = _MOST_FAULTS
        launch.patience = patience
        block_of_params = ctypes.create_string_buffer(params, max(len(params), found.parameter_bytes, 1) + 16)
        launch.params = ctypes.addressof(block_of_params)
        launch.globals = self.globals_address
        faults = (_Fault * _MOST_FAULTS)()
        launch.faults = ctypes.addressof(faults)
        ranges = None
        if (self.checks or self.counts) and memory is not None:
            pairs = sorted([*memory.ranges(), (self.globals_address, self.globals_address + self.translation.layout.size)])
            pairs.append((launch.params, launch.params + len(block_of_params)))
            flat = [x for pair in sorted(pairs) for x in pair]
            ranges = (ctypes.c_uint64 * len(flat))(*flat)
            launch.ranges, launch.range_count = ctypes.addressof(ranges), len(flat) // 2
        launch.sites = len(self.translation.sites)
        counts = sites = None
        if self.counts:
            counts = (ctypes.c_uint64 * (2 * max(len(self.translation.counters), 1)))()
            sites = (ctypes.c_uint64 * (_PER_SITE * max(launch.sites, 1)))()
            launch.counts, launch.site_counts = ctypes.addressof(counts), ctypes.addressof(sites)
        if sample is not None:
            only = (ctypes.c_uint64 * len(sample.blocks))(*sample.blocks)
            misses = (_Miss * _MOST_MISSES)()
            launch.only, launch.only_count, launch.threads = ctypes.addressof(only), len(sample.blocks), 1
            launch.cache_bytes, launch.misses, launch.most_misses = sample.cache_bytes, ctypes.addressof(misses), _MOST_MISSES
        self._library.kw_launch(ctypes.byref(launch))
        report = self._report(entry, launch, faults, counts, sites, memory)
        if sample is None:
            return report
        return replace(report, misses=ctypes.string_at(misses, 16 * min(launch.miss_count, _MOST_MISSES)))

    def _check_launch(self, entry: EntryPoint, grid: Sequence[int], block: Sequence[int], params: bytes) -> None:
        size = 1
        for extent in block:
            size *= extent
        limits = [(size <= _MAX_THREADS and size > 0, f"{size} threads in a block; 1 to {_MAX_THREADS} are allowed")]
        limits.append((all(g > 0 for g in grid), f"a grid of {tuple(grid)}"))
        limits.append(
            (len(params) >= entry.parameter_bytes, f"{len(params)} bytes of parameters; {entry.parameter_bytes} are needed")
        )
        required = entry.directives.get("reqntid")
        if required:
            wanted = (*required, 1, 1)[:3]
            limits.append(
                (tuple((*block, 1, 1)[:3]) == wanted, f"blocks of {tuple(block)}; the kernel was compiled for {wanted}")
            )
        most = entry.directives.get("maxntid")
        if most:
            room = 1
            for extent in most:
                room *= extent
            limits.append((size <= room, f"{size} threads in a block; the kernel was compiled for at most {room}"))
        for holds, text in limits:
            if not holds:
                raise GpuError(f"{entry.name} cannot be launched with {text}")

    def _report(
        self,
        entry: str,
        launch: _Launch,
        faults: ctypes.Array[_Fault],
        counts: ctypes.Array[ctypes.c_uint64] | None,
        site_counts: ctypes.Array[ctypes.c_uint64] | None,
        memory: Memory | None,
    ) -> Report:
        found = []
        for raw in faults[: launch.fault_count]:
            site = self.translation.sites[raw.site] if raw.site < len(self.translation.sites) else None
            kind = KINDS.get(raw.kind, "fault")
            where = memory.describe(raw.address) if memory is not None and kind == "out_of_bounds" else ""
            if kind == "assert":
                where = ctypes.string_at(raw.address).decode(errors="replace")
            found.append(
                Fault(
                    kind=kind,
                    kernel=entry,
                    instruction=site.name if site else "",
                    ptx_line=site.line if site else 0,
                    location=site.location if site else None,
                    block=(raw.block[0], raw.block[1], raw.block[2]),
                    thread=(raw.thread[0], raw.thread[1], raw.thread[2]),
                    address=raw.address,
                    detail=raw.detail,
                    where=where,
                )
            )
        executed: list[Count] = []
        if counts is not None and site_counts is not None:
            executed = self._counted(entry, counts, site_counts)
        return Report(entry=entry, faults=tuple(found), counts=tuple(executed), checked=self.checks)

    def _counted(
        self, entry: str, counts: ctypes.Array[ctypes.c_uint64], site_counts: ctypes.Array[ctypes.c_uint64]
    ) -> list[Count]:
        found = []
        for k, block in enumerate(self.translation.counters):
            warps, lanes = counts[2 * k], counts[2 * k + 1]
            if block.kernel != entry or not warps:
                continue
            for place, (i, site) in enumerate(zip(block.instructions, block.sites, strict=True)):
                figures = site_counts[_PER_SITE * site : _PER_SITE * (site + 1)] if site >= 0 else (0,) * _PER_SITE
                found.append(Count(i.name, i.line, i.location, warps, lanes, k, place, *figures))
        return found


@functools.lru_cache(maxsize=64)
def _built(
    text: str, checks: bool, name: str, apart: frozenset[int] | None = None, only: str | None = None
) -> tuple[Translation, str]:
    module = parse(text, name)
    if only is not None:
        module = replace(module, functions=tuple(f for f in module.functions if not f.entry or f.name == only))
    translation = translate(module if apart is None else merged(module, apart), name)
    return translation, str(build(translation.source, checks=checks))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) or 1


@contextmanager
def allocations(memory: Memory, *ranges: tuple[int, int, str]) -> Iterator[Memory]:
    """Allocations that last as long as the block."""
    for address, size, name in ranges:
        memory.add(address, size, name)
    try:
        yield memory
    finally:
        for address, _, _ in ranges:
            memory.remove(address)
