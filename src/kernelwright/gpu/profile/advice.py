"""What to change in a kernel, from what was counted and what bounds it: at most three sentences, the most important first."""

from __future__ import annotations

import math

from kernelwright.gpu.profile.costs import is_access, space
from kernelwright.gpu.profile.hardware import Resources
from kernelwright.gpu.profile.sampling import Counted, Executed, global_access
from kernelwright.gpu.ptx import Vector

_SENTENCES = 3
_WASTED = 0.2
"""Of sectors or passes over banks, from which on it is told."""
_BY_BOUND = {
    "memory pipe": (0.6, "Compute more outputs a thread from what registers hold: the pipe of shared memory and caches is full."),
    "memory": (0.6, "Move fewer bytes: fuse, or keep values on the chip; more arithmetic is free here."),
    "second level": (0.6, "Move fewer bytes between caches: larger tiles, so that blocks read less twice; more arithmetic is free here."),
    "issue": (0.4, "Unroll and hoist address arithmetic: issued instructions take the time, not memory."),
    "integer": (0.4, "Hoist address arithmetic out of loops: integer instructions take the time."),
    "float": (0.1, "The floating-point pipe is the limit: only fewer operations, or matrix units, would be faster."),
    "matrix": (0.1, "The matrix units are the limit: only fewer operations, or a narrower type, would be faster."),
    "special": (0.3, "Call fewer transcendental functions: their pipe is the limit."),
    "double": (0.5, "Compute in fp32 where that is exact enough: the pipe of doubles is the limit."),
    "convert": (0.3, "Convert less often between types: that pipe is the limit."),
}  # fmt: skip


def advice(counted: Counted, resources: Resources, bound: str, resident: int, waves: float, exposed: float) -> tuple[str, ...]:
    """Sentences; `exposed` is how often a lone warp's chain of results is longer than what the pipes take."""
    said = [*_memory(counted, bound), *_filling(counted, resources, bound, resident, waves, exposed)]
    if bound in _BY_BOUND:
        said.append(_BY_BOUND[bound])
    return tuple(text for _, text in sorted(said, key=lambda item: -item[0])[:_SENTENCES])


def _memory(counted: Counted, bound: str) -> list[tuple[float, str]]:
    said = []
    reads = [e for e in counted.executed if global_access(e) and e.requests and e.units]
    share, worst = _waste(reads)
    if worst is not None:
        had, best = worst.units / worst.requests, worst.least / worst.requests
        said.append(
            (
                share,
                f"Let neighbouring lanes access neighbouring addresses {_at(worst)}: {had:.1f} sectors a request, {best:.1f} would do.",
            )
        )
    banked = [e for e in counted.executed if is_access(e.instruction) and space(e.instruction) == "shared" and e.requests]
    share, worst = _waste(banked)
    if worst is not None:
        had, best = worst.units / worst.requests, worst.least / worst.requests
        said.append(
            (
                share,
                f"Pad or permute shared memory {_at(worst)}: {had:.1f} passes over the banks a request, {best:.1f} would do.",
            )
        )
    single = [
        e
        for e in reads
        if e.instruction.opcode in ("ld", "st") and not any(isinstance(o, Vector) for o in e.instruction.operands)
    ]
    if single and bound in ("memory pipe", "issue", "latency", "integer"):
        most = max(single, key=lambda e: e.requests)
        said.append((0.3, f"Load and store vectors of four {_at(most)}: each lane moves a single element there."))
    return said


def _waste(accesses: list[Executed]) -> tuple[float, Executed | None]:
    """The share of units that the same bytes could have been had without, and the access with most of it."""
    total, wasted = sum(e.units for e in accesses), sum(e.units - e.least for e in accesses)
    if not total or wasted / total < _WASTED:
        return 0.0, None
    return wasted / total, max(accesses, key=lambda e: e.units - e.least)


def _filling(
    counted: Counted, resources: Resources, bound: str, resident: int, waves: float, exposed: float
) -> list[tuple[float, str]]:
    said = []
    if bound == "latency":
        limit = resources.limiter if resident >= resources.blocks else "the grid"
        said.append((0.5, f"Give warps more independent work, or hold more of them: results take {exposed:.1f} times as long as the pipes, "
                     f"with {resident} resident block{'s' if resident > 1 else ''} (limited by {limit})."))  # fmt: skip
    if waves > 1 and (math.ceil(waves) - waves) / math.ceil(waves) > 0.15:
        said.append((0.3, f"Fill the last wave: {waves:.2f} waves of blocks leave multiprocessors idle at the end."))
    if waves < 1:
        said.append((0.4, f"Make more blocks: {counted.blocks} fill {100 * waves:.0f} % of what the device holds at once."))
    if resources.spilled_bytes:
        said.append((0.5, f"Use fewer registers: {resources.spilled_bytes} bytes of a thread are spilled to memory."))
    return said


def _at(e: Executed) -> str:
    place = e.instruction.location.outermost if e.instruction.location else f"line {e.instruction.line} of the PTX"
    return f"at {str(place).rpartition('/')[2]}"
