"""Memory that goes back to the system: what a large task needs of an allocator that is set up to keep everything.

Workers start with an allocator that never gives memory back (template.py), because a fresh page for every output of a timed call
would be most of its time. Where inputs and outputs are a good part of the machine's memory, what lies freed in between would not fit.
"""

from __future__ import annotations

import ctypes

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3  # M_… of glibc's malloc.h
LARGE_BYTES = 512 << 20
"""Inputs and outputs from which a task counts as large."""
MAPPED_BYTES = 32 << 20

_libc = ctypes.CDLL(None)


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
