"""The profile of launches on a target: what was counted, what the compiled code says, what is predicted, each marked.

In: a launch (PTX, entry, grid, block, parameters, memory of this process) and a target's sheet. Out: `LaunchProfile`. Counts come from
`gpu/`, registers and spills from NVIDIA's assembler, occupancy from the sheet's rules, times from `gpu/profile`'s model.

    profile = profile_launch(ptx, "kernel", grid, block, params, shared, target)
    profile.prediction.seconds
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

from kernelwright.compiler.offdevice.nvcc import assemble
from kernelwright.core.errors import GpuError, KernelwrightError
from kernelwright.core.launch_figures import (
    MOST_LINES,
    CompiledFigures,
    Counts,
    LaunchFigures,
    LineFigures,
    PredictedFigures,
)
from kernelwright.gpu import Memory, Program
from kernelwright.gpu.profile import (
    Counted,
    Hardware,
    Latencies,
    Prediction,
    Recorded,
    Recorder,
    Resources,
    by_line,
    count,
    predict,
)
from kernelwright.gpu.profile.costs import is_access, operations, space
from kernelwright.gpu.profile.sampling import global_access
from kernelwright.target.occupancy import SHARED_RESERVED, Occupancy, occupancy
from kernelwright.target.sheet import Target

SUSTAINED = 0.83
"""Of the boost clock that sheets give their peaks for, what a device holds under load."""
ATTAINABLE = 0.92
"""Of the bandwidth of a sheet, what a copy reaches."""


@dataclass(frozen=True)
class _Generation:
    """What sheets do not say, by compute capability: vendor's white papers, and public microbenchmarks for bandwidth and latencies."""

    float_lanes: int
    integer_lanes: int
    double_lanes: int
    memory_lanes: int
    second_level_bytes: float
    """Of the second level's bandwidth, for each multiprocessor and cycle."""
    first_level: int
    latencies: Latencies = field(default_factory=Latencies)


_GENERATIONS = {
    70: _Generation(64, 64, 32, 32, 24.0, 128 << 10),
    75: _Generation(64, 64, 2, 16, 20.0, 96 << 10),
    80: _Generation(64, 64, 32, 32, 32.0, 192 << 10, Latencies(shared=23, second_level=260, memory=560)),
    86: _Generation(128, 64, 2, 16, 20.0, 128 << 10, Latencies(shared=26, second_level=240, memory=540)),
    89: _Generation(128, 64, 2, 16, 16.0, 128 << 10, Latencies(shared=26, second_level=280, memory=580)),
    90: _Generation(128, 64, 64, 32, 28.0, 256 << 10, Latencies(shared=29, second_level=270, memory=620)),
    100: _Generation(128, 64, 64, 32, 32.0, 256 << 10, Latencies(shared=29, second_level=290, memory=700)),
}
_KINDS = {
    "f16": "float16",
    "bf16": "bfloat16",
    "tf32": "tf32",
    "s8": "int8",
    "u8": "int8",
    "e4m3": "float8_e4m3fn",
    "f64": "float64",
}


_APART: dict[str, frozenset[int]] = {}
"""Lines of a module whose loads the assembler cannot merge, as a run has shown."""


@dataclass(frozen=True)
class LaunchProfile:
    """One launch. `counted` is of an average block; `registers`, `spills` and `occupancy` are read off the compiled code."""

    counted: Counted
    registers: int
    spills: int
    shared_memory: int
    occupancy: Occupancy
    prediction: Prediction


