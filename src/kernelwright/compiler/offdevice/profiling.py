"""The profile of launches on a target: what was counted, what the compiled code says, what is predicted, each marked.

In: a launch (PTX, entry, grid, block, parameters, memory of this process) and a target's sheet. Out: `LaunchProfile`. Counts come from
`gpu/`, registers and spills from NVIDIA's assembler, occupancy from the sheet's rules, times from `gpu/profile`'s model.

    profile = profile_launch(ptx, "kernel", grid, block, params, shared, target)
    profile.prediction.seconds
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from kernelwright.compiler.offdevice.nvcc import assemble
from kernelwright.core.errors import GpuError
from kernelwright.gpu import Memory, Program
from kernelwright.gpu.host import Launch
from kernelwright.gpu.profile import Counted, Hardware, Latencies, Prediction, Resources, count, predict
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
    """Count a launch on sampled blocks (their stores happen), and predict its time on a target."""
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
    counted, misaligned = count(program, entry, grid, block, params, shared, cache_bytes=max(cache, 8 << 10))
    if misaligned - _APART.get(ptx, frozenset()):
        _APART[ptx] = _APART.get(ptx, frozenset()) | misaligned
        return profile_launch(ptx, entry, grid, block, params, shared, target, memory=memory, warm=warm)
    resources = Resources(found.blocks, figures["registers"], figures["spills"], used, found.limiter)
    return LaunchProfile(
        counted, figures["registers"], figures["spills"], used, found, predict(counted, device, resources, warm=warm)
    )


def profile_of(launch: Launch, target: Target, *, warm: bool = False) -> LaunchProfile:
    """The profile of a launch that host code made (`gpu.host.Device.observed`)."""
    return profile_launch(
        launch.ptx,
        launch.entry,
        launch.grid,
        launch.block,
        launch.params,
        launch.shared,
        target,
        memory=launch.memory,
        warm=warm,
    )


def total_seconds(profiles: Sequence[LaunchProfile], target: Target) -> float:
    """Launches one after the other, with what each costs to begin."""
    begin = hardware(target).launch_seconds
    return sum(p.prediction.seconds + begin for p in profiles)


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


__all__ = ["LaunchProfile", "hardware", "profile_launch", "profile_of", "total_seconds"]
