"""What the hardware allows: bytes and operations of a task and the target's sheet in, the floor in seconds out.

Two floors, for two purposes:
- `roofline`: what a perfect kernel of the reference's work would need, from *measured* bandwidth (that of the same rounds, bandwidth.py)
  and peak. Products count with the operations that are left when algebra saves what it is known to save in practice (Winograd, Strassen:
  `saved` in reference.py). It is shown, as `roofline_ms` and `roofline_fraction`. A kernel may still beat it honestly: a data set that
  stays in cache, or work that this task does not need (a product that is only summed afterwards, a triangular operand).
- `impossible_seconds`: below this no machine like this one can have produced the output at all. It counts only the bytes that
  must be written, at three times the measured bandwidth: inputs may be read in part (a lookup), and honest algebra removes
  operations, so neither is held against a kernel. A time below it is `cheating`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from kernelwright.target import Target

MARGIN = 3.0
"""Measured bandwidth is that of one benchmark on a shared machine: only three times beyond it is beyond belief."""

CACHE_FACTOR = 4.0
"""How much faster than memory a cache is whose bandwidth no sheet says (A100: 1.6 TB/s and about 5 TB/s)."""


@dataclass(frozen=True)
class Work:
    """What one call has to do at least."""

    read_bytes: int
    written_bytes: int
    flops: int
    dtype: str = "float32"

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Work:
        """From the referee's description of the task; what it does not know counts as nothing."""
        read = int(facts.get("input_bytes") or 0) + int(facts.get("parameter_bytes") or 0)
        return cls(
            read,
            int(facts.get("output_bytes") or 0),
            int(facts.get("least_flops") or facts.get("flops") or 0),
            str(facts.get("dtype") or "float32"),
        )


@dataclass(frozen=True)
class Roofline:
    """What a perfect kernel needs, whether memory or arithmetic sets it, and the bandwidth that was counted."""

    seconds: float
    bound: Literal["memory", "arithmetic"]
    bandwidth: float


def roofline(work: Work, target: Target, *, threads: int) -> Roofline:
    """Of the reference's work, on this many threads of a CPU, or on the whole of a device."""
    moved = target.memory_seconds(work.read_bytes, work.written_bytes)
    peak = target.peak(work.dtype) * (min(1.0, threads / max(1, target.cores)) if target.kind == "cpu" else 1.0)
    counted = work.flops / peak if peak else 0.0
    memory = moved >= counted
    return Roofline(moved if memory else counted, "memory" if memory else "arithmetic", target.bandwidth)


def impossible_seconds(work: Work, target: Target) -> float:
    """No honest kernel is faster than this on this machine, whatever its algorithm."""
    total = work.read_bytes + work.written_bytes
    cached = target.cache_bandwidth or CACHE_FACTOR * target.bandwidth
    bandwidth = target.bandwidth if total > 2 * target.last_level_cache else cached
    return work.written_bytes / (bandwidth * MARGIN)