def hardware(target: Target) -> Hardware:
    """A target as the model sees it."""
    number = int(re.sub(r"\D", "", target.arch) or 0)
    known = [g for g in _GENERATIONS if g <= number]
    if target.kind != "cuda" or not known:
        raise GpuError(
            f"nothing is predicted for {target.title or target.name} by counts: PTX is what is executed, for CUDA targets"
        )
    g = _GENERATIONS[max(known)]
    boost = target.peak() / (2.0 * target.cores * g.float_lanes)
    matrix = {
        kind: target.peak_flops[dtype] / target.cores / boost for kind, dtype in _KINDS.items() if dtype in target.peak_flops
    }
    if "e4m3" in matrix:
        matrix["e5m2"] = matrix["e4m3"]
    clock = SUSTAINED * boost
    return Hardware(
        multiprocessors=target.cores,
        clock=clock,
        bandwidth=ATTAINABLE * target.bandwidth,
        second_level_bandwidth=g.second_level_bytes * target.cores * clock,
        second_level_bytes=target.last_level_cache or 4 << 20,
        first_level_bytes=g.first_level,
        matrix_flops=matrix,
        float_lanes=g.float_lanes,
        integer_lanes=g.integer_lanes,
        double_lanes=g.double_lanes,
        memory_lanes=g.memory_lanes,
        latencies=g.latencies,
    )


