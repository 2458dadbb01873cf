"""A predicted time for a kernel that cannot be run here: bytes, operations and occupancy in, seconds out. Never a measurement.

The roofline, lowered where the launches cannot reach it: a core needs enough warps in flight to hide the latency of memory and of
arithmetic, and a grid with few blocks leaves cores idle (whole waves count). Each launch costs its overhead. On a target without
threads (an NPU) nothing is known of how a core is filled: there it is the roofline alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelwright.core.launch_figures import LaunchFigures
from kernelwright.target.occupancy import Occupancy
from kernelwright.target.sheet import Target

LAUNCH_SECONDS = 2.5e-6
"""From one kernel's end to the next one's begin when launches are queued (order of magnitude on current GPUs)."""
ENOUGH_FOR_MEMORY = 0.4
ENOUGH_FOR_ARITHMETIC = 0.25
"""Occupancies from which on bandwidth and arithmetic saturate for streaming and for unrolled kernels (rule of thumb)."""
ATTAINABLE = 0.85
"""Of the data sheet's figures, what well-tuned kernels reach."""


@dataclass(frozen=True)
class Launch:
    """One launched kernel as the prediction sees it; no occupancy where the target has none."""

    occupancy: Occupancy | None
    blocks: int | None


def predicted_seconds(target: Target, *, bytes_moved: int, flops: int, dtype: str, launches: Sequence[Launch]) -> float:
    """The time of one call. The work is spread over the launches as one; the worst of them decides what share is attainable."""
    fill = max(0.01, min((launch.occupancy.fraction for launch in launches if launch.occupancy), default=1.0))
    busy = max(0.001, max((_busy(target, launch) for launch in launches), default=1.0))
    memory = bytes_moved / (target.bandwidth * ATTAINABLE * min(1.0, fill / ENOUGH_FOR_MEMORY) * min(1.0, 2 * busy))
    peak = target.peak(dtype) * ATTAINABLE * min(1.0, fill / ENOUGH_FOR_ARITHMETIC) * busy
    return max(memory, flops / peak if peak else 0.0) + LAUNCH_SECONDS * len(launches)


def predicted_ms(launches: Sequence[LaunchFigures]) -> float:
    """Of a call whose launches were profiled: one after the other, with what each costs to begin."""
    return sum(each.times * (each.predicted.ms + 1e3 * LAUNCH_SECONDS) for each in launches)


def _busy(target: Target, launch: Launch) -> float:
    """The share of the cores that have work, averaged over the waves of the grid."""
    if not launch.blocks or launch.occupancy is None:
        return 1.0
    slots = target.cores * max(1, launch.occupancy.blocks)
    waves = -(-launch.blocks // slots)
    if waves > 1:
        return launch.blocks / (waves * slots)
    return min(1.0, launch.blocks / target.cores)
