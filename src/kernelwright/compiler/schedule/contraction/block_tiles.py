"""The tile of the output that one block of a GPU computes, and into how many parts a long sum is cut: by what every choice would cost.

In: a GemmProblem and capabilities. Out: `BlockTile` with the seconds it should take and the reason in words. The sums of a tile stay in
registers, three stages of its operands in shared memory, twice, so that another block works while one waits. A round in which some
units have no tile costs as much as a full one, so the number of units decides the tile's size as much as its memories do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from kernelwright.compiler.graph.problems import GemmProblem
from kernelwright.compiler.schedule.contraction.blocks import ceil_div
from kernelwright.target import Capabilities

SIDES = (16, 32, 64, 128, 256)
"""Extents that matrix units and vectors of all devices divide."""
LINE = 128
"""Bytes of a row of an operand that is staged at a time, at most: longer ones use no line of a cache better, and take its room."""
STAGES, RESIDENT = 3, 2
"""Stages of a product's operands (one is multiplied while the next two arrive), and blocks that share a unit; one that takes half of its
registers has it alone."""
CACHED = 1.8
"""How much faster than from memory operands come that other blocks read as well (H100: 5.5 TB/s from L2 beside 3.35, A100: 4 beside 2.0;
published microbenchmarks; a guess for others)."""
ATTAINED = 0.85
"""Of the peak, what a pipelined loop reaches when nothing else is short."""
READ = {False: 16, True: 8}
"""Rows or columns whose multiplications take as long as reading one element of the other operand for them from shared memory: without
and with matrix units, which share what they read between the threads of a warp."""
FILL = 2
"""Steps over k that pass before the first product, and again until the last sum is stored."""
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
    matrix, size = p.operand.torch_name in machine.matrix_dtypes, p.operand.size
    sums = machine.sums_bytes(matrix=matrix)
    for tall in _sides(p.m):
        for wide in _sides(p.n):
            smallest = max(tall, wide) <= SIDES[0]
            if tall * wide * p.dtype.size > sums and not smallest:
                continue
            deep = next(
                (d for d in _depths(p, size) if (tall + wide) * d * size <= _room(machine, tall * wide * p.dtype.size)), 0
            )
            if deep:
                yield from (_of(p, machine, (tall, wide, deep), parts) for parts in _parts(p, machine, tall, wide))


def _depths(p: GemmProblem, size: int) -> list[int]:
    """Terms that may be staged at a time, most first: a line of memory, or less where the sum is short."""
    deep, found = max(SIDES[0], LINE // size), []
    while deep >= SIDES[0]:
        if deep < 2 * p.k or deep == SIDES[0]:
            found.append(deep)
        deep //= 2
    return found


def _room(machine: Capabilities, sums: int) -> int:
    """Bytes that one stage of a block's operands may take."""
    alone = 2 * sums >= machine.registers
    return machine.staged_bytes // (STAGES * (1 if alone else RESIDENT))


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
    matrix = name in machine.matrix_dtypes
    reached = ATTAINED / (1 + READ[matrix] / tall + READ[matrix] / wide)
    multiply = 2.0 * tall * wide * length / (reached * machine.peak_of(name) / machine.units)
    fetch = (tall + wide) * length * size / (CACHED * machine.bandwidth / machine.units)
    rounds = ceil_div(tiles * parts, machine.units)
    steps = ceil_div(length, deep)
    seconds = rounds * max(multiply, fetch) * (steps + FILL) / steps
    result = math.prod(p.batch) * p.m * p.n * p.dtype.size
    if parts > 1:
        seconds += 2.0 * parts * result / machine.bandwidth + machine.launch_seconds
    how = "matrix units" if matrix else "no matrix units"
    reason = (
        f"product {p.m} x {p.k} x {p.n} ({p.operand}, {how}): tiles of {tall} x {wide}, {tall * wide * p.dtype.size >> 10} KiB of sums "
        f"in registers of {machine.registers >> 10}, and {deep} terms at a time, {STAGES * (tall + wide) * deep * size >> 10} KiB staged "
        f"of {machine.staged_bytes >> 10}; {tiles} tiles" + (f" in {parts} parts of the sum" if parts > 1 else "")
        + f" for {machine.units} units"
    )  # fmt: skip
    return BlockTile(tall, wide, min(deep, p.k) or deep, parts, tiles, seconds, reason)
