"""Where temporaries lie: one block of memory for all of them, in which those that are never alive together share room.

In: for each temporary its bytes and the first and last call that touches it. Out: offsets in the block, and its size. A deep network
then needs the memory of its widest place instead of the sum of all layers, and one allocation instead of hundreds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

ALIGNMENT = 64
"""Bytes; a cache line, so that no two temporaries share one."""


@dataclass(frozen=True)
class Lifetime:
    """A temporary's bytes, and the calls from the first to the last that touches it."""

    size: int
    first: int
    last: int


@dataclass(frozen=True)
class Layout:
    """Offsets by name, and the bytes of the whole block."""

    offsets: Mapping[str, int]
    size: int


def layout(temporaries: Mapping[str, Lifetime]) -> Layout:
    """Large ones first, each at the lowest place that is free for as long as it lives."""
    offsets: dict[str, int] = {}
    placed: list[tuple[int, int, Lifetime]] = []  # begin, end, who
    size = 0
    for name, life in sorted(temporaries.items(), key=lambda item: (-item[1].size, item[1].first, item[0])):
        begin = 0
        room = -(-life.size // ALIGNMENT) * ALIGNMENT
        for start, end, other in sorted(placed, key=lambda p: p[0]):
            if other.last < life.first or life.last < other.first:
                continue
            if start >= begin + room:
                break
            begin = max(begin, end)
        offsets[name] = begin
        placed.append((begin, begin + room, life))
        size = max(size, begin + room)
    return Layout(offsets, size)