def profile_launch(
    ptx: str,
    entry: str,
    grid: Sequence[int],
    block: Sequence[int],
    params: bytes,
    shared: int,
    target: Target,
    *,
    memory: Memory | None = None,
    warm: bool = False,
) -> LaunchProfile:
    """Count a launch on sampled blocks (their stores happen), and predict its time on a target. Where `memory` is given, accesses to
    anything else are left out."""
    program = Program.from_ptx(ptx, counts=True, apart=_APART.get(ptx, frozenset()))
    figures = _assembled(ptx, target.arch).get(entry, {"registers": 32, "spills": 0, "shared_memory": 0})
    threads = 1
    for extent in block:
        threads *= extent
    used = program.entries[entry].shared_bytes + shared
    found = occupancy(target, threads=threads, registers=figures["registers"], shared_memory=used)
    if not found.blocks:
        raise GpuError(f"a block of {entry} does not fit on {target.title or target.name}: too many {found.limiter}")
    device = hardware(target)
    resident = max(1, min(found.blocks, -(-_product(grid) // device.multiprocessors)))
    cache = (device.first_level_bytes - resident * (used + SHARED_RESERVED)) // resident
    run = partial(program.launch, memory=memory)
    counted, misaligned = count(program, entry, grid, block, params, shared, cache_bytes=max(cache, 8 << 10), run=run)
    if misaligned - _APART.get(ptx, frozenset()):
        _APART[ptx] = _APART.get(ptx, frozenset()) | misaligned
        return profile_launch(ptx, entry, grid, block, params, shared, target, memory=memory, warm=warm)
    resources = Resources(found.blocks, figures["registers"], figures["spills"], used, found.limiter)
    return LaunchProfile(
        counted, figures["registers"], figures["spills"], used, found, predict(counted, device, resources, warm=warm)
    )


def profile_of(launch: Recorded, target: Target, *, warm: bool = False) -> LaunchProfile:
    """The profile of a launch that was recorded."""
    with launch.again() as (params, memory):
        return profile_launch(
            launch.ptx, launch.entry, launch.grid, launch.block, params, launch.shared, target, memory=memory, warm=warm
        )


def described(launch: Recorded, profile: LaunchProfile, target: Target, name: str = "") -> LaunchFigures:
    """A profile as plain data."""
    p = profile.prediction
    lines = by_line(profile.counted, hardware(target), p.bound)[:MOST_LINES]
    return LaunchFigures(
        name=name or launch.entry,
        grid=launch.grid,
        block=launch.block,
        times=launch.times,
        counted=_counts(profile.counted),
        compiled=CompiledFigures(
            registers=profile.registers,
            spilled_bytes=profile.spills,
            shared_memory=profile.shared_memory,
            occupancy=round(profile.occupancy.fraction, 4),
            limiter=profile.occupancy.limiter,
            blocks_resident=p.blocks_resident,
        ),
        predicted=PredictedFigures(
            ms=1e3 * p.seconds,
            error=round(p.error, 3),
            bound=p.bound,
            parts_ms={part: 1e3 * seconds for part, seconds in sorted(p.parts.items(), key=lambda item: -item[1]) if seconds},
            waves=p.waves,
            second_level_bytes=p.second_level_bytes,
            memory_bytes=p.memory_bytes,
        ),
        lines=tuple(
            LineFigures(
                file=line.file,
                line=line.line,
                share=round(line.share, 4),
                instructions=line.instructions,
                sectors_per_request=line.sectors or None,
                least_sectors=line.least_sectors or None,
                bank_passes_per_request=line.passes or None,
                least_passes=line.least_passes or None,
                second_level_bytes=line.missed_bytes,
            )
            for line in lines
        ),
        advice=p.advice,
    )


def figures_of(
    launches: Iterable[Recorded], target: Target, name: Callable[[str], str] = str
) -> tuple[list[LaunchFigures], list[str]]:
    """Profiles of recorded launches as plain data, and why the others have none; `name` makes a kernel's name readable."""
    found, refused = [], []
    for launch in launches:
        try:
            found.append(described(launch, profile_of(launch, target), target, name(launch.entry)))
        except KernelwrightError as error:
            refused.append(f"{name(launch.entry)} is not profiled: {error}")
    return found, refused


def reply(recorder: Recorder, sheet: Mapping[str, Any], name: Callable[[str], str] = str) -> dict[str, Any]:
    """Of a runtime's answer to `compile_for`: the profiles of what was recorded, and why some launches have none."""
    target = Target.remembered(dict(sheet))
    if target.kind != "cuda":
        return {}
    found, refused = figures_of(recorder.launches(), target, name)
    return {"launches": [each.model_dump(mode="json") for each in found], "not_profiled": refused}


def _counts(c: Counted) -> Counts:
    executed = [e for e in c.executed if e.warps]
    warps = sum(e.warps for e in executed)
    reached = [e for e in executed if global_access(e) and e.requests]
    banked = [e for e in executed if is_access(e.instruction) and space(e.instruction) == "shared" and e.requests]
    kinds: dict[str, float] = {}
    for e in executed:
        kinds[e.instruction.opcode] = kinds.get(e.instruction.opcode, 0.0) + e.warps * c.blocks
    asked, sectors, least = (sum(getattr(e, key) for e in reached) for key in ("requests", "units", "least"))
    passed, passes, fewest = (sum(getattr(e, key) for e in banked) for key in ("requests", "units", "least"))
    return Counts(
        sampled=c.sampled,
        spread=round(c.spread, 4),
        instructions=dict(sorted(kinds.items(), key=lambda item: -item[1])),
        lanes_active=round(sum(e.lanes for e in executed) / warps, 2) if warps else 0.0,
        operations=c.blocks * sum(e.lanes * operations(e.instruction) for e in executed),
        barriers=sum(kinds.get(kind, 0.0) for kind in ("bar", "barrier")),
        atomics=sum(kinds.get(kind, 0.0) for kind in ("atom", "red")),
        global_requests=c.blocks * asked,
        sectors_per_request=round(sectors / asked, 2) if asked else None,
        sector_efficiency=round(min(1.0, least / sectors), 4) if sectors else None,
        first_level_hits=round(max(0.0, 1 - sum(e.missed for e in reached) / sectors), 4) if sectors else None,
        shared_requests=c.blocks * passed,
        bank_passes_per_request=round(passes / passed, 2) if passed else None,
        bank_efficiency=round(min(1.0, fewest / passes), 4) if passes else None,
    )


def _product(grid: Sequence[int]) -> int:
    total = 1
    for extent in grid:
        total *= extent
    return total


@lru_cache(maxsize=64)
def _assembled(ptx: str, arch: str) -> dict[str, dict[str, int]]:
    """Figures of each kernel for the target, from PTX that may have been made for an older one."""
    found = re.search(r"^\s*\.target\s+sm_(\d+)(a?)", ptx, re.MULTILINE)
    made, wanted = int(found[1]) if found else 80, int(re.sub(r"\D", "", arch) or 80)
    number = max(made, wanted)
    return assemble(ptx, f"sm_{number}{found[2] if found and made == number else ''}").figures


__all__ = ["LaunchProfile", "described", "figures_of", "hardware", "profile_launch", "profile_of", "reply"]
