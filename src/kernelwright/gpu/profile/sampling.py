"""A few blocks of a grid, executed with counts and a cache: what one block does, and what neighbours share.

In: a program, and how to launch it. Out: `Counted`, figures of an average block. Blocks of a grid mostly do the same at other places:
the first, the last, one in the middle and its neighbours along each axis stand for all; how far their counts differ is the error of
sampling. What two blocks read in common says how much of memory a wave of blocks reads once: along x at distances of 1, 2, 4, …, because
a grid of one dimension may walk over tiles of two.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kernelwright.gpu.profile.costs import is_access, space
from kernelwright.gpu.program import Program, Sample
from kernelwright.gpu.ptx import Instruction
from kernelwright.gpu.report import Count, Report

SECTOR = 32
FEW = 6
"""Grids of so many blocks are executed whole."""
FARTHEST = 128
"""Blocks along x with which a middle block is compared."""


@dataclass(frozen=True)
class Executed:
    """An instruction of an average block: how often warps executed it, and what its accesses took."""

    instruction: Instruction
    block: int
    warps: float
    lanes: float
    requests: float = 0.0
    units: float = 0.0
    least: float = 0.0
    wavefronts: float = 0.0
    missed: float = 0.0


@dataclass(frozen=True)
class Footprint:
    """Memory that some instructions touch together: sectors of one block, and for each axis the share that the blocks at distances of
    1, 2, 4, … share with it (the last stands for all that are farther)."""

    sectors: float
    written: bool
    shared: tuple[tuple[float, ...], ...]

    def over(self, extents: Sequence[float]) -> float:
        """Sectors of a box of blocks: each doubling of an extent adds what the blocks at its distance do not share."""
        total = self.sectors
        for extent, common in zip(extents, self.shared, strict=True):
            done = 1.0
            for share in common[:-1]:
                if done >= extent:
                    break
                total *= 1 + (min(2 * done, extent) / done - 1) * (1 - share)
                done = min(2 * done, extent)
            total *= 1 + max(extent / done - 1, 0) * (1 - common[-1])
        return total


@dataclass(frozen=True)
class Counted:
    """An average block of a launch."""

    entry: str
    grid: tuple[int, int, int]
    threads: int
    executed: tuple[Executed, ...]
    footprints: tuple[Footprint, ...]
    sampled: int
    spread: float
    """How far the sampled blocks differ in instructions: the standard deviation over the mean."""

    @property
    def blocks(self) -> int:
        """Of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def warps(self) -> int:
        """Of a block."""
        return -(-self.threads // 32)


def count(
    program: Program,
    entry: str,
    grid: Sequence[int],
    block: Sequence[int],
    params: bytes,
    shared: int,
    *,
    cache_bytes: int,
    run: Callable[..., Report] | None = None,
) -> tuple[Counted, frozenset[int]]:
    """Execute the blocks that stand for a grid. `program` counts; `cache_bytes` of the first level are a block's own. Beside the counts,
    the lines of PTX at which an access was not aligned."""
    x, y, z, *_ = (*grid, 1, 1)
    extents = (x, y, z)
    chosen = _chosen(extents)
    launch = run or program.launch
    reports = {
        place: launch(
            entry, grid, block, params, shared, sample=Sample((_number(place, extents),), max(cache_bytes, 4096)), patience=2.0
        )
        for place in chosen
    }
    threads = 1
    for extent in block:
        threads *= extent
    totals = [sum(c.warps for c in r.counts) for r in reports.values()]
    mean = statistics.fmean(totals)
    spread = statistics.pstdev(totals) / mean if mean else 0.0
    executed = _average(program, list(reports.values()))
    counted = Counted(entry, extents, threads, executed, _footprints(program, reports, extents), len(chosen), spread)
    return counted, frozenset(f.ptx_line for r in reports.values() for f in r.faults if f.kind == "misaligned")


def _number(place: Sequence[int], grid: Sequence[int]) -> int:
    return place[0] + grid[0] * (place[1] + grid[1] * place[2])


def _chosen(grid: Sequence[int]) -> list[tuple[int, int, int]]:
    """The first, the last, one in the middle and its neighbours; all of a small grid."""
    gx, gy, gz = grid
    if gx * gy * gz <= FEW:
        return [(x, y, z) for z in range(gz) for y in range(gy) for x in range(gx)]
    middle = (_round(gx), (gy - 1) // 2, (gz - 1) // 2)
    places = [middle, (0, 0, 0), (gx - 1, gy - 1, gz - 1)]
    for axis in range(3):
        if middle[axis] + 1 < grid[axis]:
            near = list(middle)
            near[axis] += 1
            places.append((near[0], near[1], near[2]))
    places += [(x, middle[1], middle[2]) for x in _along(middle[0], gx)[1:]]
    return list(dict.fromkeys(places))


def _round(extent: int) -> int:
    """A place in the middle of an axis that is a multiple of the distances looked at: groups of blocks begin at such places."""
    align = 1
    while 2 * align <= min(2 * FARTHEST, extent // 2):
        align *= 2
    return extent // 2 // align * align


def _along(middle: int, extent: int) -> list[int]:
    """Places of blocks at distances of 1, 2, 4, … from the middle of an axis, as far as there are any."""
    found, distance = [], 1
    while distance <= FARTHEST and middle + distance < extent:
        found.append(middle + distance)
        distance *= 2
    return found


def _average(program: Program, reports: Sequence[Report]) -> tuple[Executed, ...]:
    found: dict[tuple[int, int], list[Count]] = {}
    for report in reports:
        for c in report.counts:
            found.setdefault((c.block, c.place), []).append(c)
    n = len(reports)
    out = []
    for (block, place), counts in sorted(found.items()):
        instruction = program.translation.counters[block].instructions[place]
        figures = (sum(getattr(c, name) for c in counts) / n for name in _FIGURES)
        out.append(Executed(instruction, block, *figures))
    return tuple(out)


_FIGURES = ("warps", "lanes", "requests", "units", "least_units", "wavefronts", "missed")


def _footprints(program: Program, reports: dict[tuple[int, int, int], Report], grid: Sequence[int]) -> tuple[Footprint, ...]:
    """Sectors by the instructions that touch them, those that touch the same together."""
    middle = next(iter(reports))
    of_block = {place: _by_site(report.misses) for place, report in reports.items()}
    written = {k: _writes(program, k) for k in of_block[middle]}
    groups: list[tuple[bool, list[int], np.ndarray]] = []
    for site, sectors in sorted(of_block[middle].items(), key=lambda item: -len(item[1])):
        for index, (writes, sites, known) in enumerate(groups):
            if writes == written[site] and len(np.intersect1d(known, sectors, assume_unique=True)) * 2 > len(sectors):
                groups[index] = (writes, [*sites, site], np.union1d(known, sectors))
                break
        else:
            groups.append((written[site], [site], sectors))
    found = []
    for writes, sites, sectors in groups:
        shared: list[tuple[float, ...]] = []
        for axis in range(3):
            if grid[axis] < 2 or not len(sectors):
                shared.append((1.0 if grid[axis] < 2 else 0.0,))
                continue
            places = _along(middle[axis], grid[axis]) if axis == 0 else [middle[axis] + 1]
            common = []
            for place in places:
                near = tuple(place if a == axis else m for a, m in enumerate(middle))
                other = of_block.get((near[0], near[1], near[2]))
                theirs = [other[s] for s in sites if s in other] if other is not None else []
                both = np.intersect1d(sectors, np.unique(np.concatenate(theirs))) if theirs else ()
                common.append(len(both) / len(sectors))
            shared.append(tuple(common) or (0.0,))
        found.append(Footprint(float(len(sectors)), writes, tuple(shared)))
    return tuple(found)


def _by_site(misses: bytes) -> dict[int, np.ndarray]:
    pairs = np.frombuffer(misses, dtype=np.uint64).reshape(-1, 2)
    return {int(site): np.unique(pairs[pairs[:, 1] == site, 0]) for site in np.unique(pairs[:, 1])}


def _writes(program: Program, site: int) -> bool:
    name = program.translation.sites[site].name
    return name.startswith(("st.", "red.", "atom."))


def global_access(e: Executed) -> bool:
    """Whether an instruction goes to the device's memory, or past the first level."""
    return is_access(e.instruction) and (space(e.instruction) == "global" or e.instruction.opcode == "cp")
