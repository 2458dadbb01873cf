"""Where the time of a worker's family goes: the kernel's own sampling of program counters, read by the parent from outside.

In: the pid of a worker, from before foreign code runs. Out: for each watched call, the samples in each mapped file, over all its
threads and all processes it starts. Nothing inside the process can see or stop it. Uses the software CPU clock of perf events, which
needs no hardware counters; where the kernel refuses, `start` returns None. What a share means is the judge's (honesty/sampling.py).
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import struct
from collections import Counter
from dataclasses import dataclass, field

from kernelwright.workers.channel import close_all
from kernelwright.workers.code_owners import CodeOwners, regions
from kernelwright.workers.system_calls import LIBC, MACHINE

PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
SOFTWARE, CPU_CLOCK = 1, 0
SAMPLE_IP, SAMPLE_TID = 1, 2
INHERIT, EXCLUDE_KERNEL, EXCLUDE_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6
RECORD_SAMPLE = 9
ATTRIBUTE_BYTES = 128
PERIOD_NS = 250_000
PAGES = 64
HEAD, TAIL = 1024, 1032
"""Offsets of the ring's two positions in its first page."""


@dataclass
class Sighting:
    """Samples of some blocks of calls, by the file whose code ran (code_owners.py; "" for code in no file), and how many they were.
    `elsewhere` are those of them that other processes than the kernel's own spent."""

    files: Counter[str] = field(default_factory=Counter)
    elsewhere: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    blocks: int = 0

    @property
    def total(self) -> int:
        return sum(self.files.values())

    def count(self, pattern: re.Pattern[str]) -> int:
        return sum(number for path, number in self.files.items() if pattern.search(path))

    def seconds_per_call(self, pattern: re.Pattern[str]) -> float:
        return self.count(pattern) * PERIOD_NS * 1e-9 / max(1, self.calls)


class Sampler:
    """Samples one worker's family from its start to its end."""

    def __init__(self, pid: int, events: list[int], rings: list[mmap.mmap]) -> None:
        self._pid = pid
        self._events, self._rings = events, rings
        self._owners = CodeOwners(pid)

    @classmethod
    def start(cls, pid: int) -> Sampler | None:
        """One event per CPU, inherited by every thread and child the process will have."""
        if MACHINE not in PERF_EVENT_OPEN:
            return None
        attributes = struct.pack(
            "<IIQQQQQ",
            SOFTWARE,
            ATTRIBUTE_BYTES,
            CPU_CLOCK,
            PERIOD_NS,
            SAMPLE_IP | SAMPLE_TID,
            0,
            INHERIT | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
        ).ljust(ATTRIBUTE_BYTES, b"\0")
        events: list[int] = []
        rings: list[mmap.mmap] = []
        try:
            for cpu in sorted(os.sched_getaffinity(0)):
                event = LIBC.syscall(
                    ctypes.c_long(PERF_EVENT_OPEN[MACHINE]),
                    attributes,
                    ctypes.c_int(pid),
                    ctypes.c_int(cpu),
                    ctypes.c_int(-1),
                    ctypes.c_ulong(8),
                )
                if event < 0:
                    raise OSError(ctypes.get_errno(), "perf_event_open")
                events.append(event)
                rings.append(mmap.mmap(event, (1 + PAGES) * mmap.PAGESIZE, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE))
        except (OSError, ValueError):
            for ring in rings:
                ring.close()
            close_all(events)
            return None
        return cls(pid, events, rings)

    def close(self) -> None:
        for ring in self._rings:
            ring.close()
        close_all(self._events)
        self._rings, self._events = [], []

    def forget(self) -> None:
        """Drop what was sampled so far: it belongs to no call."""
        for ring in self._rings:
            ring[TAIL : TAIL + 8] = ring[HEAD : HEAD + 8]

    def take(self, into: Sighting, calls: int = 1) -> None:
        """Add the samples since `forget` (or the last `take`) to a sighting, as those of so many calls."""
        samples = Counter(sample for ring in self._rings for sample in _read(ring))
        places = {self._pid: regions(self._pid)}
        for (pid, address), count in samples.most_common():
            if pid not in places:
                # A child that is gone already was most likely forked, and had its parent's map.
                places[pid] = regions(pid) or places[self._pid]
            owner = self._owners.label(pid, address, places[pid])
            into.files[owner] += count
            if pid != self._pid:
                into.elsewhere[owner] += count
        into.calls += calls
        into.blocks += 1


def _read(ring: mmap.mmap) -> list[tuple[int, int]]:
    """(pid, address) of all samples in a ring, which is then empty."""
    head, tail = struct.unpack_from("<QQ", ring, HEAD)
    size = PAGES * mmap.PAGESIZE
    found = []
    while tail + 8 <= head:
        kind, _, length = struct.unpack("<IHH", _bytes(ring, tail % size, 8, size))
        if length < 8:
            break
        if kind == RECORD_SAMPLE and length >= 24:
            address, pid = struct.unpack("<QI", _bytes(ring, (tail + 8) % size, 12, size))
            found.append((pid, address))
        tail += length
    struct.pack_into("<Q", ring, TAIL, head)
    return found


def _bytes(ring: mmap.mmap, start: int, count: int, size: int) -> bytes:
    """Bytes of the ring's data area, which wraps around."""
    base = mmap.PAGESIZE
    part = ring[base + start : base + min(start + count, size)]
    return part + ring[base : base + count - len(part)]
