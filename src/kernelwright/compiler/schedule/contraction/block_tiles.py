"""The tile of the output that one block of a GPU computes, and into how many parts a long sum is cut: by what every choice would cost.

In: a GemmProblem and capabilities. Out: `BlockTile` with the seconds it should take and the reason in words. The sums of a tile stay in
registers, two stages of its operands in shared memory, twice, so that another block works while one waits. A round in which some
units have no tile costs as much as a full one, so the number of units decides the tile's size as much as its memories do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from kernelwright.compiler.graph.problems import GemmProblem
from kernelwright.compiler.schedule.contraction.blocks import ceil_div
from kernelwright.target import Capabilities

SIDES, DEPTHS = (16, 32, 64, 128, 256), (128, 64, 32, 16)
"""Extents that matrix units and vectors of all devices divide."""
STAGES, RESIDENT = 2, 2
"""Stages of a product's operands (one is multiplied while the next arrives), and blocks that share a unit."""
CACHED = 2.5
"""How much faster than from memory operands come that other blocks read as well (H100: 5.5 TB/s from L2 beside 3.35, published
microbenchmarks; a guess for others)."""
ATTAINED = 0.6
"""Of the peak, what a kernel without hand-tuned pipelines reaches: a guess."""
READ = 16
"""Rows or columns whose multiplications take as long as reading one element of the other operand for them from shared memory."""
SHORTEST = 256
"""Terms of a part of a sum, at least."""


@dataclass(frozen=True)
class BlockTile:
    """`parts`: of the sum over k, each computed by other blocks; `tiles`: of the output, all products together."""

    tall: int
    wide: int
    deep: int
    parts: int
    tiles: int
    seconds: float
    reason: str

    @property
    def blocks(self) -> tuple[int, int, int]:
        return self.tall, self.wide, self.deep


def choose(p: GemmProblem, machine: Capabilities, *, parts: bool = True) -> BlockTile:
    """The cheapest tile; `parts`: whether its sum may be cut."""
    whole = [tile for tile in _tiles(p, machine) if parts or tile.parts == 1]
    return min(whole, key=lambda tile: (tile.seconds, -tile.tall * tile.wide))


def _tiles(p: GemmProblem, machine: Capabilities) -> Iterator[BlockTile]:
    name = p.operand.torch_name
    exact = name not in machine.matrix_dtypes
    sums = machine.accumulator_bytes // (2 if exact else 1)  # without matrix units operands take registers as well
    room = machine.staged_bytes // (STAGES * RESIDENT)
    size = p.operand.size
    for tall in _sides(p.m):
        for wide in _sides(p.n):
            fitting = [d for d in DEPTHS if (tall + wide) * d * size <= room and (d < 2 * p.k or d == DEPTHS[-1])]
            smallest = max(tall, wide) <= SIDES[0]
            if not fitting or (tall * wide * p.dtype.size > sums and not smallest):
                continue
            yield from (_of(p, machine, (tall, wide, fitting[0]), parts) for parts in _parts(p, machine, tall, wide))


def _sides(extent: int) -> list[int]:
    """Tiles no larger than what there is, rounded up to a side."""
    most = next((side for side in SIDES if side >= extent), SIDES[-1])
    return [side for side in SIDES if side <= most]


def _parts(p: GemmProblem, machine: Capabilities, tall: int, wide: int) -> list[int]:
    """One, or as many as give every unit a block."""
    tiles = _count(p, tall, wide)
    wanted = min(ceil_div(machine.units, tiles), p.k // SHORTEST)
    plain = p.a_shape == p.b_shape == p.out_shape == "full"
    return [1, wanted] if plain and wanted > 1 else [1]


def _count(p: GemmProblem, tall: int, wide: int) -> int:
    return math.prod(p.batch) * ceil_div(p.m, tall) * ceil_div(p.n, wide)


def _of(p: GemmProblem, machine: Capabilities, blocks: tuple[int, int, int], parts: int) -> BlockTile:
    """What a choice costs: rounds of all units, each bound by arithmetic or by its operands; parts are written, read and added."""
    tall, wide, deep = blocks
    name, size, tiles = p.operand.torch_name, p.operand.size, _count(p, tall, wide)
    length = ceil_div(p.k, parts)
    reached = ATTAINED / (1 + READ / tall + READ / wide)
    multiply = 2.0 * tall * wide * length / (reached * machine.peak_of(name) / machine.units)
    fetch = (tall + wide) * length * size / (CACHED * machine.bandwidth / machine.units)
    rounds = ceil_div(tiles * parts, machine.units)
    seconds = rounds * max(multiply, fetch)
    result = math.prod(p.batch) * p.m * p.n * p.dtype.size
    if parts > 1:
        seconds += 2.0 * parts * result / machine.bandwidth + machine.launch_seconds
    how = "matrix units" if name in machine.matrix_dtypes else "no matrix units"
    reason = (
        f"product {p.m} x {p.k} x {p.n} ({p.operand}, {how}): tiles of {tall} x {wide}, {tall * wide * p.dtype.size >> 10} KiB of sums "
        f"in registers of {machine.registers >> 10}, and {deep} terms at a time, {STAGES * (tall + wide) * deep * size >> 10} KiB staged "
        f"of {machine.staged_bytes >> 10}; {tiles} tiles" + (f" in {parts} parts of the sum" if parts > 1 else "")
        + f" for {machine.units} units"
    )  # fmt: skip
    return BlockTile(tall, wide, min(deep, p.k) or deep, parts, tiles, seconds, reason)
