"""The counts of a launch by line of its source: what each executes, what its accesses take, and its share of the time.

In: a counted launch and what bounds it. Out: `Line`, the hottest first. A line's share is that of what bounds the launch: of the busiest
pipe's cycles, of the sectors that leave the first level, of the latencies of a warp that is alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kernelwright.gpu.profile.costs import cost, is_access, space
from kernelwright.gpu.profile.hardware import Hardware
from kernelwright.gpu.profile.interval import LANES, turns
from kernelwright.gpu.profile.sampling import Counted, Executed, global_access


@dataclass(frozen=True)
class Line:
    """A line of the source (of the PTX, where the compiler tells no source: then `file` is empty), over all blocks of the grid."""

    file: str
    line: int
    share: float
    instructions: float
    """Of PTX, executed by warps."""
    sectors: float = 0.0
    """Of global memory, a request."""
    least_sectors: float = 0.0
    passes: float = 0.0
    """Over the banks of shared memory, a request."""
    least_passes: float = 0.0
    missed_bytes: float = 0.0
    """What the first level did not have."""


def by_line(counted: Counted, hardware: Hardware, bound: str) -> tuple[Line, ...]:
    """All lines that execute anything."""
    weigh = _weight(bound, hardware)
    groups: dict[tuple[str, int], list[Executed]] = {}
    for e in counted.executed:
        place = e.instruction.location.outermost if e.instruction.location else None
        groups.setdefault((place.file, place.line) if place else ("", e.instruction.line), []).append(e)
    total = sum(weigh(e) for e in counted.executed) or 1.0
    found = [_line(place, each, sum(map(weigh, each)) / total, counted.blocks) for place, each in groups.items()]
    return tuple(sorted(found, key=lambda line: (-line.share, -line.instructions)))


def _line(place: tuple[str, int], executed: list[Executed], share: float, blocks: int) -> Line:
    reached = [e for e in executed if global_access(e) and e.requests]
    banked = [e for e in executed if is_access(e.instruction) and space(e.instruction) == "shared" and e.requests]
    asked, passed = sum(e.requests for e in reached), sum(e.requests for e in banked)
    return Line(
        *place,
        share=share,
        instructions=blocks * sum(e.warps for e in executed),
        sectors=sum(e.units for e in reached) / asked if asked else 0.0,
        least_sectors=sum(e.least for e in reached) / asked if asked else 0.0,
        passes=sum(e.units for e in banked) / passed if passed else 0.0,
        least_passes=sum(e.least for e in banked) / passed if passed else 0.0,
        missed_bytes=blocks * 32.0 * sum(e.missed for e in reached),
    )


def _weight(bound: str, h: Hardware) -> Callable[[Executed], float]:
    """What of the bounding resource an instruction takes."""
    if bound in ("memory", "second level"):
        return lambda e: e.missed
    if bound == "latency":
        return lambda e: e.warps * max(cost(e.instruction, h.latencies).latency, cost(e.instruction, h.latencies).issued)
    if bound == "memory pipe":
        return lambda e: turns(e, h) if cost(e.instruction, h.latencies).pipe == "memory" else 0.0
    if bound == "matrix":
        return lambda e: e.warps * cost(e.instruction, h.latencies).flops
    if bound in LANES:
        return lambda e: e.warps * cost(e.instruction, h.latencies).issued * (cost(e.instruction, h.latencies).pipe == bound)
    return lambda e: e.warps * cost(e.instruction, h.latencies).issued
