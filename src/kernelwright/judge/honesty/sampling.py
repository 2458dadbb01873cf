"""Where a candidate's time really goes: the kernel's own sampling of its program counters, read by the parent from outside.

In: the pid of a worker, from before foreign code runs. Out: for each watched call, the CPU seconds spent in each mapped file, over
all its threads and all processes it starts. Nothing inside the process can see or stop it, so a library that is reached behind the
dispatcher's back (a symbol of the MKL inside libtorch, numpy, a fork, code that behaves while it is traced) still shows. Uses the
software CPU clock of perf events, which needs no hardware counters; where the kernel refuses, `start` returns None and the verdict
carries a warning.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import re
import struct
from collections import Counter
from dataclasses import dataclass, field

from kernelwright.workers.channel import close_all
from kernelwright.workers.system_calls import LIBC, MACHINE

PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
SOFTWARE, CPU_CLOCK = 1, 0
SAMPLE_IP, SAMPLE_TID = 1, 2
INHERIT, EXCLUDE_KERNEL, EXCLUDE_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6
RECORD_SAMPLE = 9
ATTRIBUTE_BYTES = 128
PERIOD_NS = 250_000
PAGES = 64
PER_CALL, PER_BLOCK = 60e-6, 200e-6
"""Seconds inside libtorch that are nobody's work: allocating outputs, and the stopwatch's reading of a few elements per block."""
HEAD, TAIL = 1024, 1032
"""Offsets of the ring's two positions in its first page."""

BLAS = re.compile(r"(openblas|mkl|blis|lapack|cblas|dnnl|onednn)[^/]*\.so", re.IGNORECASE)
NUMPY = re.compile(r"/(numpy|scipy)(\.libs)?/.*\.so|/lib(?:scipy)[^/]*\.so")
TORCH = re.compile(r"/libtorch_cpu[^/]*\.so")
RUNTIME = re.compile(r"/lib(gomp|omp|iomp5|python|c10|torch_python)[^/]*\.so|/_ctypes[^/]*\.so|/ld-linux|^\[v|/python3[^/]*$")
"""Waiting and calling: threads spin in OpenMP's library, Python interprets. No work is done there, so it is left out of shares."""
INTERPRETER = re.compile(r"/lib(python|torch_python)[^/]*\.so|/python3[^/]*$")
FEW = 12
"""Samples of work that prove nothing yet."""
SMALL_BESIDE_PYTHON = 0.1
"""A kernel that is written in Python itself spends its time interpreting; what turns its lists into tensors is small beside that."""


@dataclass
class Sighting:
    """Samples of some blocks of calls, by mapped file ("" for code in no file), and how many they were. `elsewhere` are those of
    them that other processes than the kernel's own spent."""

    files: Counter[str] = field(default_factory=Counter)
    elsewhere: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    blocks: int = 0

    @property
    def total(self) -> int:
        return sum(self.files.values())

    @property
    def working(self) -> int:
        """Samples of work: waiting and calling are left out."""
        return self.total - self.count(RUNTIME)

    def count(self, pattern: re.Pattern[str]) -> int:
        return sum(number for path, number in self.files.items() if pattern.search(path))

    def seconds_per_call(self, pattern: re.Pattern[str]) -> float:
        return self.count(pattern) * PERIOD_NS * 1e-9 / max(1, self.calls)


class Observer:
    """Samples one worker's family from its start to its end."""

    def __init__(self, pid: int, events: list[int], rings: list[mmap.mmap]) -> None:
        self._pid = pid
        self._events, self._rings = events, rings

    @classmethod
    def start(cls, pid: int) -> Observer | None:
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
        samples = [sample for ring in self._rings for sample in _read(ring)]
        places: dict[int, list[tuple[int, int, str]]] = {self._pid: _executable(self._pid)}
        for pid, address in samples:
            if pid not in places:
                # A child that is gone already was most likely forked, and had its parent's map.
                places[pid] = _executable(pid) or places[self._pid]
            path = _file_at(places[pid], address)
            into.files[path] += 1
            if pid != self._pid:
                into.elsewhere[path] += 1
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


def _executable(pid: int) -> list[tuple[int, int, str]]:
    found = []
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps") as maps:
        for line in maps:
            fields = line.split(None, 5)
            if "x" in fields[1]:
                start, stop = (int(part, 16) for part in fields[0].split("-"))
                found.append((start, stop, fields[5].strip() if len(fields) == 6 else ""))
    return found


def _file_at(places: list[tuple[int, int, str]], address: int) -> str:
    return next((path for start, stop, path in places if start <= address < stop), "?")


def suspicion(seen: Sighting, copied_bytes: int) -> str:
    """What a kernel on track pure may not have spent its time on, in words; empty when there is nothing to say.

    Few samples prove nothing. Time inside libtorch is normal as far as allocation (microseconds a call) and the copies that the
    trace listed explain it; those are granted generously, at 2 GB/s. In another process they explain nothing: the trace is of this one."""
    blas, array, torch = seen.count(BLAS), seen.count(NUMPY), seen.count(TORCH)
    working = seen.working
    if working < FEW:
        return ""
    if blas >= 5 and blas > 0.05 * working:
        return f"{100 * blas / working:.0f} % of forward's CPU time was spent in a BLAS library"
    if array >= 8 and array > 0.3 * working:
        return f"{100 * array / working:.0f} % of forward's CPU time was spent in numpy"
    afar = sum(number for path, number in seen.elsewhere.items() if TORCH.search(path))
    if afar >= 5 and afar > 0.1 * working:
        return (
            f"{100 * afar / working:.0f} % of forward's CPU time was spent inside libtorch by another process that it started"
        )
    explained = PER_CALL + PER_BLOCK * seen.blocks / max(1, seen.calls) + copied_bytes / 2e9
    beside_python = torch > SMALL_BESIDE_PYTHON * (working + seen.count(INTERPRETER))
    if torch >= 8 and torch > 0.3 * working and beside_python and seen.seconds_per_call(TORCH) > explained:
        return (
            f"{100 * torch / working:.0f} % of forward's CPU time was spent inside libtorch, which no traced operator explains"
        )
    return ""
