"""Memory that goes back to the system: what a large task needs of an allocator that is set up to keep everything.

Workers start with an allocator that never gives memory back (server.py), because a fresh page for every output of a timed call
would be most of its time. Where inputs and outputs are a good part of the machine's memory, what lies freed in between would not fit.
"""

from __future__ import annotations

import ctypes
import os

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3  # M_… of glibc's malloc.h
LARGE_BYTES = 512 << 20
"""Inputs and outputs from which a task counts as large."""
MAPPED_BYTES = 32 << 20

CHUNK_BYTES = 1 << 30
"""Below every threshold from which a block is mapped by itself: what is touched and freed stays in the heap."""

_libc = ctypes.CDLL(None)
_libc.malloc.restype = ctypes.c_void_p
_libc.malloc.argtypes = [ctypes.c_size_t]
_libc.free.argtypes = [ctypes.c_void_p]
_memset, _open, _read, _close = ctypes.memset, os.open, os.read, os.close


class _Allocated(ctypes.Structure):
    """`struct mallinfo2` of glibc's malloc.h."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    )


_mallinfo = getattr(_libc, "mallinfo2", None)  # since glibc 2.33
if _mallinfo is not None:
    _mallinfo.restype = _Allocated


def map_large_blocks() -> None:
    """From now on, blocks of many megabytes are mapped one by one in this process and unmapped when they are freed."""
    if hasattr(_libc, "mallopt"):  # glibc; others give memory back by themselves
        for option, value in ((TOP_PAD, 0), (TRIM_THRESHOLD, MAPPED_BYTES), (MMAP_THRESHOLD, MAPPED_BYTES)):
            _libc.mallopt(option, value)
        give_back()  # what lies on top of the heap would be used first


def give_back() -> None:
    """Let the system have what lies freed in the heap now; the allocator goes on as it was set up."""
    if hasattr(_libc, "malloc_trim"):
        _libc.malloc_trim(0)


class Reserve:
    """A large block's memory, given back while the process rests and had again before it is timed. Kept by all contenders at once
    it would not fit (three of them and the referee, 1 GB in and out: 19 GB); fetched page by page in a timed call it would be most of
    the time."""

    def __init__(self) -> None:
        self._wanted = 0
        self._due = False

    def note(self, held: int) -> None:
        """A block is about to be dropped; `held` are the bytes of its tensors."""
        if held >= LARGE_BYTES:
            self._wanted, self._due = own_bytes(), True

    def rest(self) -> None:
        """Give back what a large block has left. No part of dropping it: this is the judge's work, not the kernel's."""
        if self._due:
            self._due = False
            give_back()

    def ready(self) -> None:
        """Have as much memory as at the last rest, with pages that have been touched."""
        missing = self._wanted - own_bytes() if self._wanted else 0
        blocks = [_libc.malloc(min(CHUNK_BYTES, missing - at)) for at in range(0, max(0, missing), CHUNK_BYTES)]
        for number, block in enumerate(blocks):
            if block:
                _memset(block, 0, min(CHUNK_BYTES, missing - number * CHUNK_BYTES))
        for block in blocks:
            _libc.free(block)


def own_bytes() -> int:
    """Memory that this process holds for itself alone; 0 where the system does not say."""
    try:
        file = _open("/proc/self/statm", os.O_RDONLY)
    except OSError:
        return 0
    try:
        _, resident, shared, *_ = _read(file, 256).split()
    finally:
        _close(file)
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def allocated_bytes() -> int:
    """What is allocated and not freed; 0 where the allocator does not say."""
    if _mallinfo is None:
        return 0
    told = _mallinfo()
    return int(told.uordblks + told.hblkhd)
